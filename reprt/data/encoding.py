"""From a corpus to ids."""

import collections
import dataclasses
import functools
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from reprt.constants import END_ID, UNKNOWN_ID
from reprt.data.corpora.corpus import SPLITS, Corpus
from reprt.data.rows import Rows, read_rows, write_rows
from reprt.data.tokenizers.base import Tokenizer, VocabularySettings, digest_of
from reprt.files import make_once
from reprt.progress import duration

_IDS_VERSION = 4  # of how text becomes ids, and of their file


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

    def only(self, chosen) -> "EncodedSplit":
        """Returns the pairs of these indices."""
        sides = (
            [side[row] for row in chosen] for side in (self.source, self.target)
        )
        return EncodedSplit(*map(Rows.of, sides))

    def of_target(self) -> "EncodedSplit":
        """Returns the same targets without a token of the sources."""
        return EncodedSplit(
            Rows(np.zeros(0, "int32"), [0] * len(self)), self.target
        )

    @property
    def tokens(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the number of tokens of each pair's two inputs."""
        # The inputs and the labels of a target each drop one.
        return Rows.of(self.source).lengths, Rows.of(self.target).lengths - 1

    @property
    def cut(self) -> float:
        """Returns the share of pairs of which a side was cut, and lost its end."""
        sides = (Rows.of(side) for side in (self.source, self.target))
        lost = [
            rows.ids[rows.splits[1:] - 1] != END_ID
            for rows in sides
            if rows.ids.size
        ]
        return float(np.any(lost, axis=0).mean())

    @property
    def lengths(self) -> np.ndarray:
        """Returns the number of tokens of each pair's longer input."""
        return np.maximum(*self.tokens)


@dataclasses.dataclass(frozen=True)
class EncodedCorpus:
    """A corpus with its two vocabularies and the ids of its three splits."""

    corpus: Corpus
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    train: EncodedSplit
    dev: EncodedSplit
    test: EncodedSplit
    references: (
        Rows  # the whole targets of the test split, which may be cut in `test`
    )
    lost_words: float = 0.0
    """The share of words of the training targets, in lower case, that ids lose."""

    def trained_to(self, tokens: int) -> "EncodedCorpus":
        """Returns the same without longer pairs of training and validation."""
        both = self.train, self.dev
        chosen = [each.between(0, tokens) for each in both]
        if not all(map(len, chosen)):
            raise ValueError(
                "Expected 'train_tokens' in [text] to leave pairs of training and "
                f"validation. Received: {tokens}."
            )
        train, dev = (each.only(rows) for each, rows in zip(both, chosen))
        return dataclasses.replace(self, train=train, dev=dev)

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
        return {
            name: {
                side: _share_of_unknown(rows)
                for side in ("source", "target")
                if (
                    rows := Rows.of(getattr(getattr(self, name), side))
                ).ids.size
            }
            for name in SPLITS
        }


def _share_of_unknown(rows: Rows) -> float:
    unknown, ends = (
        int((rows.ids == each).sum()) for each in (UNKNOWN_ID, END_ID)
    )
    return unknown / max(1, len(rows.ids) - len(rows) - ends)


def encode(
    corpus: Corpus,
    vocabulary: VocabularySettings,
    max_tokens: int,
    cache: Path | str,
    progress: Callable[[str], None] = lambda text: None,
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

    def rows(which, sentences, tokenizer, longest=None):
        asked = f"{_IDS_VERSION} {tokenizer.digest()} {longest}"
        path = cache / "ids" / f"{digest_of(asked, sentences)}.ids"

        def write(path):
            chunks = tokenizer.encode_chunks(sentences, longest)
            counted = _counted(
                chunks, len(sentences), f"tokenising {which}", progress
            )
            write_rows(counted, path)

        make_once(path, write, progress)
        return read_rows(path)

    def encoded(name: str):
        split = getattr(corpus, name)
        return EncodedSplit(
            rows(f"{name} source", split.source, source, max_tokens),
            rows(f"{name} target", split.target, target, max_tokens + 1),
        )

    # Kept with the ids, because to encode needs TensorFlow.
    references = rows("references", corpus.test.target, target)
    train, dev, test = map(encoded, SPLITS)
    lost = 0.0
    if not target.keeps_case:
        counts = collections.Counter(
            " ".join(corpus.train.target).lower().split()
        )
        words = sorted(counts)
        come_back = target.decode(rows("words of the target", words, target))
        lost = _share_of_lost(counts, words, come_back)
    return EncodedCorpus(
        corpus, source, target, train, dev, test, references, lost
    )


def _share_of_lost(counts: Mapping[str, int], words, come_back) -> float:
    """Returns the share of words, each as often as it is there, that do not come back.

    Spaces do not matter, for a tokenizer may part a word at its punctuation.
    """
    lost = 0
    for word, found in zip(words, come_back):
        if found.replace(" ", "") != unicodedata.normalize("NFC", word):
            lost += counts[word]
    return lost / max(1, sum(counts.values()))


def _counted(chunks: Iterable[Rows], total, doing, progress) -> Iterator[Rows]:
    """Passes the rows on, and tells how many have been used and when all will be."""
    begun, done = time.monotonic(), 0
    for rows in chunks:
        yield rows
        done += len(rows)
        left = (time.monotonic() - begun) * (total - done) / done
        progress(
            f"{doing}: {done:,}/{total:,} sentences, {duration(left)} left"
        )
