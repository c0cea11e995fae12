"""From a corpus to ids."""

import collections
import dataclasses
import functools
import json
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from reprt.constants import END_ID, UNKNOWN_ID
from reprt.data.corpora.corpus import SPLITS, Corpus
from reprt.data.rows import Rows, read_rows, write_rows
from reprt.data.tokenizers.tokenizer import (
    Tokenizer,
    VocabularySettings,
    chunks,
    name_of,
)
from reprt.files import make_once, read_json, write_text
from reprt.progress import ProgressCallback, ignore_progress, report_progress

# It changes whenever text becomes other ids, or their file another.
_IDS_VERSION = 4


@dataclasses.dataclass(frozen=True)
class EncodedSplit:
    """Aligned sentences as ids, `[START]` to `[END]`, in the order of the text."""

    source: Sequence[np.ndarray]
    target: Sequence[np.ndarray]

    def __len__(self):
        return len(self.source)

    def between(self, shortest: int, longest: int) -> np.ndarray:
        """Returns the indices of the pairs whose longer input has this length."""
        lengths = self.lengths
        return np.flatnonzero((lengths >= shortest) & (lengths <= longest))

    def only(self, indices: Sequence[int] | np.ndarray) -> "EncodedSplit":
        """Returns the pairs of these indices, or where a boolean mask is True."""
        if not isinstance(indices, np.ndarray):
            indices = list(indices)
        indices = np.arange(len(self))[indices]
        sides = map(Rows.of, (self.source, self.target))
        return EncodedSplit(*(side.only(indices) for side in sides))

    def of_target(self) -> "EncodedSplit":
        """Returns the same targets without a token of the sources."""
        nothing = np.zeros(0, "int32")
        return EncodedSplit(Rows(nothing, [0] * len(self)), self.target)

    @property
    def tokens(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the number of tokens of each pair's two inputs."""
        # The inputs and the labels of a target each drop one.
        return Rows.of(self.source).lengths, Rows.of(self.target).lengths - 1

    @property
    def cut(self) -> float:
        """Returns the share of pairs of which a side was cut, and lost its end."""
        count = 0
        sides = map(Rows.of, (self.source, self.target))
        for parts in zip(*(side.parts() for side in sides)):
            cut = np.zeros(len(parts[0]), bool)
            for rows in parts:
                # A language model's source has no tokens.
                if rows.ids.size:
                    cut |= rows.ids[rows.splits[1:] - 1] != END_ID
            count += int(cut.sum())
        return count / max(1, len(self))

    def share_in(self, other: "EncodedSplit") -> float:
        """Returns the share of pairs that another split has, too, by their ids."""
        hashes = np.concatenate([np.zeros(0, "uint64"), *self._hashes()])
        is_shared = np.zeros(len(hashes), bool)
        for other_hashes in other._hashes():
            is_shared |= np.isin(hashes, other_hashes)
        return float(is_shared.sum()) / max(1, len(self))

    def _hashes(self) -> Iterator[np.ndarray]:
        """Yields a number for each pair, some pairs at a time."""
        sides = map(Rows.of, (self.source, self.target))
        for source, target in zip(*(side.parts() for side in sides)):
            # Twice the one, so that an exchange of the sides is another pair.
            yield 2 * source.hashes() + target.hashes()

    @property
    def unknown(self) -> dict[str, float]:
        """Returns the share of `[UNK]` among the pieces of each side."""
        shares = {}
        for name in ("source", "target"):
            unknown = pieces = 0
            side = Rows.of(getattr(self, name))
            for rows in side.parts():
                unknown += int(np.count_nonzero(rows.ids == UNKNOWN_ID))
                ends = int(np.count_nonzero(rows.ids == END_ID))
                pieces += len(rows.ids) - len(rows) - ends
            if side.ids.size:
                shares[name] = unknown / max(1, pieces)
        return shares

    @property
    def lengths(self) -> np.ndarray:
        """Returns the number of tokens of each pair's longer input."""
        return np.maximum(*self.tokens)


@dataclasses.dataclass(frozen=True)
class EncodedCorpus:
    """A corpus with its two vocabularies and the ids of its three splits.

    Attributes:
        corpus: the text.
        source_tokenizer, target_tokenizer: what has encoded its sides.
        train, dev, test: the ids.
        references: the whole targets of the test split, which may be cut in `test`.
        lost_words: the share of words of the training targets, in lower case, that ids
            lose.
    """

    corpus: Corpus
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    train: EncodedSplit
    dev: EncodedSplit
    test: EncodedSplit
    references: Rows
    lost_words: float = 0.0

    def trained_to(self, max_tokens: int) -> "EncodedCorpus":
        """Returns the same without longer pairs of training and validation."""
        train = self.train.between(0, max_tokens)
        dev = self.dev.between(0, max_tokens)
        if not (len(train) and len(dev)):
            raise ValueError(
                "Expected 'train_tokens' in [text] to leave pairs of training and "
                f"validation. Received: {max_tokens}."
            )
        return dataclasses.replace(
            self,
            train=self.train.only(train),
            dev=self.dev.only(dev),
        )

    def of_target(self) -> "EncodedCorpus":
        """Returns the text of a language model: the target's side."""
        splits = {name: getattr(self, name).of_target() for name in SPLITS}
        tokenizer = self.target_tokenizer
        return dataclasses.replace(self, source_tokenizer=tokenizer, **splits)

    @functools.cached_property
    def test_words(self) -> list[str]:
        """The references, made of the words that a translation can have."""
        return self.target_tokenizer.decode(self.references)

    @functools.cached_property
    def unknown(self) -> dict[str, dict[str, float]]:
        """The share of `[UNK]` among the pieces of each side of each split."""
        return {name: getattr(self, name).unknown for name in SPLITS}


def encode(
    corpus: Corpus,
    vocabulary: VocabularySettings,
    max_tokens: int,
    cache: Path | str,
    progress: ProgressCallback = ignore_progress,
) -> EncodedCorpus:
    """Learns both vocabularies on the training text and encodes every split.

    As in TensorFlow's tutorial the source keeps at most `max_tokens` ids and the target
    one more: its inputs and labels each drop one. A cut sentence loses its `[END]`.

    Args:
        corpus: the text.
        vocabulary: which vocabularies are learnt, such as `WordPieceSettings()`.
        max_tokens: longest input of either side.
        cache: folder in which vocabularies and ids are kept, so that a text is learnt
            and tokenised once.
        progress: called with what is being done, and how far it is.
    """
    cache = Path(cache)
    source, target = vocabulary.learn(corpus, cache / "vocabularies", progress)
    encode_once = functools.partial(_encode_once, cache / "ids", progress)

    def encode_split(name):
        split = getattr(corpus, name)
        return EncodedSplit(
            encode_once(f"{name} source", split.source, source, max_tokens),
            encode_once(f"{name} target", split.target, target, max_tokens + 1),
        )

    # Kept with the ids, because to encode needs TensorFlow.
    references = encode_once("references", corpus.test.target, target)
    train, dev, test = map(encode_split, SPLITS)
    text = EncodedCorpus(corpus, source, target, train, dev, test, references)
    if target.keeps_case:
        return text
    lost = _lost_words(cache / "ids", progress, corpus.train.target, target)
    return dataclasses.replace(text, lost_words=lost)


def _lost_words(folder, progress, sentences, tokenizer) -> float:
    """Returns the share of words that ids lose, from a folder that keeps it."""
    settings = f"lost words {_IDS_VERSION} {tokenizer.digest()}"
    path = folder / f"{name_of(settings, sentences)}.json"

    def write(path):
        counts: collections.Counter[str] = collections.Counter()
        for chunk in chunks(sentences):
            counts.update(" ".join(chunk).lower().split())
        lost_count = 0
        for words in chunks(counts):
            for word, written_word in zip(words, tokenizer.words(words)):
                # A tokenizer may part a word at its punctuation.
                whole = unicodedata.normalize("NFC", word)
                if written_word.replace(" ", "") != whole:
                    lost_count += counts[word]
        share = lost_count / max(1, counts.total())
        write_text(path, json.dumps(share))

    make_once(path, write, progress)
    return read_json(path)


def _encode_once(folder, progress, part, sentences, tokenizer, max_tokens=None):
    """Returns the ids of sentences, from a folder that keeps them."""
    settings = f"{_IDS_VERSION} {tokenizer.digest()} {max_tokens}"
    path = folder / f"{name_of(settings, sentences)}.ids"

    def write(path):
        parts = tokenizer.encode_chunks(sentences, max_tokens)
        work = f"tokenising {part}"
        parts = report_progress(parts, len(sentences), work, progress)
        write_rows(parts, path)

    make_once(path, write, progress)
    return read_rows(path)
