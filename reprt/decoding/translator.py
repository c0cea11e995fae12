"""From sentences to sentences: a trained model with its vocabularies and its search."""

import dataclasses
import itertools
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from keras import ops

from reprt.constants import END, UNKNOWN_ID
from reprt.data.corpora.corpus import check_aligned, has_a_word
from reprt.data.encoding import EncodedSplit
from reprt.data.tokenizers.registry import TOKENIZERS
from reprt.data.tokenizers.tokenizer import Tokenizer
from reprt.decoding.attention_maps import AttentionMaps
from reprt.decoding.beam_search import BeamSearch, Hypothesis
from reprt.decoding.run_folder import read_config, read_vocabularies
from reprt.fixed import Fixed
from reprt.models.base import check_model
from reprt.models.registry import load_model
from reprt.progress import ProgressCallback, ignore_progress

# The hypotheses of a batch.
ROWS = 256
# The sentences that are read before the first of them is translated.
AHEAD = 1024


@dataclasses.dataclass(frozen=True)
class Alternative(Hypothesis):
    """One translation of a sentence: a hypothesis and its words.

    Attributes:
        text: as people write it, though without capitals and accents where the
            vocabulary has none.
        tokens: the pieces that the model wrote.
    """

    text: str
    tokens: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Translation:
    """A sentence and its translations, the best first.

    Attributes:
        source: the sentence as it was given.
        alternatives: at least one, unless the sentence was empty.
        notes: what a reader should know, such as that the sentence was cut.
    """

    source: str
    alternatives: tuple[Alternative, ...]
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The best translation; empty for an empty sentence."""
        return self.alternatives[0].text if self.alternatives else ""

    @property
    def tokens(self) -> tuple[str, ...]:
        return self.alternatives[0].tokens if self.alternatives else ()

    @property
    def score(self) -> float:
        """The best translation's score; 0 for an empty sentence."""
        return self.alternatives[0].score if self.alternatives else 0.0


class Translator(Fixed):
    """Translates sentences.

    A sentence without a visible character has an empty translation.
    A sentence longer than the model was trained for is cut and, as in training, loses
    its end. Words for which the vocabulary has no piece become `[UNK]`. The
    translation's notes say so.

    It can be copied and pickled, also for other processes; deep copies and pickles hold
    the model. Its attributes cannot be changed: make another one for another model.

    Args:
        model: a `reprt.models.TranslationModel`.
        source_tokenizer, target_tokenizer: its vocabularies.
        max_tokens: the longest source, in tokens. Defaults to 128.
        search: arguments of `reprt.decoding.BeamSearch`, such as `beam_size`.

    Raises:
        ValueError: for a tokenizer that is not of the model's size, or as `BeamSearch`.

    >>> import reprt
    >>> translator = reprt.Translator.load("runs/mine", beam_size=4)  # doctest: +SKIP
    >>> translator("a menina dormiu .").text  # doctest: +SKIP
    'the girl slept.'
    """

    def __init__(
        self,
        model,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        max_tokens: int = 128,
        search: Mapping[str, Any] | None = None,
    ):
        check_model(model)
        for side, tokenizer, pieces in (
            ("source", source_tokenizer, model.source_vocab_size),
            ("target", target_tokenizer, model.target_vocab_size),
        ):
            if len(tokenizer) != pieces:
                raise ValueError(
                    f"Expected `{side}_tokenizer` to have the {pieces} pieces of the "
                    f"model's {side}. Received: {len(tokenizer)}."
                )
        self.model = model
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.max_tokens = min(max_tokens, model.longest_source)
        edges = target_tokenizer.start_id, target_tokenizer.end_id
        self.search = BeamSearch(model, *edges, **(search or {}))

    @classmethod
    def load(cls, run: Path | str, **search) -> "Translator":
        """Reads a run folder of `reprt train`; `search` is that of the class."""
        run = Path(run)
        config = read_config(run)
        kind = TOKENIZERS[config["vocabulary"]["name"]]
        source, target = read_vocabularies(run, kind)
        model = load_model(run / "model.keras")
        max_tokens = config["text"]["max_tokens"]
        return cls(model, source, target, max_tokens, search)

    def __call__(self, sentences):
        """Returns the `Translation` of a sentence, or a list of those of several.

        Args:
            sentences: a string or several: a list, a NumPy array, a tensor of
                TensorFlow, a column of a table. Anything else, such as an empty cell's
                NaN, is a `ValueError` before the first sentence is translated.
        """
        if isinstance(sentences, str):
            return next(self.stream([sentences]))
        return list(self.stream(list(_strings(sentences))))

    def stream(
        self,
        sentences: Iterable,
        ahead: int = AHEAD,
    ) -> Iterator[Translation]:
        """Yields translations in order, while sentences are still being read.

        Args:
            sentences: as in the call.
            ahead: how many sentences are read before the first is translated.
        """
        if ahead < 1:
            raise ValueError(
                f"Expected `ahead` to be at least 1. Received: {ahead}."
            )
        strings = _strings(sentences)
        while chunk := list(itertools.islice(strings, ahead)):
            with_words = [text for text in chunk if has_a_word(text)]
            translations = iter(self._translations(with_words))
            for text in chunk:
                if has_a_word(text):
                    yield next(translations)
                else:
                    yield Translation(text, ())

    def search_all(
        self,
        source: Sequence[np.ndarray],
        progress: ProgressCallback = ignore_progress,
    ) -> list[list[Hypothesis]]:
        """Searches for translations of ids, those of like length together."""
        translations: list[list[Hypothesis]] = [[]] * len(source)
        batch_size = max(1, ROWS // self.search.beam_size)
        done = 0
        for indices, batch in self.search.in_batches(source, batch_size):
            for index, hypotheses in zip(indices, batch, strict=True):
                translations[index] = hypotheses
            done += len(indices)
            progress(f"translated {done}/{len(source)} sentences")
        return translations

    def encode(self, sources: Iterable, targets: Iterable) -> EncodedSplit:
        """Returns the ids of sentence pairs, cut as in training."""
        source = self.source_tokenizer.encode(list(_strings(sources)))
        target = self.target_tokenizer.encode(list(_strings(targets)))
        check_aligned(len(source), len(target), "sources and targets")
        return EncodedSplit(
            [ids[: self.max_tokens] for ids in source],
            [ids[: self.max_tokens + 1] for ids in target],
        )

    def attention(self, sentence: str) -> AttentionMaps:
        """Translates a sentence and returns what every head attended to.

        The weights are those with which the finished translation is read again. A model
        that looks ahead had other weights during the search. An empty sentence is a
        `ValueError`.
        """
        [sentence] = _strings([sentence])
        if not has_a_word(sentence):
            raise ValueError("Expected a sentence. Received an empty one.")
        ids = self.source_tokenizer.encode([sentence])[0][: self.max_tokens]
        best = self.search(ids[None])[0][0]
        tokenizer, beams = self.target_tokenizer, self.search.beam_size
        # The last token of the longest translation is not read again.
        target = [tokenizer.start_id, *best.ids][: self.model.longest_target]
        written = [*tokenizer.pieces(best.ids), END if best.ended else "…"]
        weights = self.model.attention_weights(
            ids[None], np.array([target], "int32")
        )
        for kind, layers in weights.items():
            layers = ops.cast(layers[:, 0], "float32")
            weights[kind] = ops.convert_to_numpy(layers)
        return AttentionMaps(
            source=self.source_tokenizer.pieces(ids),
            target=tokenizer.pieces(target),
            sentence=sentence,
            translation=self._alternative(best).text,
            model=self.model.name,
            written=written[: len(target)],
            search="greedy" if beams == 1 else f"{beams} beams",
            **weights,
        )

    def _translations(self, sentences: list[str]) -> list[Translation]:
        """The translations of sentences that have words."""
        rows = self.source_tokenizer.encode(sentences)
        n_best = self.search_all([ids[: self.max_tokens] for ids in rows])
        translations = []
        for text, ids, hypotheses in zip(sentences, rows, n_best, strict=True):
            alternatives = tuple(map(self._alternative, hypotheses))
            notes = tuple(self._notes(text, ids, alternatives[0]))
            translations.append(Translation(text, alternatives, notes))
        return translations

    def _alternative(self, hypothesis: Hypothesis) -> Alternative:
        """A hypothesis with its words."""
        tokenizer = self.target_tokenizer
        [text] = tokenizer.decode([hypothesis.ids])
        return Alternative(
            **vars(hypothesis),
            text=tokenizer.detokenize(text),
            tokens=tokenizer.pieces(hypothesis.ids),
        )

    def _notes(self, text: str, ids, best: Alternative) -> Iterator[str]:
        """Yields what a reader of a translation should know."""
        if len(ids) > self.max_tokens:
            yield f"the first {self.max_tokens} of {len(ids)} tokens were read"
        if UNKNOWN_ID in ids:
            words = list(dict.fromkeys(text.split()))
            lacking = []
            for word, pieces in zip(words, self.source_tokenizer.encode(words)):
                if UNKNOWN_ID in pieces:
                    lacking.append(word)
            if lacking:
                yield f"the vocabulary lacks {', '.join(lacking)}"
        if not best.ended:
            yield "the translation did not end within the limit"
        if not best.text:
            yield "the translation is empty: was the model trained enough?"


def _strings(sentences: Iterable) -> Iterator[str]:
    """Yields sentences as strings, and refuses what is none by its row."""
    if isinstance(sentences, str):
        raise ValueError(
            f"Expected several sentences. Received one: {sentences!r}."
        )
    for row, sentence in enumerate(sentences):
        # TensorFlow's tensors have this method.
        if hasattr(sentence, "numpy"):
            sentence = sentence.numpy()
        if isinstance(sentence, bytes):
            sentence = sentence.decode("utf-8", "replace")
        if not isinstance(sentence, str):
            raise ValueError(
                f"Expected sentences, as strings. Received: {reprlib.repr(sentence)} "
                f"of type {type(sentence).__name__} in row {row}, counted from 0."
            )
        # Bytes that are not UTF-8 come from a terminal as surrogates.
        data = sentence.encode("utf-8", "surrogatepass")
        yield data.decode("utf-8", "replace")
