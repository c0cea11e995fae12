"""What training minimises, and what it counts: the same on every backend."""

from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops

from reprt.constants import END_ID, PAD_ID
from reprt.linear_crossentropy import linear_crossentropy
from reprt.losses import MaskedCrossentropy, real_tokens
from reprt.metrics import correct_tokens
from reprt.training.settings import TranslationSettings


class Term(NamedTuple):
    """A part of the loss: `weight · total / count`, over all replicas.

    Attributes:
        total: the sum over this replica's tokens.
        count: the number of these tokens.
        weight: a number, or a scalar tensor made from the step.
    """

    total: Any
    count: Any
    weight: Any = 1.0


class Sums(NamedTuple):
    """Sums over a batch's targets, neither smoothed nor weighted: float32 scalars.

    Attributes:
        loss: the cross-entropy in nats.
        tokens: the number of real labels.
        correct: how many of them are the model's likeliest tokens.
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
        settings: those of `[objective]`.
        steps: how many steps the whole run has.

    >>> import keras, reprt
    >>> model = reprt.models.build("baseline", 9, 9)
    >>> source, target = keras.ops.array([[2, 5, 3]]), keras.ops.array([[2, 6]])
    >>> sums = Objective(model).validate((source, target), keras.ops.array([[6, 3]]))
    >>> float(sums.tokens)
    2.0
    """

    def __init__(self, model, settings=TranslationSettings(), steps=1):
        self.model = model
        self.settings = settings
        self.steps = steps
        self._crossentropy = MaskedCrossentropy()

    def terms(self, inputs, labels, step) -> tuple[list[Term], Sums]:
        """Returns the parts of the loss after `step` steps, and the log's sums."""
        states = self.model.states(inputs, training=True)
        term, sums = self._scored(states, labels, self.settings.label_smoothing)
        return [term], sums

    def _scored(self, states, labels, smoothing=0.0) -> tuple[Term, Sums]:
        """The cross-entropy of labels, given what their logits are made of."""
        labels = ops.reshape(labels, (-1,))
        real = real_tokens(labels)
        states = ops.reshape(states, (-1, states.shape[-1]))
        kernel, bias = self.model.projection()
        smoothed, loss, hits = linear_crossentropy(
            states,
            kernel,
            bias,
            labels,
            real,
            smoothing,
        )
        tokens = ops.sum(real)
        correct = ops.sum(ops.cast(hits, real.dtype) * real)
        return Term(smoothed, tokens), Sums(loss, tokens, correct)

    def loss(
        self,
        inputs,
        labels,
        step,
        over_replicas: Callable = lambda number: number,
    ) -> tuple[Any, Sums]:
        """Returns this replica's part of the loss to be differentiated, and the sums.

        The parts of all replicas, whose numbers `over_replicas` adds up, make the loss
        of the whole batch: its gradients do not depend on how many there are.
        """
        terms, sums = self.terms(inputs, labels, step)
        loss = 0.0
        for term in terms:
            count = ops.maximum(over_replicas(term.count), 1.0)
            loss += term.weight * term.total / count
        return loss, sums

    def validate(self, inputs, labels) -> Sums:
        """Returns the sums over a batch, without dropout, smoothing or weights."""
        logits = self.model.logits(self.model.states(inputs, training=False))
        loss, tokens = self._crossentropy.sum_and_count(labels, logits)
        correct = ops.sum(correct_tokens(labels, logits) * real_tokens(labels))
        return Sums(loss, tokens, correct)


class TranslationAndSource(Objective):
    """The cross-entropy of the source's tokens as well, for a part of the training.

        loss = λ(s) · L_source + L_target
        λ(s) = 1 + (α − 1) s / (B S)       up to s = B S, for step s of S
        λ(s) = α (S − s) / (S − B S)       after it

    Both are means over tokens. Every source token counts except the first, which has
    none before it, and the end. Only labels of the target are smoothed.

    Args:
        model: one that `scores_source`.
        settings: a `TranslationAndSourceSettings`, α its `alpha` and B its `turn`.
        steps: S.

    >>> import reprt
    >>> from reprt.training.settings import TranslationAndSourceSettings
    >>> sizes = {"num_blocks": 1, "embedding_dim": 8, "feed_forward_dim": 16}
    >>> model = reprt.models.build("decoder-only", 9, 9, **sizes)
    >>> settings = TranslationAndSourceSettings()
    >>> objective = TranslationAndSource(model, settings, steps=100)
    >>> [round(float(objective.weight(step)), 3) for step in (0, 25, 100)]
    [1.0, 0.1, 0.0]

    Reference: Wang et al. 2021, "Language models are good translators".
    """

    def weight(self, step):
        """Returns λ(s), a float32 scalar."""
        alpha, turn = self.settings.alpha, self.settings.turn
        done = ops.cast(step, "float32") / self.steps
        falling = 1 + (alpha - 1) * done / turn
        return ops.where(done < turn, falling, alpha * (1 - done) / (1 - turn))

    def terms(self, inputs, labels, step) -> tuple[list[Term], Sums]:
        source, target = self.model.both_states(inputs, training=True)
        term, sums = self._scored(target, labels, self.settings.label_smoothing)
        labels = self.model.source_labels(inputs)
        labels = ops.where(labels == END_ID, PAD_ID, labels)
        source_term, _ = self._scored(source, labels)
        source_term = source_term._replace(weight=self.weight(step))
        return [source_term, term], sums


OBJECTIVES: dict[str, type[Objective]] = {
    "translation": Objective,
    "language_model": Objective,
    "translation_and_source": TranslationAndSource,
}
