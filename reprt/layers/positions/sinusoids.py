"""Tables of positions: sinusoids, or rows that are learnt."""

import keras
import numpy as np
from keras import ops

from reprt.constants import check_choice, check_sizes
from reprt.layers.dtypes import indices
from reprt.layers.layout import places_from_mask
from reprt.layers.masks import check_mask
from reprt.layers.positions.base import Positional

SINUSOIDS = ("tutorial", "paper")
TABLES = (*SINUSOIDS, "learned")


def sinusoidal_table(length, depth, table="tutorial"):
    """Returns the positional encoding P: sines in the left half, cosines in the right.

    `"tutorial"` is what TensorFlow's tutorial computes, and what the paper says it
    follows: positions i from 0, and for k = 0 .. depth/2 − 1

        P[i, k] = sin(i / 10000^(2k/depth)),  P[i, depth/2 + k] = cos(same angle).

    `"paper"` is eq. 3 and 17 to the letter: positions and columns count from 1, and
    the exponent runs on through the cosine half, up to 2:

        P[i, j] = sin or cos (i / 10000^(2j/depth)).

    Args:
        length: number of positions n.
        depth: number of columns m, even.
        table: `"tutorial"` or `"paper"`.

    Returns:
        float32 array `(length, depth)`, computed in float64.

    Raises:
        ValueError: for an odd depth or an unknown table.

    >>> import reprt
    >>> reprt.layers.sinusoidal_table(2, 4)[0].tolist()
    [0.0, 0.0, 1.0, 1.0]

    Reference: section 2, eq. 3, and appendix A.1, eq. 17 of the paper.
    """
    if depth < 2 or depth % 2:
        raise ValueError(
            "A sinusoidal table has sine and cosine halves, so it needs an even depth "
            f"of 2 or more. Received: depth={depth}."
        )
    check_choice(SINUSOIDS, table=table)
    if table == "tutorial":
        position = np.arange(length, dtype="float64")
        exponent = np.tile(np.arange(depth // 2) / (depth / 2), 2)
    else:
        position = np.arange(1, length + 1, dtype="float64")
        exponent = 2 * np.arange(1, depth + 1) / depth
    angle = position[:, None] / 10000.0 ** exponent[None, :]
    left, right = np.split(angle, 2, axis=1)
    encoding = np.concatenate([np.sin(left), np.cos(right)], axis=1)
    return encoding.astype("float32")


class PositionTable(Positional):
    """A method that has a vector for each place: a table of `max_length` rows.

    The table has `dim` columns, or as many as the tokens have where that is None.
    """

    dim: int | None = None

    def __init__(self, table="tutorial", max_length=2048, **kwargs):
        super().__init__(**kwargs)
        check_choice(TABLES, table=table)
        check_sizes(max_length=max_length)
        self.table = table
        self.max_length = max_length

    def build(self, input_shape):
        self._check_tokens(input_shape)
        shape = self.max_length, self.dim or input_shape[-1]
        if self.table == "learned":
            small = keras.initializers.RandomNormal(stddev=0.02)
            self.encoding = self.add_weight(shape, small, name="positions")
        else:
            self.encoding = sinusoidal_table(*shape, self.table)

    def get_config(self):
        return {
            **super().get_config(),
            "table": self.table,
            "max_length": self.max_length,
        }

    def rows(self, x, offset, mask):
        """Returns the vectors of tokens `x`, by the arguments of the call."""
        if isinstance(offset, int) and x.shape[1] is not None:
            # A tensor comes from a search, which has reserved room, or from two sides
            # in one sequence.
            self.check_length(offset + x.shape[1])
        mask = check_mask(self, "mask", mask, "batch, tokens")
        # The cast comes last: angles keep their precision under any policy.
        encoding = ops.cast(ops.convert_to_tensor(self.encoding), x.dtype)
        if mask is not None:
            return ops.take(encoding, places_from_mask(mask, offset), axis=0)
        batch, tokens, _ = ops.shape(x)
        places = ops.add(offset, indices(tokens))
        rows = ops.take(encoding, places, axis=0)
        return ops.broadcast_to(rows, (batch, tokens, encoding.shape[1]))

    def check_length(self, tokens):
        if isinstance(tokens, int) and tokens > self.max_length:
            raise ValueError(
                f"{type(self).__name__} takes at most {self.max_length} tokens, its "
                f"`max_length`. Received a sequence of {tokens}."
            )
