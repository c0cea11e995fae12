"""What every position method offers."""

import keras

from reprt.layers.base import Layer


@keras.saving.register_keras_serializable(package="reprt")
class Positional(Layer):
    """A method by which tokens learn where they stand; this one does nothing.

    A method acts where tokens enter the first block, as `positional` of a
    `TokenAndPositionEmbedding`, or within the self-attention of every block, as
    `position` of `Encoder`, `Decoder`, their blocks or `PMHA`. It overrides one of
    these hooks, or several of the last three:

    | hook | changes | who overrides it |
    |---|---|---|
    | `call(x, offset, mask)` | tokens on entry, to states | added, concatenated |
    | `turn(heads, places)` | queries and keys of each head | rotary |
    | `score_factor` | is multiplied by queries times keys | untied |
    | `bias(queries, keys)` | scores, before the softmax | relative, ALiBi, untied |

    A method that changes tokens on entry, and no attention, says so by `on_entry =
    True`. A subclass with arguments of its own may have a `get_config`, as Keras'
    layers do.

    Masking: places count the real tokens of a sequence, so that padding may stand
    anywhere. A Keras mask attached to the input stays attached.

    Args:
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        x: tensor `(batch, tokens, m)`.
        offset: place of the first of the tokens, a scalar, or one for each sequence or
            token, integers that broadcast to `(batch, tokens)`. Defaults to 0.
        mask: boolean tensor `(batch, tokens)`, True on real tokens. Keras fills in its
            own unless `offset` is a tensor.

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
    >>> tuple(attention(states, key=states).shape)
    (1, 3, 16)
    """

    on_entry = False
    """Whether it changes tokens before the first block, and no attention."""
    by_place = False
    """Whether on entry a state depends only on its token and the token's place."""
    widens = False
    """Whether it makes states wider than tokens."""
    has_width = False
    """Whether it has a width `dim` of its own."""
    score_factor = 1.0
    """A number that scores are multiplied by, before `bias` is added."""

    def call(self, x, offset=0, mask=None):
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

    def check_length(self, tokens):
        """Refuses a sequence that is longer than a table; None is not known yet."""
