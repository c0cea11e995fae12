"""Relative positions: a learnt number for each distance and head."""

import math

import keras
from keras import ops

from reprt.layers.positions.base import Positional

BUCKETS, FARTHEST = 32, 128


@keras.saving.register_keras_serializable(package="reprt")
class RelativePositional(Positional):
    """Adds a learnt number for its distance and head to each score, as T5 does.

        score(i, j) + b[bucket(j − i), head]

    Near distances have a bucket each, far ones share buckets that widen with the
    distance, and from 128 tokens on there is one. With B buckets of a direction, e =
    B/2 of them exact, and the distance d:

        d < e:  d
        else:   min(B − 1, e + ⌊(B − e) ln(d/e) / ln(128/e)⌋)

    A decoder looks back only, with B = 32. An encoder has B = 16 in each direction. The
    32 · heads numbers start at 0; all blocks of a stack share them. Unlike T5, scores
    keep their 1 / sqrt(key_dim).

    Masking: places count the real tokens of a sequence, so that padding may stand
    anywhere. Tokens enter the first block as they are.

    Args:
        num_heads: heads of the attention.
        both_directions: whether keys may stand after queries, as in an encoder.
            Defaults to True.
        **kwargs: passed to `keras.layers.Layer`.

    >>> import keras, reprt
    >>> position = reprt.layers.RelativePositional(num_heads=2)
    >>> attention = reprt.layers.PMHA(num_heads=2, key_dim=8, position=position)
    >>> states = keras.ops.ones((1, 3, 16))
    >>> tuple(attention(states, key=states).shape)
    (1, 3, 16)
    >>> float(keras.ops.max(abs(position.table)))
    0.0

    Reference: Raffel et al. 2020 (arXiv 1910.10683), section 2.1.
    """

    def __init__(self, num_heads, both_directions=True, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.both_directions = both_directions

    def build(self, input_shape):
        shape = BUCKETS, self.num_heads
        self.table = self.add_weight(
            shape,
            "zeros",
            name="distances",
            autocast=False,
        )

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "both_directions": self.both_directions,
        }

    def bias(self, queries, keys):
        distance = keys[:, None, :] - queries[:, :, None]
        bias = ops.take(self.table, self._buckets(distance), axis=0)
        return ops.transpose(bias, (0, 3, 1, 2))

    def _buckets(self, distance):
        if self.both_directions:
            count, back = BUCKETS // 2, ops.abs(distance)
        else:
            count, back = BUCKETS, ops.maximum(-distance, 0)
        exact = count // 2
        far = ops.cast(ops.maximum(back, exact), "float32") / exact
        growth = ops.log(far) * ((count - exact) / math.log(FARTHEST / exact))
        # Rounding must not put a whole number below itself.
        far = exact + ops.cast(growth + 1e-4, "int32")
        bucket = ops.where(back < exact, back, ops.minimum(far, count - 1))
        if not self.both_directions:
            return bucket
        return bucket + count * ops.cast(distance > 0, "int32")
