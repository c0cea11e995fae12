"""Positions as a policy: how a sequence of tokens learns where each token stands."""

import keras
import numpy as np
from keras import ops

from reprt.constants import SINUSOIDS, TABLES
from reprt.layers.masks import attached_mask
from reprt.schema import check_choice


def sinusoidal_table(length, depth, table="tutorial"):
    """Returns the positional encoding P: sines in the left half, cosines in the right.

    `"tutorial"` is what TensorFlow's tutorial computes, and what the paper says it
    follows: positions i from 0, and for k = 0 .. depth/2 − 1

        P[i, k] = sin(i / 10000^(2k/depth)),  P[i, depth/2 + k] = cos(same angle).

    `"paper"` is eq. 3 and 27 to the letter: positions and columns count from 1, and
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

    Example:

    >>> import reprt
    >>> reprt.layers.sinusoidal_table(2, 4)[0].tolist()
    [0.0, 0.0, 1.0, 1.0]

    Reference: eq. 3 and 27 of the paper.
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
    half = depth // 2
    encoding = np.concatenate([np.sin(angle[:, :half]), np.cos(angle[:, half:])], 1)
    return encoding.astype("float32")


class _Positional(keras.layers.Layer):
    """What both policies share: the table, its length, and the checks."""

    def __init__(self, table="tutorial", max_length=2048, **kwargs):
        super().__init__(**kwargs)
        check_choice(TABLES, table=table)
        self.table = table
        self.max_length = max_length
        self.supports_masking = True

    def build(self, input_shape):
        if len(input_shape) != 3 or input_shape[-1] is None:
            raise ValueError(
                f"{type(self).__name__} expects an input of shape (batch, tokens, "
                f"features) with known features. Received: shape={tuple(input_shape)}."
            )
        shape = self.max_length, input_shape[-1]
        if self.table == "learned":
            self._encoding = self.add_weight(
                shape=shape,
                initializer=keras.initializers.RandomNormal(stddev=0.02),
                name="positions",
            )
        else:
            self._encoding = sinusoidal_table(*shape, self.table)
        self.built = True

    @property
    def encoding(self):
        """The positions, an array or a weight `(max_length, features)`."""
        return self._encoding

    def _positions(self, x, start, mask):
        # A search counts its steps in a tensor, and has room for all of them.
        before = start if isinstance(start, int) else 0
        length = x.shape[1]
        if isinstance(length, int) and before + length > self.max_length:
            raise ValueError(
                f"{type(self).__name__} was built for at most {self.max_length} "
                f"tokens (`max_length`). Received a sequence of {before + length}: "
                "cut it, or build with a larger one."
            )
        # The cast comes last: angles keep their precision under any policy.
        encoding = ops.cast(ops.convert_to_tensor(self._encoding), x.dtype)
        if mask is None:
            places = ops.add(start, ops.arange(ops.shape(x)[1]))
            return ops.broadcast_to(ops.take(encoding, places, axis=0), ops.shape(x))
        # TensorFlow adds up floats on a GPU, and integers on the CPU.
        counted = ops.cumsum(ops.cast(mask, "float32"), axis=1)
        places = ops.add(start, ops.maximum(ops.cast(counted, "int32") - 1, 0))
        return ops.take(encoding, places, axis=0)

    def compute_mask(self, x, mask=None):
        return attached_mask(x)

    def get_config(self):
        return {
            **super().get_config(),
            "table": self.table,
            "max_length": self.max_length,
        }


@keras.saving.register_keras_serializable(package="reprt")
class AddPositional(_Positional):
    """Adds positions to tokens, as the baseline does: X + P (eq. 28 and 38).

    Masking: with a mask positions count the real tokens only, so that padding may stand
    anywhere; padding gets the position of the token before it. A Keras mask attached to
    the input is used when no mask is given, and stays attached.

    Args:
        table: `"tutorial"` or `"paper"`, see `sinusoidal_table`, or `"learned"`: a
            weight `(max_length, m)`.
        max_length: longest sequence in tokens. Defaults to 2048.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        x: tensor `(batch, tokens, m)`, `m` even.
        start: position of the first of the tokens, a scalar, or one for each sequence,
            integers `(batch, 1)`. Defaults to 0.
        mask: boolean tensor `(batch, tokens)`, True on real tokens.

    Returns:
        Tensor `(batch, tokens, m)`.

    Raises:
        ValueError: for an unknown table, an odd or unknown width, a rank other than
            3, or a sequence longer than `max_length`.

    Example:

    >>> import keras, reprt
    >>> reprt.layers.AddPositional()(keras.ops.zeros((1, 5, 8))).shape[-1]
    8

    Reference: eq. 28 and 38 of the paper.
    """

    def call(self, x, start=0, mask=None):
        return x + self._positions(x, start, mask)

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)


@keras.saving.register_keras_serializable(package="reprt")
class ConcatPositional(_Positional):
    """Puts positions beside tokens, the paper's second change: [X P] (eq. 10-11).

    Masking: as `AddPositional`.

    Args:
        table: `"tutorial"` or `"paper"`, see `sinusoidal_table`, or `"learned"`: a
            weight `(max_length, m)`.
        max_length: longest sequence in tokens. Defaults to 2048.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        x: tensor `(batch, tokens, m)`, `m` even.
        start: position of the first of the tokens, a scalar, or one for each sequence,
            integers `(batch, 1)`. Defaults to 0.
        mask: boolean tensor `(batch, tokens)`, True on real tokens.

    Returns:
        Tensor `(batch, tokens, 2m)`: tokens in the left half, positions in the right.

    Raises:
        ValueError: for an unknown table, an odd or unknown width, a rank other than
            3, or a sequence longer than `max_length`.

    Example:

    >>> import keras, reprt
    >>> reprt.layers.ConcatPositional()(keras.ops.zeros((1, 5, 8))).shape[-1]
    16

    Reference: section 2.2, eq. 10 and 11 of the paper.
    """

    def call(self, x, start=0, mask=None):
        return ops.concatenate([x, self._positions(x, start, mask)], axis=-1)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], 2 * input_shape[-1])
