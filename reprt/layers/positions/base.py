"""What every position method offers."""

import keras
from keras import ops

from reprt.layers.sharing import ConfiguredLayer


@keras.saving.register_keras_serializable(package="reprt")
class Positional(ConfiguredLayer):
    """A method by which tokens learn where they stand; this one does nothing.

    A method acts where tokens enter the first block, as `positional` of a
    `TokenAndPositionEmbedding`, or within the self-attention of every block, as
    `position` of `Encoder`, `Decoder`, their blocks or `PMHA`. It overrides one of
    these hooks, or both of the last two:

    | hook | changes | who overrides it |
    |---|---|---|
    | `call(x, start, mask)` | tokens on entry, to states | added, concatenated |
    | `turn(heads, places)` | queries and keys of each head | rotary, untied |
    | `bias(queries, keys)` | scores, before the softmax | relative, ALiBi, untied |

    Masking: places count the real tokens of a sequence, so that padding may stand
    anywhere. A Keras mask attached to the input stays attached.

    Args:
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        x: tensor `(batch, tokens, m)`.
        start: place of the first of the tokens, a scalar, or one for each sequence or
            token, integers that broadcast to `(batch, tokens)`. Defaults to 0.
        mask: boolean tensor `(batch, tokens)`, True on real tokens. Keras fills in its
            own unless `start` is a tensor.

    Returns:
        The states, `(batch, tokens, width)`: here the tokens.

    Example: a method by which each token sees distant ones less.

    >>> import keras, reprt
    >>> class Fading(reprt.layers.Positional):
    ...     def bias(self, queries, keys):
    ...         apart = queries[:, None, :, None] - keys[:, None, None]
    ...         return -0.1 * keras.ops.cast(abs(apart), "float32")
    >>> attention = reprt.layers.PMHA(num_heads=2, key_dim=8, position=Fading())
    >>> states = keras.ops.ones((1, 3, 16))
    >>> tuple(attention(states, states, states).shape)
    (1, 3, 16)
    """

    def call(self, x, start=0, mask=None):
        return x

    def turn(self, heads, places):
        """Returns queries or keys, `(batch, tokens, heads, key_dim)`, by their places.

        Places are integers that broadcast to `(batch, tokens)`, counted from 0.
        """
        return heads

    def bias(self, queries, keys):
        """Returns what is added to scores `(batch, heads, targets, sources)`, or None.

        It is float32. Places are integers, `(batch or 1, targets)` of queries and
        `(batch or 1, sources)` of keys.
        """
        return None

    @classmethod
    def acts_in_attention(cls):
        """Returns whether it overrides a hook of attention."""
        return (cls.turn, cls.bias) != (Positional.turn, Positional.bias)

    def check_length(self, tokens):
        """Refuses a sequence that is longer than a table; None is not known yet."""


def counted(mask, start=0):
    """Returns the place of every token: how many real ones stand before it.

    Padding has the place of the token before it. Arguments are those of `Positional`.
    """
    # TensorFlow adds up floats on a GPU, and integers on the CPU.
    real = ops.cumsum(ops.cast(mask, "float32"), axis=1)
    return ops.add(start, ops.maximum(ops.cast(real, "int32") - 1, 0))
