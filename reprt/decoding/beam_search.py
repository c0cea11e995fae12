"""From a trained model to translations: greedy and beam search."""

# By hand, for no library searches with any Keras model on three backends.

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from reprt.bucketing import more_room, shapes_are_costly, with_room
from reprt.compilation import IDS, compiled
from reprt.constants import PAD_ID
from reprt.data.batching import by_length, padded
from reprt.fixed import Fixed
from reprt.layers.dtypes import indices
from reprt.layers.masks import as_ids, check_vocabulary
from reprt.losses import softmax_and_normalizer

EXTRA_TOKENS = 50  # as in the original Transformer
BLOCK = 64  # columns, among which the best are sought first
MOST_LIVE = 0.75  # of a batch; below it, sentences that have ended are left out


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """A translation, or one of several.

    Attributes:
        ids: its tokens, without start and end.
        ended: whether the model ended it; False where the limit did.
        log_probability: the sum over its tokens, the end included.
        score: the same divided by the length penalty: what hypotheses are ranked by.
    """

    ids: tuple[int, ...]
    ended: bool
    log_probability: float
    score: float


class _Beams(NamedTuple):
    """The hypotheses of a batch: `beam_size` that go on, and as many that have ended.

    Each is `(sentences, beams)`; tokens are `(sentences, beams, capacity)`, and the
    last two `(sentences,)`.
    """

    last: Any  # token of each that goes on
    log_probabilities: Any  # -inf where there is none
    tokens: Any  # what follows the start
    ended_scores: Any  # best first, -inf where there is none
    ended_tokens: Any  # then zeros
    limits: Any  # the most tokens of each sentence
    live: Any  # whether its search goes on


class BeamSearch(Fixed):
    """Searches for the most likely translations; with one beam, greedily.

    Each step extends `beam_size` hypotheses of every sentence by a token. A hypothesis
    that ends among the best `beam_size` extensions is put aside. A sentence is done
    when `beam_size` hypotheses have ended. Hypotheses are ranked by

        log P(Y | X) / ((5 + |Y|) / 6)^length_penalty

    with |Y| counting the end. A model that cannot look ahead decodes with a cache, and
    each step costs one token. In RePE as published each new token changes the mean and
    variance of the target, and with them every earlier position. Its steps decode the
    whole prefix again.

    Results do not depend on the rest of the batch or on padding, with one exception.
    A model with `padding_in_statistics=True` sees padding: give it sources of one
    length.

    Its attributes cannot be changed. Copies and pickles have a copy of the model, and
    compile for themselves.

    Args:
        model: a `reprt.models.TranslationModel`.
        start_id: the id that every translation begins with.
        end_id: the id that ends one.
        beam_size: hypotheses of each sentence. Defaults to 1.
        length_penalty: the exponent above. Defaults to 0.6, as in the original
            Transformer; 0 ranks only by probability.
        max_tokens: longest translation, its end included. Defaults to the sentence's
            own length plus 50, as in the original Transformer.
        jit_compile: True has TensorFlow compile by XLA, as JAX does. Each of a few
            lengths costs seconds once. Most single sentences are faster then.

    Raises:
        ValueError: for an argument out of its range.
        ArithmeticError: when called, if the model's weights are not finite.

    >>> import keras, reprt
    >>> model = reprt.models.build("repe", source_vocab_size=9, target_vocab_size=9)
    >>> search = reprt.decoding.BeamSearch(model, 2, 3, beam_size=2, max_tokens=4)
    >>> best, second = search(keras.ops.array([[2, 5, 3]]))[0]
    >>> best.ended >= second.ended  # what the limit cut short comes last
    True
    """

    def __init__(
        self,
        model,
        start_id,
        end_id,
        beam_size=1,
        length_penalty=0.6,
        max_tokens=None,
        jit_compile=False,
    ):
        ids = PAD_ID + 1, model.target_vocab_size - 1
        for name, number, least, most in (
            ("start_id", start_id, *ids),
            ("end_id", end_id, *ids),
            ("beam_size", beam_size, 1, 1000),
            # Beyond 10, long translations' scores leave float32.
            ("length_penalty", length_penalty, 0, 10),
            (
                "max_tokens",
                1 if max_tokens is None else max_tokens,
                1,
                math.inf,
            ),
        ):
            if not least <= number <= most:  # so that NaN fails, too
                raise ValueError(
                    f"Expected `{name}` to lie between {least} and {most}. Received: "
                    f"{name}={number}."
                )
        self.model, self.start_id, self.end_id = model, start_id, end_id
        self.beam_size, self.length_penalty = beam_size, length_penalty
        self.max_tokens = max_tokens
        self.jit_compile = jit_compile
        self._never = np.zeros(model.target_vocab_size, "float32")
        self._never[[PAD_ID, start_id]] = -np.inf
        self._costly = jit_compile or shapes_are_costly()
        self._capacity = more_room(0, model.longest_target, self._costly)

    @functools.cached_property
    def _begin(self):
        """`start`, as the backend runs it fastest."""

        def begin(source_ids):
            return self.start(source_ids, self._capacity)

        return compiled(
            begin,
            self.model,
            signature=[IDS],
            often=False,
            jit_compile=self.jit_compile,
        )

    @functools.cached_property
    def _run(self):
        """`run`, as the backend runs it fastest."""
        return compiled(self.run, self.model, jit_compile=self.jit_compile)

    def __call__(self, source_ids) -> list[list[Hypothesis]]:
        """Returns each sentence's hypotheses, `beam_size` at most, the best first.

        Args:
            source_ids: integer array `(sentences, sources)`, 0 for padding.
        """
        if isinstance(source_ids, list | tuple) and not source_ids:
            return []
        source_ids = as_ids(source_ids)
        found: list[list[Hypothesis]] = [[] for _ in range(len(source_ids))]
        if not found:
            return found
        check_vocabulary("source_ids", source_ids, self.model.source_vocab_size)
        source_ids = ops.cast(source_ids, "int32")
        if self._costly and not self.model.padding_matters:
            source_ids = with_room(source_ids, self.model.longest_source)
        capacity = self._capacity
        beams, prefixes = self._begin(source_ids)
        most_live = (
            0.0 if self._costly else MOST_LIVE
        )  # fewer rows are another shape
        rows = np.arange(len(found))  # the sentences that are in the batch
        position = ops.zeros((), "int32")
        while len(rows):
            if int(position) == capacity:
                more = more_room(
                    capacity, self.model.longest_target, self._costly
                )
                room = ((0, 0), (0, 0), (0, more))
                beams = beams._replace(
                    tokens=ops.pad(beams.tokens, room),
                    ended_tokens=ops.pad(beams.ended_tokens, room),
                )
                prefixes = self.model.extended(prefixes, more)
                capacity += more
            fewest = int(most_live * len(rows))
            ends = ops.convert_to_tensor([capacity, fewest])
            beams, prefixes, position = self._run(
                beams, prefixes, position, ends
            )
            live = np.flatnonzero(ops.convert_to_numpy(beams.live))
            if len(live) > fewest:
                continue
            for row, best in self._found(beams, rows, int(position)):
                found[row] = best
            rows = rows[live]
            if len(live):
                beams, prefixes = self._of_sentences(beams, prefixes, live)
        return found

    def in_batches(
        self, source: Sequence[np.ndarray], batch_size: int
    ) -> Iterator[tuple[np.ndarray, list[list[Hypothesis]]]]:
        """Yields, of each batch of similar lengths, its indices and its hypotheses."""
        # Where padding counts, a translation must not depend on the rest of its batch.
        equal = self.model.padding_matters
        batches = list(
            by_length([len(ids) for ids in source], batch_size, equal)
        )
        rows = (
            padded([source[index] for index in chosen]) for chosen in batches
        )
        # One search leaves cores idle on TensorFlow.
        streams = 2 if keras.backend.backend() == "tensorflow" else 1
        with ThreadPoolExecutor(streams) as pool:
            yield from zip(batches, pool.map(self, rows))

    def most_tokens(self, source_tokens):
        """Returns the most tokens that translations of sources this long may have."""
        most = self.model.longest_target
        if self.max_tokens is None:
            return ops.minimum(source_tokens + EXTRA_TOKENS, most)
        return ops.full_like(source_tokens, min(self.max_tokens, most))

    def start(self, source_ids, capacity):
        """Returns beams and prefixes of a source, with room for `capacity` tokens."""
        memory = self.model.encode(source_ids, training=False)
        sentences = ops.shape(source_ids)[0]
        own = ops.sum(ops.cast(source_ids > PAD_ID, "int32"), axis=1)
        shape = (sentences, self.beam_size)
        none = ops.full(shape, -math.inf, "float32")
        beams = _Beams(
            last=ops.full(shape, self.start_id, "int32"),
            # One hypothesis to begin with, or all beams would be the same.
            log_probabilities=ops.where(
                indices(self.beam_size) == 0, 0.0, none
            ),
            tokens=ops.zeros((*shape, capacity), "int32"),
            ended_scores=none,
            ended_tokens=ops.zeros((*shape, capacity), "int32"),
            limits=self.most_tokens(own),
            live=ops.ones((sentences,), "bool"),
        )
        prefixes = self.model.start(memory, self.beam_size, capacity)
        return beams, prefixes

    def run(self, beams: _Beams, prefixes, position, ends):
        """Steps to either of two `ends`: a position, a number of live sentences."""
        begin = beams, prefixes, position

        def goes_on(beams, prefixes, position):
            live = ops.sum(ops.cast(beams.live, "int32"))
            return ops.logical_and(position < ends[0], live > ends[1])

        def step(beams, prefixes, position):
            new = (*self.step(beams, prefixes, position), position + 1)
            return keras.tree.map_structure(_in_shape_of, new, begin)

        return ops.while_loop(goes_on, step, begin)

    def step(self, beams: _Beams, prefixes, position):
        """Extends every hypothesis by a token; returns beams and prefixes.

        The prefixes are what the model keeps of the hypotheses; the position is a
        scalar tensor, the number of steps before.
        """
        last = ops.reshape(beams.last, (-1,))
        logits, prefixes = self.model.step(last, position, prefixes)
        k = self.beam_size
        # Twice as many as beams, because that many may end here. With one beam an end
        # ends the search.
        most = 1 if k == 1 else 2 * k
        each = min(most, logits.shape[1])
        # Few passes over the logits, for a vocabulary is wide.
        logits = ops.cast(logits, "float32")
        _, normalizer = softmax_and_normalizer(logits)
        best, token = _top_k(logits + ops.convert_to_tensor(self._never), each)
        best = ops.expand_dims(beams.log_probabilities, 2) + ops.reshape(
            best - normalizer, (-1, k, each)
        )
        best, index = _top_k(ops.reshape(best, (-1, k * each)), most)
        parent = index // each
        token = _columns(ops.reshape(token, (-1, k * each)), index)
        ends = token == self.end_id
        here = indices(ops.shape(beams.tokens)[2]) == position
        tokens = ops.where(here, token[:, :, None], _rows(beams.tokens, parent))

        # What ends is put aside, if it stands among the first.
        penalty = (
            (5.0 + ops.cast(position + 1, "float32")) / 6
        ) ** self.length_penalty
        first = indices(best.shape[1]) < k
        scores = ops.where(ends & first, best / penalty, -math.inf)
        scores = ops.concatenate([beams.ended_scores, scores], axis=1)
        ended_scores, kept = _top_k(scores, k)
        ended_tokens = ops.concatenate([beams.ended_tokens, tokens], axis=1)
        ended_tokens = _rows(ended_tokens, kept)

        # The best of the others go on.
        going, kept = _top_k(ops.where(ends, -math.inf, best), k)
        parent, token = _columns(parent, kept), _columns(token, kept)
        new = _Beams(
            last=token,
            log_probabilities=going,
            tokens=_rows(tokens, kept),
            ended_scores=ended_scores,
            ended_tokens=ended_tokens,
            limits=beams.limits,
            live=ops.logical_and(
                ops.any(ops.isinf(ended_scores), axis=1),
                position + 1 < beams.limits,
            ),
        )
        # A sentence that is done stays as it is until it is taken out.
        new = _Beams(*(_where(beams.live, n, o) for n, o in zip(new, beams)))
        if k > 1:
            sentences = indices(ops.shape(parent)[0])[:, None]
            chosen = ops.reshape(sentences * k + parent, (-1,))
            prefixes = prefixes.of_hypotheses(chosen)
        return new, prefixes

    def best(self, beams: _Beams):
        """Returns the tokens of each sentence's best hypothesis, then zeros."""
        ended = ops.isfinite(beams.ended_scores[:, :1])
        return ops.where(ended, beams.ended_tokens[:, 0], beams.tokens[:, 0])

    def _of_sentences(self, beams, prefixes, chosen):
        hypotheses = chosen[:, None] * self.beam_size + np.arange(
            self.beam_size
        )
        hypotheses = ops.convert_to_tensor(hypotheses.reshape(-1), "int32")
        chosen = ops.convert_to_tensor(chosen, "int32")
        beams = _Beams(*(ops.take(each, chosen, axis=0) for each in beams))
        return beams, prefixes.of_sentences(chosen, hypotheses)

    def _found(self, beams, rows, position):
        """The hypotheses of each sentence that is done."""
        arrays = _Beams(*map(ops.convert_to_numpy, beams))
        for number in np.flatnonzero(~arrays.live):
            own = _Beams(*(each[number] for each in arrays))
            length = min(position, own.limits)
            ended = [
                self._hypothesis(ids, True, score=score)
                for ids, score in zip(own.ended_tokens, own.ended_scores)
                if np.isfinite(score)
            ]
            # The limit came first: what has not ended ranks below what has.
            going = [
                self._hypothesis(ids[:length], False, log_probability=value)
                for ids, value in zip(own.tokens, own.log_probabilities)
                if np.isfinite(value)
            ]
            if not (best := (ended + going)[: self.beam_size]):
                raise ArithmeticError(
                    "Expected the model to give each word a probability. Received "
                    "numbers that are not finite: are its weights finite?"
                )
            yield rows[number], best

    def _hypothesis(self, ids, ended, score=None, log_probability=None):
        ids = ids[ids != PAD_ID]
        penalty = ((5 + len(ids)) / 6) ** self.length_penalty
        if score is None:
            score = log_probability / penalty
        words = tuple(ids[: len(ids) - ended].tolist())
        return Hypothesis(words, ended, float(score * penalty), float(score))


def _in_shape_of(new, old):
    """The new tensor, with the old one's shape where TensorFlow no longer knows it."""
    return new if new.shape == old.shape else ops.reshape(new, ops.shape(old))


def _top_k(x, count):
    """As `ops.top_k` of `(rows, columns)`, faster where there are many columns."""
    columns = x.shape[1]
    if columns < 4 * BLOCK * count:
        best, places = ops.top_k(x, count)
        return best, ops.cast(places, "int32")
    # The best lie in the blocks of columns whose maxima are largest.
    blocks = -(-columns // BLOCK)
    x = ops.pad(x, ((0, 0), (0, -columns % BLOCK)), constant_values=-math.inf)
    x = ops.reshape(x, (-1, blocks, BLOCK))
    _, chosen = ops.top_k(ops.max(x, axis=2), count)
    # In their order, so that the first of equals is chosen, as above.
    chosen = ops.sort(ops.cast(chosen, "int32"), axis=1)
    x = ops.reshape(_rows(x, chosen), (-1, count * BLOCK))
    best, places = _top_k(x, count)
    return best, _columns(chosen, places // BLOCK) * BLOCK + places % BLOCK


def _rows(x, chosen):
    """The chosen of each sentence's rows in `(sentences, rows, length)`."""
    chosen, (sentences, rows, length) = ops.cast(chosen, "int32"), ops.shape(x)
    first = indices(sentences)[:, None] * rows
    return ops.take(ops.reshape(x, (-1, length)), first + chosen, axis=0)


def _columns(x, chosen):
    return ops.take_along_axis(x, ops.cast(chosen, "int32"), axis=1)


def _where(live, new, old):
    return ops.where(
        ops.reshape(live, (-1, *[1] * (len(new.shape) - 1))), new, old
    )
