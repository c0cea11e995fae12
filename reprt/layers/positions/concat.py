"""Positions beside tokens, the paper's second change."""

import keras
from keras import ops

from reprt.layers.positions.sinusoids import PositionTable


@keras.saving.register_keras_serializable(package="reprt")
class ConcatPositional(PositionTable):
    """Puts positions beside tokens, the paper's second change: [X P] (eq. 10-11).

    Masking, other arguments, errors: as `AddPositional`.

    Args:
        dim: width of P, even. Defaults to the tokens' width m, as in the paper.

    Returns:
        Tensor `(batch, tokens, m + dim)`: tokens on the left, positions on the right.

    >>> import keras, reprt
    >>> reprt.layers.ConcatPositional()(keras.ops.zeros((1, 5, 8))).shape[-1]
    16

    Reference: section 2.2, eq. 10 and 11 of the paper.
    """

    def __init__(self, table="tutorial", max_length=2048, dim=None, **kwargs):
        super().__init__(table, max_length, **kwargs)
        self.dim = dim

    def call(self, x, start=0, mask=None):
        return ops.concatenate([x, self.rows(x, start, mask)], axis=-1)

    def compute_output_shape(self, input_shape):
        width = input_shape[-1]
        return (*input_shape[:-1], width + (self.dim or width))
