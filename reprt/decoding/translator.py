"""From sentences to sentences: a trained model with its vocabularies and its search."""

import dataclasses
import itertools
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from keras import ops

from reprt.constants import END, UNKNOWN_ID
from reprt.data.corpora.corpus import check_aligned, has_a_word
from reprt.data.encoding import EncodedSplit
from reprt.data.tokenizers.tokenizer import Tokenizer
from reprt.decoding.attention_maps import AttentionMaps
from reprt.decoding.beam_search import BeamSearch, Hypothesis
from reprt.fixed import Fixed
from reprt.models.saving import load_model
from reprt.training.settings import settings_of, vocabularies_of

SIDES = ("source", "target")
ROWS = 256  # hypotheses in a batch
MANY = 4  # pieces of a word that was hardly in the training text
LONG = 12  # letters, on average, of what is no word
AHEAD = 1024  # sentences that are read before the first of them is translated


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
        for side, tokenizer in zip(SIDES, (source_tokenizer, target_tokenizer)):
            pieces = getattr(model, f"{side}_vocab_size")
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
        settings = settings_of(run)
        source, target = vocabularies_of(run, settings.vocabulary.tokenizer)
        model = load_model(run / "model.keras")
        return cls(model, source, target, settings.text.max_tokens, search)

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
        self, sentences: Iterable, ahead: int = AHEAD
    ) -> Iterator[Translation]:
        """Yields translations in order, while sentences are still being read."""
        rest = _strings(sentences)
        while read := list(itertools.islice(rest, ahead)):
            kept = list(map(has_a_word, read))
            written = list(itertools.compress(read, kept))
            ids = self.source_tokenizer.encode(written)
            found = self.search_all([row[: self.max_tokens] for row in ids])
            done = map(
                self._translation, written, ids, self._alternatives(found)
            )
            for text, is_kept in zip(read, kept, strict=True):
                yield next(done) if is_kept else Translation(text, ())

    def search_all(
        self,
        source: Sequence[np.ndarray],
        progress: Callable[[str], None] = lambda text: None,
    ) -> list[list[Hypothesis]]:
        """Searches for translations of ids, those of like length together."""
        found: list[list[Hypothesis]] = [[]] * len(source)
        batch_size, done = max(1, ROWS // self.search.beam_size), 0
        for chosen, hypotheses in self.search.in_batches(source, batch_size):
            for index, of_one in zip(chosen, hypotheses, strict=True):
                found[index] = of_one
            done += len(chosen)
            progress(f"translated {done}/{len(source)} sentences")
        return found

    def encode(self, sources: Iterable, targets: Iterable) -> EncodedSplit:
        """Returns the ids of sentence pairs, cut as in training."""
        source = self.source_tokenizer.encode(list(_strings(sources)))
        target = self.target_tokenizer.encode(list(_strings(targets)))
        check_aligned(source, target, "sources and targets")
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
        tokenizer = self.target_tokenizer
        # The last token of the longest translation is not read again.
        read = [tokenizer.start_id, *best.ids][: self.model.longest_target]
        target = np.array([read], "int32")
        beams = self.search.beam_size
        written = [*tokenizer.pieces(best.ids), END if best.ended else "…"]
        weights = self.model.attention_weights(ids[None], target)
        return AttentionMaps(
            source=self.source_tokenizer.pieces(ids),
            target=tokenizer.pieces(target[0]),
            **{
                kind: ops.convert_to_numpy(ops.cast(each[:, 0], "float32"))
                for kind, each in weights.items()
            },
            sentence=sentence,
            translation=self._alternatives([[best]])[0][0].text,
            model=self.model.name,
            written=written[: target.shape[1]],
            search="greedy" if beams == 1 else f"{beams} beams",
        )

    def _translation(self, text, ids, alternatives):
        notes = []
        if len(ids) > self.max_tokens:
            notes.append(
                f"the first {self.max_tokens} of {len(ids)} tokens were read"
            )
        notes += self._on_words(text, ids)
        if not alternatives[0].ended:
            notes.append("the translation did not end within the limit")
        if not alternatives[0].text:
            notes.append(
                "the translation is empty: was the model trained enough?"
            )
        return Translation(text, alternatives, tuple(notes))

    def _on_words(self, text: str, ids) -> Iterator[str]:
        """Yields notes on words that training can hardly have had."""
        words = list(dict.fromkeys(text.split()))
        if UNKNOWN_ID not in ids and len(ids) < len(words) + MANY:
            return
        pieces = self.source_tokenizer.encode(words)
        lacking = [
            w for w, of_one in zip(words, pieces) if UNKNOWN_ID in of_one
        ]
        if lacking:
            yield f"the vocabulary lacks {', '.join(lacking)}"
        if len(text) > LONG * len(
            words
        ):  # a script without spaces between words
            return
        spelt = [
            word
            for word, of_one in zip(words, pieces)
            if word not in lacking
            and len(of_one) - 2 >= max(MANY, len(word) / 2)
        ]
        if spelt:
            yield f"spelt in many pieces, as words never seen: {', '.join(spelt)}"

    def _alternatives(self, found: Sequence[Sequence[Hypothesis]]):
        """The hypotheses of several sentences as text; all at once for speed."""
        tokenizer = self.target_tokenizer
        ids = [each.ids for hypotheses in found for each in hypotheses]
        texts = map(tokenizer.as_written, tokenizer.decode(ids))

        def alternative(each):
            pieces = tokenizer.pieces(each.ids)
            return Alternative(**vars(each), text=next(texts), tokens=pieces)

        return [tuple(map(alternative, hypotheses)) for hypotheses in found]


def _strings(sentences: Iterable) -> Iterator[str]:
    """Yields sentences as strings, and refuses what is none by its row."""
    if isinstance(sentences, str):
        raise ValueError(
            f"Expected several sentences. Received one: {sentences!r}."
        )
    for row, sentence in enumerate(sentences):
        if hasattr(sentence, "numpy"):  # TensorFlow's
            sentence = sentence.numpy()
        if isinstance(sentence, bytes):
            sentence = sentence.decode("utf-8", "replace")
        if not isinstance(sentence, str):
            raise ValueError(
                f"Expected sentences, as strings. Received: {reprlib.repr(sentence)} "
                f"of type {type(sentence).__name__} in row {row}, counted from 0."
            )
        # Bytes that are not UTF-8 come from a terminal as surrogates.
        yield sentence.encode("utf-8", "surrogatepass").decode(
            "utf-8", "replace"
        )
