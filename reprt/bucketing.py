"""Few lengths of padded ids, where each new length costs a compilation."""

import keras
from keras import ops

# The shortest length that sentences are padded to.
SHORTEST = 16
# How many tokens there is room for at first, and how many more at least.
FIRST_ROOM = 16
MORE_ROOM = 8


def shapes_are_costly() -> bool:
    """Returns whether each new shape of a tensor costs a compilation, as on JAX."""
    return keras.backend.backend() == "jax"


def length_with_room(length: int, most: int) -> int:
    """Returns the next of a few lengths, 2^n or 3 · 2^n, at most the longest known."""
    power = SHORTEST
    while power < length:
        power *= 2
    middle = 3 * power // 4
    room = middle if SHORTEST < power and length <= middle else power
    return max(length, min(room, most))


def with_room(ids, most: int):
    """Returns ids `(batch, length)`, padded to a length that is one of a few."""
    room = length_with_room(ids.shape[1], most) - ids.shape[1]
    return ops.pad(ids, ((0, 0), (0, room))) if room else ids


def more_room(tokens: int, most: int, costly: bool) -> int:
    """Returns how many more tokens there should be room for, after these.

    It is a share of those that there are, so that a long sentence is not copied too
    often: a half where each shape is costly, else an eighth, because every step passes
    over the room. At first there is more, so that a short sentence needs one graph.

    >>> more_room(100, 2048, costly=False)
    12
    """
    least = FIRST_ROOM if costly or not tokens else MORE_ROOM
    share = 2 if costly else 8
    return min(max(least, tokens // share), most - tokens)
