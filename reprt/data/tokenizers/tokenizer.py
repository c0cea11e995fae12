"""What the rest of the package asks of a tokenizer, and of the settings of one."""

import abc
import functools
import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from reprt.constants import END_ID, PAD_ID, RESERVED
from reprt.cores import in_threads
from reprt.data.corpora.corpus import Corpus
from reprt.data.corpora.store import digest_of
from reprt.data.rows import Rows
from reprt.files import make_once, whole_file
from reprt.fixed import Fixed
from reprt.imports import load_extra
from reprt.progress import ProgressCallback, ignore_progress, report_progress
from reprt.settings import Place, Settings, Size

# This many sentences become ids at a time.
CHUNK = 1024
# The share of a text's characters that have pieces; the rarest others are unknown.
COVERAGE = 0.99999


class Tokenizer(Fixed, abc.ABC):
    """Turns sentences into ids, `start_id` to `end_id`, and back.

    It can be copied and pickled; its attributes cannot be changed.
    """

    ending: ClassVar[str]
    """How the names of its files end."""
    keeps_case: ClassVar[bool]
    """Whether capitals and accents come back from ids."""
    vocabulary: tuple[str, ...]
    """The pieces, by their ids."""
    start_id: int
    end_id: int = END_ID

    def __len__(self):
        return len(self.vocabulary)

    def digest(self) -> str:
        """Returns a sha256 of all that decides which ids a sentence has."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    @classmethod
    @abc.abstractmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Reads what `to_bytes` returned, or raises a `ValueError`."""

    @abc.abstractmethod
    def to_bytes(self) -> bytes:
        """Returns what a file of this tokenizer holds."""

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Reads what `write` wrote, or raises a `ValueError` that names the file."""
        try:
            return cls.from_bytes(Path(path).read_bytes())
        except (OSError, ValueError) as error:
            message = f"The vocabulary {path} cannot be used: {error}"
            raise ValueError(message) from error

    def write(self, path: str | Path):
        """Writes a file; a kill leaves the whole file or none."""
        with whole_file(Path(path)) as file:
            file.write(self.to_bytes())

    def encode_chunks(
        self,
        sentences: Iterable[str],
        max_tokens: int | None = None,
    ) -> Iterator[Rows]:
        """Yields the sentences' ids, cut after `max_tokens`, a number at a time."""
        encode = functools.partial(self._encode, max_tokens=max_tokens)
        return in_threads(encode, chunks(sentences))

    @abc.abstractmethod
    def _encode(self, sentences: list[str], max_tokens: int | None) -> Rows:
        """Returns the ids of a few sentences; several threads call it at once."""

    def encode(self, sentences: Sequence[str]) -> list[np.ndarray]:
        """Returns each sentence's ids, from start to end, as int32 arrays."""
        chunks = self.encode_chunks(sentences)
        return list(itertools.chain.from_iterable(chunks))

    def decode(self, ids: Iterable[Sequence[int] | np.ndarray]) -> list[str]:
        """Returns the sentence up to the first `[END]` of each row of ids."""
        edges = PAD_ID, self.start_id
        sentences = []
        for row in ids:
            row = np.asarray(row).tolist()
            self._check(row)
            if self.end_id in row:
                row = row[: row.index(self.end_id)]
            tokens = [token for token in row if token not in edges]
            sentences.append(self._join(tokens))
        return sentences

    def pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Returns the pieces that ids stand for."""
        ids = list(ids)
        self._check(ids)
        return tuple(map(self.vocabulary.__getitem__, ids))

    def _check(self, ids):
        """Raises a `ValueError` if one of the ids has no piece."""
        for index in (min(ids, default=0), max(ids, default=0)):
            if not 0 <= index < len(self):
                raise ValueError(
                    f"Expected ids from 0 to {len(self) - 1}, as the vocabulary has "
                    f"{len(self)} pieces. Received: {index}."
                )

    def words(self, sentences: Sequence[str]) -> list[str]:
        """Returns sentences as they come back from ids."""
        return self.decode(self.encode(sentences))

    def detokenize(self, sentence: str) -> str:
        """Returns a decoded sentence as people write it."""
        return sentence

    @property
    @abc.abstractmethod
    def graph(self) -> Any:
        """tensorflow-text's tokenizer, which a SavedModel has to hold on to."""

    @abc.abstractmethod
    def graph_encode(self, sentences):
        """`encode` within a graph: `(sentences,)` strings to a `tf.RaggedTensor`."""

    @abc.abstractmethod
    def graph_detokenize(self, ids):
        """`decode` and `detokenize` in a graph, of ids as a `tf.RaggedTensor`."""

    @abc.abstractmethod
    def _join(self, ids: list[int]) -> str:
        """The sentence of ids that have no edges."""


class VocabularySettings(Settings, abc.ABC):
    """The table `[vocabulary]`; a subclass for each tokenizer."""

    tokenizer: ClassVar[type[Tokenizer]]
    name: str
    from_run: Place | None = None
    """The folder of a run whose vocabularies are taken, instead of learning some."""
    size: Size = 8000
    """How many pieces are aimed at; small texts give fewer."""
    sentences: Size = 250_000
    """The most sentences of a side that are learnt on, at equal distances in the
    training text."""

    @property
    def joint(self) -> bool:
        """Whether an id is the same piece on both sides."""
        return False

    def learn(
        self,
        corpus: Corpus,
        folder: Path,
        progress: ProgressCallback = ignore_progress,
    ) -> tuple[Tokenizer, Tokenizer]:
        """Returns both sides' tokenizers, learnt once: the folder keeps them."""
        if self.from_run:
            path = Path(self.from_run, f"source{self.tokenizer.ending}")
            target = path.with_stem("target")
            source_side = self.tokenizer.read(path)
            target_side = self.tokenizer.read(target)
            # They may differ in the token that begins a sentence.
            same = source_side.vocabulary == target_side.vocabulary
            if self.joint and not same:
                raise ValueError(
                    f"Expected one vocabulary of both sides in {self.from_run}, as "
                    "shared = true in [vocabulary] says. Received two."
                )
            return source_side, target_side
        train = corpus.train
        texts = {"source": [train.source], "target": [train.target]}
        if self.joint:
            texts = {"two sides": [train.source, train.target]}
        elif train.source == train.target:
            # That of a language model.
            del texts["target"]
        tokenizers = []
        # One after the other, each in the memory of the one before.
        for name, sides in texts.items():
            tokenizer = self._learn_once(
                name, sides, corpus.pair, folder, progress
            )
            tokenizers.append(tokenizer)
        return tokenizers[0], tokenizers[-1]

    def _learn_once(self, name, sides, pair, folder, progress) -> Tokenizer:
        """Returns one tokenizer, of one side or of both."""
        work = f"vocabulary of the {name}"

        def sample():
            count = sum(min(self.sentences, len(side)) for side in sides)
            sentences = itertools.chain.from_iterable(
                map(self._sample_evenly, sides)
            )
            parts = report_progress(chunks(sentences), count, work, progress)
            yield from itertools.chain.from_iterable(parts)
            progress(f"{work}: {self.size:,} pieces of {count:,} sentences")

        def write(path):
            self._learn(sample(), pair).write(path)

        settings = self._identity(pair)
        path = folder / f"{name_of(settings, *sides)}{self.tokenizer.ending}"
        make_once(path, write, progress)
        return self.tokenizer.read(path)

    def _sample_evenly(self, sentences: Sequence[str]) -> Iterator[str]:
        """Yields the sentences of a side that are learnt on."""
        most, total = self.sentences, len(sentences)
        for number, sentence in enumerate(sentences):
            if (number + 1) * most // total > number * most // total:
                yield sentence

    @abc.abstractmethod
    def _identity(self, pair: str) -> str:
        """All that decides a tokenizer besides the text."""

    @abc.abstractmethod
    def _learn(self, sentences: Iterable[str], pair: str) -> Tokenizer:
        """Returns the tokenizer that is learnt on sentences."""


def name_of(settings: str, *sides: Sequence[str]) -> str:
    """Returns a name for what some settings make of sentences, as a cache has it."""
    parts = [settings, *map(digest_of, sides)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def check_reserved(vocabulary: Sequence[str]):
    if tuple(vocabulary[:4]) != RESERVED:
        raise ValueError(
            f"Expected a vocabulary that begins with {' '.join(RESERVED)}. "
            f"Received one that begins with {' '.join(vocabulary[:4])!r}."
        )


def chunks(sentences: Iterable[str]) -> Iterator[list[str]]:
    if isinstance(sentences, str):
        raise ValueError(
            f"Expected several sentences. Received one: {sentences!r}."
        )
    iterator = iter(sentences)
    while chunk := list(itertools.islice(iterator, CHUNK)):
        yield chunk


def tensorflow_text():
    """Returns TensorFlow and tensorflow-text; an `ImportError` says how to get them."""
    need = "Vocabularies need tensorflow-text: pip install '.[train]'."
    return load_extra("tensorflow", need), load_extra("tensorflow_text", need)
