"""How well a trained model predicts, with and without access to later tokens."""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
from keras import ops

from reprt.analysis.scores import METRICS, Metric, Score, scores
from reprt.bucketing import (
    bucket_length,
    capacity_increment,
    pad_to_bucket,
    shapes_are_costly,
)
from reprt.compilation import IDS, compiled
from reprt.data.batching import BatchPlan, batches_by_length, padded_batch
from reprt.data.encoding import EncodedSplit
from reprt.data.rows import Rows
from reprt.decoding.translator import Translator
from reprt.losses import MaskedCrossentropy
from reprt.models.base import check_model
from reprt.progress import ProgressCallback, ignore_progress

BATCH_SIZE = 64


@dataclasses.dataclass(frozen=True)
class Loss:
    """A loss over a split, in nats.

    Attributes:
        total: the sum over all real tokens.
        tokens: their number.
        mean_of_batches: the mean of the batches' token means, each weighted by its
            sentences, as Keras and the paper report it.
    """

    total: float
    tokens: int
    mean_of_batches: float

    @property
    def per_token(self) -> float:
        return self.total / self.tokens


def teacher_forced_loss(
    model,
    split: EncodedSplit,
    batch_size: int = BATCH_SIZE,
    batches: Rows | None = None,
) -> Loss:
    """Returns the loss when the decoder is given the whole reference at once.

    A model that looks ahead then sees what it has yet to predict.

    Args:
        model: a `reprt.models.TranslationModel`.
        split: the sentences, in the order in which they make batches.
        batch_size: sentences a batch. It matters with `padding_in_statistics`.
        batches: the indices of each batch, such as `BatchPlan.batches` returns; None
            for batches of `batch_size` sentences.

    >>> import numpy as np, reprt
    >>> from reprt.data.encoding import EncodedSplit
    >>> model = reprt.models.build("baseline", 9, 9, num_blocks=1)
    >>> split = EncodedSplit([np.array([2, 5, 3])], [np.array([2, 6, 7, 3])])
    >>> forced, prefix = teacher_forced_loss(model, split), prefix_loss(model, split)
    >>> forced.tokens  # 6, 7 and [END]
    3
    >>> abs(forced.per_token - prefix.per_token) < 1e-4  # it cannot look ahead
    True
    """
    check_model(model)
    crossentropy = MaskedCrossentropy()

    @functools.partial(compiled, model=model, signature=[IDS] * 3)
    def sum_and_count(source, target, labels):
        return crossentropy.sum_and_count(labels, model((source, target)))

    losses, counts, sentences = [], [], []
    bucket = None
    if shapes_are_costly() and not model.padding_matters:
        max_length = min(model.longest_source, model.longest_target)
        bucket = functools.partial(bucket_length, max_length=max_length)
    if batches is None:
        batches = BatchPlan(split.lengths, batch_size).batches()
    for batch in batches:
        (source, target), labels = padded_batch(split, batch, bucket)
        loss, count = map(float, sum_and_count(source, target, labels))
        losses.append(loss)
        counts.append(int(count))
        sentences.append(len(labels))
    return _loss_of_batches(losses, counts, sentences)


def prefix_loss(
    model,
    split: EncodedSplit,
    batch_size: int = BATCH_SIZE,
    progress: ProgressCallback = ignore_progress,
    batches: Rows | None = None,
) -> Loss:
    """Returns the loss when the decoder is given only the tokens before each position.

        − log P(y_t | x, y_1 … y_{t−1}), from a decoder that was given y_1 … y_{t−1}

    It is what search sees. For a model that cannot look ahead it equals the
    teacher-forced loss; the difference between the two is what looking ahead is worth.

    Args:
        model, split, batches: as in `teacher_forced_loss`. Only `mean_of_batches`
            depends on the batches.
        batch_size: the most sentences of a batch.
        progress: called with how far the work is.

    Raises:
        ValueError: for a target that is longer than the model takes.
    """
    losses, counts = _sentence_losses(model, split, batch_size, progress)
    if batches is None:
        batches = BatchPlan(split.lengths, batch_size).batches()
    return _sum_losses(losses, counts, batches)


def _sum_losses(losses: np.ndarray, counts: np.ndarray, batches: Rows) -> Loss:
    """Returns the loss of batches by the losses and tokens of all sentences."""
    return _loss_of_batches(
        [losses[rows].sum() for rows in batches],
        [counts[rows].sum() for rows in batches],
        [len(rows) for rows in batches],
    )


def _loss_of_batches(losses, counts, sentences) -> Loss:
    """Returns the loss by the sum, the tokens and the sentences of each batch."""
    # A batch may have no token.
    means = np.array(losses) / np.maximum(counts, 1)
    mean = np.average(means, weights=sentences)
    return Loss(float(np.sum(losses)), int(np.sum(counts)), float(mean))


def log_probabilities(
    translator: Translator,
    split: EncodedSplit,
    batch_size: int = BATCH_SIZE,
    progress: ProgressCallback = ignore_progress,
) -> np.ndarray:
    """Returns log P(Y | X) of each sentence pair, all its ids included.

        log P(Y | X) = Σ_t log P(y_t | x, y_1 … y_{t−1})

    Each factor is that of search, as in `prefix_loss`. The last one is that of the end,
    unless a target was cut: `split.cut` is the share of pairs of which a side was.

    Args:
        translator: the model with its vocabularies.
        split: the ids of the pairs, such as `translator.encode` returns.
        batch_size, progress: as in `prefix_loss`.

    Raises:
        ValueError: for a target that is longer than the model takes.

    >>> import reprt
    >>> translator = reprt.Translator.load("runs/mine")  # doctest: +SKIP
    >>> pairs = translator.encode(["uma casa"], ["a house"])  # doctest: +SKIP
    >>> log_probabilities(translator, pairs)  # doctest: +SKIP
    array([-0.31])
    """
    return -_sentence_losses(translator.model, split, batch_size, progress)[0]


# The splits of a run are measured one after the other, and graphs take long to make.
@functools.lru_cache(maxsize=1)
def _prefix_steps(model, room: int):
    """Returns the functions that begin a batch and that score its next tokens."""
    crossentropy = MaskedCrossentropy()

    @functools.partial(compiled, model=model, signature=[IDS])
    def start(source):
        return model.start(model.encode(source, training=False), 1, room)

    @functools.partial(compiled, model=model)
    def step(ids, labels, position, prefixes):
        logits, prefixes = model.step(ids, position, prefixes)
        labels, logits = ops.expand_dims(labels, 1), ops.expand_dims(logits, 1)
        return crossentropy.call(labels, logits)[:, 0], prefixes

    return start, step


def _sentence_losses(model, split, batch_size, progress):
    """Returns the losses of each sentence's tokens, summed, and how many they are."""
    check_model(model)
    max_length, costly = model.longest_target, shapes_are_costly()
    # The last token of a target is a label only.
    longest = max((len(row) for row in split.target), default=1) - 1
    if longest > max_length:
        raise ValueError(
            f"Expected targets of at most {max_length} tokens before the last, as the "
            f"model takes. Received one of {longest}."
        )
    room = capacity_increment(0, max_length, costly)
    start, step = _prefix_steps(model, room)
    losses, counts = np.zeros(len(split)), np.zeros(len(split), int)
    # As in a translation, a source is never padded where padding would count.
    equal = model.padding_matters
    side = split.source if equal else split.target
    done = 0
    for batch in batches_by_length(
        [len(row) for row in side], batch_size, equal
    ):
        (source, inputs), labels = padded_batch(split, batch)
        if costly and not equal:
            source = pad_to_bucket(source, model.longest_source)
        prefixes, capacity = start(source), room
        for position, (ids, next_ids) in enumerate(zip(inputs.T, labels.T)):
            if position == capacity:
                more = capacity_increment(position, max_length, costly)
                prefixes = model.extend(prefixes, more)
                capacity += more
            place = ops.convert_to_tensor(position, "int32")
            loss, prefixes = step(ids, next_ids, place, prefixes)
            losses[batch] += ops.convert_to_numpy(loss)
            counts[batch] += next_ids != 0
        done += len(batch)
        progress(f"prefix loss of {done}/{len(split)} sentences")
    return losses, counts


def translation_scores(
    translator: Translator,
    source: Sequence[np.ndarray],
    references: Sequence[str],
    progress: ProgressCallback = ignore_progress,
    language: str = "en",
    words: Sequence[str] | None = None,
    metrics: Sequence[Metric] = METRICS,
) -> tuple[Sequence[str], list[Score]]:
    """Translates a split and compares it with its references.

    Returns the translations, words joined by spaces, and their scores.

    Args:
        translator: the model with its vocabularies and its search.
        source: the ids of the split's source sentences.
        references: its target sentences.
        progress: called with how far the work is.
        language, words, metrics: as in `reprt.analysis.scores.scores`.
    """
    hypotheses = translator.search_all(source, progress)
    tokenizer = translator.target_tokenizer
    translations = tokenizer.decode([best.ids for best, *_ in hypotheses])
    return translations, scores(
        tokenizer,
        translations,
        references,
        language,
        words,
        metrics,
    )


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What `evaluate` measured on one split.

    Attributes:
        prefix: the loss given only the tokens before each position.
        losses: the same of each sentence, summed over its tokens.
        teacher_forced: the loss given the whole reference; None if it was left out.
        translations: words joined by spaces, as the tokenizer decodes them.
        scores: those of the translations.
    """

    prefix: Loss
    losses: np.ndarray
    teacher_forced: Loss | None
    translations: Sequence[str]
    scores: Sequence[Score]


def evaluate(
    translator: Translator,
    split: EncodedSplit,
    references: Sequence[str] | None,
    batches: Rows | None = None,
    progress: ProgressCallback = ignore_progress,
    language: str = "en",
    words: Sequence[str] | None = None,
    metrics: Sequence[Metric] = METRICS,
    teacher_forced: bool = True,
) -> Evaluation:
    """Measures a model on one split, as training, search and readers see it.

    Args:
        translator, progress, language, words, metrics: as in `translation_scores`.
        split: the sentences' ids.
        references: the target sentences; None if nothing is translated, as by a
            language model.
        batches: as in `teacher_forced_loss`.
        teacher_forced: whether that loss is measured as well.
    """
    model = translator.model
    if batches is None:
        batches = BatchPlan(split.lengths, BATCH_SIZE).batches()
    forced_loss = None
    if teacher_forced:
        forced_loss = teacher_forced_loss(model, split, batches=batches)
    losses, counts = _sentence_losses(model, split, BATCH_SIZE, progress)
    prefix = _sum_losses(losses, counts, batches)
    translations: Sequence[str] = ()
    results: Sequence[Score] = ()
    if references is not None:
        translations, results = translation_scores(
            translator,
            split.source,
            references,
            progress,
            language,
            words,
            metrics,
        )
    return Evaluation(prefix, losses, forced_loss, translations, results)
