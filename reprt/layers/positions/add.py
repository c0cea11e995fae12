"""Positions added to tokens, as in the baseline."""

import keras

from reprt.layers.positions.sinusoids import PositionTable


@keras.saving.register_keras_serializable(package="reprt")
class AddPositional(PositionTable):
    """Adds positions to tokens, as the baseline does: X + P (eq. 18 and 28).

    Masking: places count the real tokens of a sequence, and padding has the place of
    the token before it. A Keras mask attached to the input stays attached.

    Args:
        table: `"tutorial"` or `"paper"`, see `sinusoidal_table`, or `"learned"`: a
            weight with a row for each place. Defaults to `"tutorial"`.
        max_length: longest sequence in tokens. Defaults to 2048.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        x: tensor `(batch, tokens, m)`.
        offset: place of the first of the tokens, a scalar, or one for each sequence or
            token, integers that broadcast to `(batch, tokens)`. Defaults to 0.
        mask: boolean tensor `(batch, tokens)`, True on real tokens. Keras fills in its
            own unless `offset` is a tensor.

    Returns:
        Tensor `(batch, tokens, m)`.

    Raises:
        ValueError: for an unknown table, an odd or unknown width, a rank other than
            3, or a sequence longer than `max_length`.

    >>> import keras, reprt
    >>> reprt.layers.AddPositional()(keras.ops.zeros((1, 5, 8))).shape[-1]
    8

    Reference: appendix A, eq. 18 and 28 of the paper.
    """

    on_entry = True
    by_place = True

    def call(self, x, offset=0, mask=None):
        return x + self.rows(x, offset, mask)
