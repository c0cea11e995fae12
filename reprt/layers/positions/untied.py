"""Untied positions: places meet places, and tokens meet tokens."""

import keras
from keras import ops

from reprt.layers.positions.sinusoids import PositionTable


@keras.saving.register_keras_serializable(package="reprt")
class UntiedPositional(PositionTable):
    """Scores tokens and their places apart, by projections of their own (TUPE-A).

        score(i, j) = (x_i W^Q · x_j W^K + P_i U^Q · P_j U^K) / sqrt(2 key_dim)

    Every head has a U^Q and a U^K, `(dim, key_dim)`, which all blocks of a stack share.
    Tokens enter the first block as they are. Where attention normalises queries and
    keys, it does so to the first product only, and its learnt scale is divided by
    sqrt(2). TUPE also unties its [CLS] token; a translation has none.

    Masking: places count the real tokens of a sequence, so that padding may stand
    anywhere.

    Args:
        num_heads: heads of the attention.
        key_dim: width of each head's queries and keys.
        table: `"tutorial"` or `"paper"`, see `sinusoidal_table`, or `"learned"`: a
            weight with a row for each place. Defaults to `"tutorial"`.
        max_length: longest sequence in tokens. Defaults to 2048.
        dim: width of P, even. Defaults to the states' width.
        **kwargs: passed to `keras.layers.Layer`.

    Raises:
        ValueError: for an unknown table, an odd width, or a sequence longer than
            `max_length`.

    >>> import keras, reprt
    >>> position = reprt.layers.UntiedPositional(num_heads=2, key_dim=8, dim=4)
    >>> attention = reprt.layers.PMHA(num_heads=2, key_dim=8, position=position)
    >>> states = keras.ops.ones((1, 3, 16))
    >>> tuple(attention(states, key=states).shape)
    (1, 3, 16)

    Reference: Ke et al. 2021 (arXiv 2006.15595), eq. 7 and section 3.2.
    """

    has_width = True
    # Of two products the sum has twice the variance.
    score_factor = 2**-0.5

    def __init__(
        self,
        num_heads,
        key_dim,
        table="tutorial",
        max_length=2048,
        dim=None,
        **kwargs,
    ):
        super().__init__(table, max_length, **kwargs)
        self.dim = dim
        self.num_heads = num_heads
        self.key_dim = key_dim

    def build(self, input_shape):
        super().build(input_shape)
        shape = self.encoding.shape[1], self.num_heads * self.key_dim
        self.query_kernel = self.add_weight(
            shape,
            name="queries",
            autocast=False,
        )
        self.key_kernel = self.add_weight(shape, name="keys", autocast=False)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "dim": self.dim,
        }

    def bias(self, queries, keys):
        scores = ops.einsum(
            "bqhr,bkhr->bhqk",
            self._heads(queries, self.query_kernel),
            self._heads(keys, self.key_kernel),
        )
        return scores * (2 * self.key_dim) ** -0.5

    def _heads(self, places, kernel):
        table = ops.cast(ops.convert_to_tensor(self.encoding), "float32")
        rows = ops.take(table, places, axis=0)
        heads = ops.matmul(rows, kernel)
        return ops.reshape(
            heads, (*ops.shape(places), self.num_heads, self.key_dim)
        )
