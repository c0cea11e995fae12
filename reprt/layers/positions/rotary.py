"""Rotary positions: queries and keys turn with their places."""

import keras
import numpy as np
from keras import ops

from reprt.layers.dtypes import at_least_float32
from reprt.layers.positions.base import Positional


@keras.saving.register_keras_serializable(package="reprt")
class RotaryPositional(Positional):
    """Turns queries and keys, so that scores depend on distances (Su et al. 2021).

    With heads of r channels, the pair of channels (k, k + r/2), k = 0 .. r/2 − 1, of
    the token at place i turns by the angle a = i / 10000^(2k/r):

        (x[k], x[k + r/2]) → (x[k] cos a − x[k + r/2] sin a,
                              x[k] sin a + x[k + r/2] cos a)

    A query at i and a key at j then meet at the angle of j − i. There are no weights,
    and no limit on length. Angles are computed in float32.

    Masking: places count the real tokens of a sequence, so that padding may stand
    anywhere. Tokens enter the first block as they are.

    Args:
        **kwargs: passed to `keras.layers.Layer`.

    Raises:
        ValueError: for heads of an odd width.

    >>> import keras, reprt
    >>> turn, ones = reprt.layers.RotaryPositional().turn, keras.ops.ones((1, 1, 1, 2))
    >>> at = lambda place: turn(ones, keras.ops.array([[place]]))
    >>> [round(float(keras.ops.sum(at(i) * at(j))), 3) for i, j in ((3, 1), (7, 5))]
    [-0.832, -0.832]

    Reference: Su et al. 2021, "RoFormer" (arXiv 2104.09864), eq. 34, which pairs
    neighbouring channels: the same up to their order.
    """

    def turn(self, heads, places):
        width = heads.shape[-1]
        if width % 2:
            raise ValueError(
                "Rotary positions turn pairs of channels, so `key_dim` has to be even. "
                f"Received: key_dim={width}."
            )
        exponent = np.arange(0, width, 2, dtype="float32") / width
        frequency = ops.convert_to_tensor(10000.0**-exponent)
        angle = ops.cast(places, "float32")[..., None, None] * frequency
        left, right = ops.split(at_least_float32(heads), 2, axis=-1)
        sine = ops.cast(ops.sin(angle), left.dtype)
        cosine = ops.cast(ops.cos(angle), left.dtype)
        turned = [left * cosine - right * sine, left * sine + right * cosine]
        return ops.cast(ops.concatenate(turned, axis=-1), heads.dtype)
