"""ALiBi: scores fall with the distance, in each head at a rate of its own."""

import keras
import numpy as np
from keras import ops

from reprt.layers.positions.base import Positional


@keras.saving.register_keras_serializable(package="reprt")
class AlibiPositional(Positional):
    """Subtracts a penalty that grows with the distance (Press et al. 2022).

        score(i, j) − m_h |i − j|,   m_h = 2^(−8h/p),   h = 1 .. p

    with p heads. There are no weights, and no limit on length. In an encoder it is
    the same in both directions, which the source leaves open.

    Masking: places count the real tokens of a sequence, so that padding may stand
    anywhere. Tokens enter the first block as they are.

    Args:
        num_heads: heads p of the attention.
        **kwargs: passed to `keras.layers.Layer`.

    >>> import keras, reprt
    >>> places = keras.ops.array([[0, 1]])
    >>> bias = reprt.layers.AlibiPositional(num_heads=2).bias(places, places)
    >>> keras.ops.convert_to_numpy(bias)[0, :, 1, 0].tolist()
    [-0.0625, -0.00390625]

    Reference: Press et al. 2022 (arXiv 2108.12409), section 3.
    """

    def __init__(self, num_heads, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads

    def get_config(self):
        return {**super().get_config(), "num_heads": self.num_heads}

    def bias(self, queries, keys):
        number = np.arange(1, self.num_heads + 1, dtype="float32")
        slopes = 2.0 ** (-8 * number / self.num_heads)
        slopes = ops.convert_to_tensor(slopes[:, None, None])
        distance = queries[:, None, :, None] - keys[:, None, None, :]
        return -slopes * ops.cast(ops.abs(distance), "float32")
