"""Positions added to tokens, as in the baseline."""

import keras

from reprt.layers.positions.sinusoids import PositionTable


@keras.saving.register_keras_serializable(package="reprt")
class AddPositional(PositionTable):
    """Adds positions to tokens, as the baseline does: X + P (eq. 18 and 28).

    Masking, other arguments: as `Positional`. With a mask, padding gets the position of
    the token before it.

    Args:
        table: `"tutorial"` or `"paper"`, see `sinusoidal_table`, or `"learned"`: a
            weight `(max_length, m)`.
        max_length: longest sequence in tokens. Defaults to 2048.

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

    def call(self, x, start=0, mask=None):
        return x + self.rows(x, start, mask)
