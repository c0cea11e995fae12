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


def bucket_length(length: int, max_length: int) -> int:
    """Returns the smallest bucket, 2^n or 3 · 2^n, that holds `length`.

    It is cut to `max_length`.
    """
    power = SHORTEST
    while power < length:
        power *= 2
    middle = 3 * power // 4
    room = middle if SHORTEST < power and length <= middle else power
    return max(length, min(room, max_length))


def pad_to_bucket(ids, max_length: int):
    """Returns ids `(batch, length)`, padded to a length that is one of a few."""
    room = bucket_length(ids.shape[1], max_length) - ids.shape[1]
    return ops.pad(ids, ((0, 0), (0, room))) if room else ids


def capacity_increment(tokens: int, max_length: int, costly: bool) -> int:
    """Returns by how many tokens to enlarge a capacity of `tokens`.

    It is a share of those that there are, so that a long sentence is not copied too
    often: a half where each shape is costly, else an eighth, because every step passes
    over the room. At first there is more, so that a short sentence needs one graph.

    >>> capacity_increment(100, 2048, costly=False)
    12
    """
    least = FIRST_ROOM if costly or not tokens else MORE_ROOM
    share = 2 if costly else 8
    return min(max(least, tokens // share), max_length - tokens)
