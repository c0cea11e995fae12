"""What a decoder block keeps of the tokens before, so that each step costs one."""

from typing import Any, NamedTuple

from keras import ops


class BlockCache(NamedTuple):
    """Keys and values of one decoder block, as its attentions take them.

    Hypotheses are those of all sentences, one sentence's after the other's. There is
    room for `capacity` tokens, so that shapes stay as they are from step to step.

    Attributes:
        keys: `(hypotheses, heads, capacity, key_dim)`, of the target.
        values: `(hypotheses, heads, capacity, value_dim)`, of the target.
        memory: the pair `(sentences, heads, sources, key_dim)` and `(sentences, heads,
            sources, value_dim)` of the encoded source, or, without cross attention, of
            the beginning of the same sequence; `()` if there is neither.
    """

    keys: Any
    values: Any
    memory: tuple = ()

    def written(self, keys, values, position):
        """Returns the same with a token, `(hypotheses, heads, 1, …)`, at `position`."""
        here = ops.equal(ops.arange(ops.shape(self.keys)[2]), position)[:, None]
        return self._replace(
            keys=ops.where(here, keys, self.keys),
            values=ops.where(here, values, self.values),
        )

    def of_hypotheses(self, chosen):
        """Returns these hypotheses alone, of the same sentences."""
        return self._replace(
            keys=ops.take(self.keys, chosen, axis=0),
            values=ops.take(self.values, chosen, axis=0),
        )

    def of_sentences(self, sentences, hypotheses):
        """Returns these sentences alone, and their hypotheses."""
        return self.of_hypotheses(hypotheses)._replace(
            memory=tuple(ops.take(each, sentences, axis=0) for each in self.memory)
        )

    def extended(self, tokens):
        """Returns the same with room for so many tokens more."""
        room = ((0, 0), (0, 0), (0, tokens), (0, 0))
        return self._replace(
            keys=ops.pad(self.keys, room), values=ops.pad(self.values, room)
        )
