"""Positions beside tokens, the paper's second change."""

import keras
from keras import ops

from reprt.layers.positions.sinusoids import PositionTable


@keras.saving.register_keras_serializable(package="reprt")
class ConcatPositional(PositionTable):
    """Puts positions beside tokens, the paper's second change: [X P] (eq. 10-11).

    Masking: places count the real tokens of a sequence, and padding has the place of
    the token before it. A Keras mask attached to the input stays attached.

    Args:
        table: `"tutorial"` or `"paper"`, see `sinusoidal_table`, or `"learned"`: a
            weight with a row for each place. Defaults to `"tutorial"`.
        max_length: longest sequence in tokens. Defaults to 2048.
        dim: width of P, even. Defaults to the tokens' width m, as in the paper.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        x: tensor `(batch, tokens, m)`.
        offset: place of the first of the tokens, a scalar, or one for each sequence or
            token, integers that broadcast to `(batch, tokens)`. Defaults to 0.
        mask: boolean tensor `(batch, tokens)`, True on real tokens. Keras fills in its
            own unless `offset` is a tensor.

    Returns:
        Tensor `(batch, tokens, m + dim)`: tokens on the left, positions on the right.

    Raises:
        ValueError: for an unknown table, an odd or unknown width, a rank other than
            3, or a sequence longer than `max_length`.

    >>> import keras, reprt
    >>> reprt.layers.ConcatPositional()(keras.ops.zeros((1, 5, 8))).shape[-1]
    16

    Reference: section 2.2, eq. 10 and 11 of the paper.
    """

    on_entry = True
    by_place = True
    widens = True
    has_width = True

    def __init__(self, table="tutorial", max_length=2048, dim=None, **kwargs):
        super().__init__(table, max_length, **kwargs)
        self.dim = dim

    def call(self, x, offset=0, mask=None):
        return ops.concatenate([x, self.rows(x, offset, mask)], axis=-1)

    def get_config(self):
        return {**super().get_config(), "dim": self.dim}

    def compute_output_shape(self, input_shape):
        width = input_shape[-1]
        return (*input_shape[:-1], width + (self.dim or width))
