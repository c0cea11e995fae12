"""What a model keeps of unfinished translations from one word to the next."""

from typing import Any, NamedTuple

import keras
from keras import ops


class Prefixes(NamedTuple):
    """The prefixes of hypotheses, one sentence's after the other's, as many of each.

    Attributes:
        own: tensors `(hypotheses, …)`, in any structure.
        memory: tensors `(sentences, …)`, which the hypotheses of a sentence share.
    """

    own: Any
    memory: Any = ()

    def of_hypotheses(self, chosen):
        """Returns these hypotheses only, of the same sentences."""
        return self._replace(own=_taken(self.own, chosen))

    def of_sentences(self, sentences, hypotheses):
        """Returns these sentences only, and their hypotheses."""
        return Prefixes(
            _taken(self.own, hypotheses), _taken(self.memory, sentences)
        )


def _taken(tensors, chosen):
    return keras.tree.map_structure(
        lambda x: ops.take(x, chosen, axis=0), tensors
    )
