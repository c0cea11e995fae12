"""What training makes small, and what it counts: the same on every backend."""

from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops

from reprt.losses import MaskedCrossentropy, real_tokens
from reprt.metrics import correct_tokens
from reprt.training.linear_crossentropy import linear_crossentropy


class Term(NamedTuple):
    """A part of the loss: `weight · total / count`, over all replicas.

    Attributes:
        total: the sum over this replica's tokens.
        count: their number.
        weight: a number, or a scalar tensor made from the step.
    """

    total: Any
    count: Any
    weight: Any = 1.0


class Sums(NamedTuple):
    """Sums over a batch, neither smoothed nor weighted, each a float32 scalar.

    Attributes:
        loss: the cross-entropy in nats.
        tokens: the number of real labels.
        correct: how many of them the model holds the most likely.
    """

    loss: Any
    tokens: Any
    correct: Any


class Objective:
    """The masked cross-entropy of a model, as a function of batch and step.

    Backends differentiate `loss`, reduce its sums and compile it. Another objective
    overrides `terms`: its weights may depend on the step, and on nothing else that
    changes while training goes on, so that a resumed run goes on exactly.

    Args:
        model: a built `reprt.models.TranslationModel`.

    Example:

    >>> import keras, reprt
    >>> model = reprt.models.build("baseline", 9, 9)
    >>> source, target = keras.ops.array([[2, 5, 3]]), keras.ops.array([[2, 6]])
    >>> sums = Objective(model).validate((source, target), keras.ops.array([[6, 3]]))
    >>> float(sums.tokens)
    2.0
    """

    def __init__(self, model):
        self.model = model
        self._crossentropy = MaskedCrossentropy()

    def terms(self, inputs, labels, step) -> tuple[list[Term], Sums]:
        """Returns the parts of the training loss, and the sums for the log.

        Args:
            inputs: what the model's `states` takes.
            labels: integers, `(batch, targets)` or, packed, `(1, packed)`.
            step: scalar, the number of optimizer steps before.
        """
        tokens = ops.sum(real_tokens(labels))
        states = self.model.states(inputs, training=True)
        kernel, bias = self.model.projection()
        loss, correct = linear_crossentropy(
            ops.reshape(states, (-1, states.shape[-1])),
            kernel,
            bias,
            ops.reshape(labels, (-1,)),
        )
        return [Term(loss, tokens)], Sums(loss, tokens, correct)

    def loss(
        self, inputs, labels, step, over_replicas: Callable = lambda number: number
    ) -> tuple[Any, Sums]:
        """Returns this replica's part of the loss to be differentiated, and the sums.

        The parts of all replicas add up to the loss of the whole batch, so that its
        gradients do not depend on how many there are.

        Args:
            inputs, labels, step: as in `terms`.
            over_replicas: adds up a number over replicas.
        """
        terms, sums = self.terms(inputs, labels, step)
        parts = [
            term.weight * term.total / ops.maximum(over_replicas(term.count), 1.0)
            for term in terms
        ]
        return sum(parts[1:], parts[0]), sums

    def validate(self, inputs, labels) -> Sums:
        """Returns the sums over a batch, without dropout, smoothing or weights."""
        logits = self.model.logits(self.model.states(inputs, training=False))
        loss, tokens = self._crossentropy.sum_and_count(labels, logits)
        correct = ops.sum(correct_tokens(labels, logits) * real_tokens(labels))
        return Sums(loss, tokens, correct)
