"""What a model keeps of unfinished translations from one word to the next."""

from typing import Any, NamedTuple

import keras
from keras import ops


class Prefixes(NamedTuple):
    """The prefixes of hypotheses, one sentence's after the other's, as many of each.

    Attributes:
        state: tensors `(hypotheses, …)`, in any structure.
        memory: tensors `(sentences, …)`, which the hypotheses of a sentence share.
    """

    state: Any
    memory: Any = ()

    def take_hypotheses(self, numbers):
        """Returns these hypotheses only, of the same sentences."""
        return self._replace(state=_rows(self.state, numbers))

    def take_sentences(self, sentences, hypotheses):
        """Returns these sentences only, and their hypotheses."""
        state = _rows(self.state, hypotheses)
        return Prefixes(state, _rows(self.memory, sentences))


def _rows(tensors, numbers):
    return keras.tree.map_structure(
        lambda x: ops.take(x, numbers, axis=0), tensors
    )
