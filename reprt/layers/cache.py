"""What a decoder block keeps of earlier tokens, so that a step computes only one."""

from typing import Any, NamedTuple

from keras import ops

from reprt.gradients import SWAPPED
from reprt.layers.dtypes import indices


class BlockCache(NamedTuple):
    """Keys and values of one decoder block's self-attention.

    A step writes only into the recent tokens, because TensorFlow copies a tensor that
    it writes into.

    Attributes:
        past: of the hypotheses' first tokens, as attention takes them: the pair
            `(hypotheses, heads, key_dim, tokens)` and `(hypotheses, heads, tokens,
            value_dim)`.
        recent: of the tokens after them, with room for some more, so that shapes stay
            as they are from step to step: `(hypotheses, heads, tokens, …)` both.
    """

    past: Any
    recent: Any

    @classmethod
    def empty(cls, attention, hypotheses, capacity):
        """Returns the cache of hypotheses without a token, by their self-attention."""

        heads, dtype = attention.num_heads, attention.compute_dtype

        def zeros(*shape):
            return ops.zeros((hypotheses, heads, *shape), dtype)

        key = attention.key_dim
        value = attention.value_dim or key
        past = zeros(key, 0), zeros(0, value)
        recent = zeros(capacity, key), zeros(capacity, value)
        return cls(past, recent)

    @property
    def _recent_places(self):
        """Where in the sequence the recent tokens stand."""
        return _tokens(self.past) + indices(_tokens(self.recent))

    def write(self, keys, values, position):
        """Returns the same with what `PMHA.token` made, at a place after the past."""
        is_place = (self._recent_places == position)[:, None]
        room_for_keys, room_for_values = self.recent
        keys = ops.where(is_place, keys, room_for_keys)
        values = ops.where(is_place, values, room_for_values)
        return self._replace(recent=(keys, values))

    def sequences_until(self, position):
        """Returns the sequences of `PMHA.attend_to` for tokens up to a position."""
        keys, values = self.recent
        mask = (self._recent_places <= position)[None, None]
        past = (*self.past, None)
        recent = (ops.transpose(keys, SWAPPED), values, mask)
        return past, recent

    def extend(self, tokens):
        """Returns the same with room for more tokens, once there is none."""
        past_keys, past_values = self.past
        keys, values = self.recent
        swapped = ops.transpose(keys, SWAPPED)
        past_keys = ops.concatenate([past_keys, swapped], axis=3)
        past_values = ops.concatenate([past_values, values], axis=2)
        recent = _room_like(keys, tokens), _room_like(values, tokens)
        return BlockCache((past_keys, past_values), recent)


def _room_like(x, tokens):
    hypotheses, heads, _, width = ops.shape(x)
    return ops.zeros((hypotheses, heads, tokens, width), x.dtype)


def _tokens(part):
    _, values = part
    return ops.shape(values)[2]
