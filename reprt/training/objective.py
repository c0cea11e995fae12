"""What training minimises, and what it counts: the same on every backend."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from keras import ops

from reprt.constants import END_ID, PAD_ID
from reprt.linear_crossentropy import linear_crossentropy
from reprt.losses import MaskedCrossentropy, real_tokens
from reprt.metrics import correct_tokens
from reprt.training.settings import TranslationSettings


class Term(NamedTuple):
    """A term of the loss: `weight · total / count`.

    Attributes:
        total: the sum over the tokens, of which `Objective.counts` has the number.
        weight: a number, or a scalar tensor made from the step.
    """

    total: Any
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
    overrides `terms` and `counts`. Its weights may depend on the step, and on nothing
    else that changes while training goes on, so that a resumed run goes on exactly.

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
        """Returns the terms of the loss after `step` steps, and the log's sums."""
        states = self.model.states(inputs, training=True)
        term, sums = self._scored(states, labels, self.settings.label_smoothing)
        return [term], sums

    def counts(self, inputs, labels) -> list[Any]:
        """Returns the number of tokens of each of the `terms`."""
        return [ops.sum(real_tokens(labels))]

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
        return Term(smoothed), Sums(loss, tokens, correct)

    def loss(
        self,
        inputs,
        labels,
        step,
        counts: Sequence[Any],
    ) -> tuple[Any, Sums]:
        """Returns a part's share of a batch's loss, and the sums.

        The `counts` are those of the whole batch, of which a part may be that of a
        replica. The shares of all parts add up to the batch's loss, and so do their
        gradients.
        """
        terms, sums = self.terms(inputs, labels, step)
        loss = 0.0
        for term, count in zip(terms, counts, strict=True):
            loss += term.weight * term.total / ops.maximum(count, 1.0)
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
        source_term, _ = self._scored(source, self._source_labels(inputs))
        source_term = source_term._replace(weight=self.weight(step))
        return [source_term, term], sums

    def counts(self, inputs, labels) -> list[Any]:
        source = real_tokens(self._source_labels(inputs))
        return [ops.sum(source), *super().counts(inputs, labels)]

    def _source_labels(self, inputs):
        labels = self.model.source_labels(inputs)
        return ops.where(labels == END_ID, PAD_ID, labels)


OBJECTIVES: dict[str, type[Objective]] = {
    "translation": Objective,
    "language_model": Objective,
    "translation_and_source": TranslationAndSource,
}
