"""What a decoder block keeps of earlier tokens, so that a step computes only one."""

from typing import Any, NamedTuple

from keras import ops

from reprt.layers.attention import SWAPPED
from reprt.layers.precision import indices


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

        def zeros(*shape):
            shape = hypotheses, attention.num_heads, *shape
            return ops.zeros(shape, attention.compute_dtype)

        key, value = attention.key_dim, attention.value_dim or attention.key_dim
        past = zeros(key, 0), zeros(0, value)
        return cls(past, (zeros(capacity, key), zeros(capacity, value)))

    def written(self, keys, values, position):
        """Returns the same with what `PMHA.token` made, at a place after the past."""
        here = indices(_tokens(self.recent)) == position - _tokens(self.past)
        recent = (
            ops.where(here[:, None], token, room)
            for token, room in zip((keys, values), self.recent)
        )
        return self._replace(recent=tuple(recent))

    def until(self, position):
        """Returns what tokens up to a position have, in parts for `PMHA.attend_to`."""
        keys, values = self.recent
        seen = indices(_tokens(self.recent)) <= position - _tokens(self.past)
        recent = ops.transpose(keys, SWAPPED), values, seen[None, None]
        return (*self.past, None), recent

    def extended(self, tokens):
        """Returns the same with room for more tokens, once there is none."""
        keys, values = self.recent
        past = (
            ops.concatenate(
                [self.past[0], ops.transpose(keys, SWAPPED)], axis=3
            ),
            ops.concatenate([self.past[1], values], axis=2),
        )
        recent = (
            ops.zeros((*ops.shape(x)[:2], tokens, x.shape[3]), x.dtype)
            for x in self.recent
        )
        return BlockCache(past, tuple(recent))


def _tokens(part):
    return ops.shape(part[1])[2]
