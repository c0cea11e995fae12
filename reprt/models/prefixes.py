"""What a model keeps of unfinished translations from one word to the next."""

from typing import Any, NamedTuple

import keras
from keras import ops


class CachedPrefixes(NamedTuple):
    """Prefixes whose earlier positions no later token changes: a step costs one token.

    Hypotheses are those of all sentences, one sentence's after the other's, as many of
    each.

    Attributes:
        blocks: a `BlockCache` for each decoder block.
        embedding: what the embedding of a further token has to know, tensors
            `(hypotheses, …)`.
        memory_mask: boolean `(sentences, sources)`, True on real source tokens.
    """

    blocks: tuple
    embedding: Any
    memory_mask: Any

    def of_hypotheses(self, chosen):
        """Returns these hypotheses only, of the same sentences."""
        return self._replace(
            blocks=tuple(block.of_hypotheses(chosen) for block in self.blocks),
            embedding=self._embedding(chosen),
        )

    def of_sentences(self, sentences, hypotheses):
        """Returns these sentences only, and their hypotheses."""
        return CachedPrefixes(
            tuple(block.of_sentences(sentences, hypotheses) for block in self.blocks),
            self._embedding(hypotheses),
            ops.take(self.memory_mask, sentences, axis=0),
        )

    def extended(self, tokens):
        """Returns the same with room for more tokens."""
        return self._replace(
            blocks=tuple(block.extended(tokens) for block in self.blocks)
        )

    def _embedding(self, chosen):
        return keras.tree.map_structure(
            lambda each: ops.take(each, chosen, axis=0), self.embedding
        )


class RecomputedPrefixes(NamedTuple):
    """Prefixes in which each token changes all the positions before it.

    Statistics over the whole sequence have this effect. Only the tokens are kept, and
    each step decodes the whole prefix again.

    Attributes:
        ids: `(hypotheses, capacity)` integers, the tokens, then zeros.
        memory: what else decoding takes of the sentences, tensors `(hypotheses, …)`.
    """

    ids: Any
    memory: tuple

    def written(self, ids, position):
        """Returns the same with tokens `(hypotheses,)` at a position."""
        here = ops.equal(ops.arange(ops.shape(self.ids)[1]), position)
        return self._replace(ids=ops.where(here, ids[:, None], self.ids))

    def of_hypotheses(self, chosen):
        # A sentence's hypotheses have the same memory.
        return self._replace(ids=ops.take(self.ids, chosen, axis=0))

    def of_sentences(self, sentences, hypotheses):
        memory = tuple(ops.take(each, hypotheses, axis=0) for each in self.memory)
        return RecomputedPrefixes(ops.take(self.ids, hypotheses, axis=0), memory)

    def extended(self, tokens):
        return self._replace(ids=ops.pad(self.ids, ((0, 0), (0, tokens))))
