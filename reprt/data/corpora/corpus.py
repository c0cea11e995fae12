"""What every source of text delivers: three splits of aligned sentences and a name."""

import dataclasses
import functools
import hashlib
import itertools
import unicodedata
from collections.abc import Sequence

import numpy as np

SPLITS = ("train", "dev", "test")
# Accents, spaces, controls and what else is not seen: no word has only these.
_UNSEEN = {"Mn", "Me", "Zs", "Zl", "Zp", "Cc", "Cf"}
_BLANKS = "\u115f\u1160\u2800"  # of Hangul and Braille, letters and symbols to Unicode


@dataclasses.dataclass(frozen=True)
class Split:
    """Aligned sentences: `source[i]` is translated by `target[i]`."""

    source: Sequence[str]
    target: Sequence[str]

    @classmethod
    def of(cls, source, target, where: object) -> "Split":
        """Returns the pairs that have a word on both sides; none is a `ValueError`."""
        check_aligned(source, target, where)
        kept = [all(map(has_a_word, pair)) for pair in zip(source, target)]
        if not any(kept):
            raise ValueError(
                "Expected at least one line with text on both sides. Received: none in "
                f"{where}."
            )
        return cls(source, target).chosen(kept)

    def chosen(self, kept) -> "Split":
        """Returns the pairs that are kept."""
        sides = (
            itertools.compress(side, kept)
            for side in (self.source, self.target)
        )
        return Split(*map(list, sides))

    def dealt(self, share: float, count: int = 1) -> "list[Split]":
        """Returns `count` parts of about that share each, and then the rest.

        A hash of the source decides where a pair goes. So repeated sentences stay
        together even if case or spaces differ, a pair stays where it is when others are
        added, and no seed matters.
        """
        plain = (" ".join(one.casefold().split()) for one in self.source)
        hashes = (hashlib.sha256(one.encode()).digest() for one in plain)
        places = (int.from_bytes(sha[:8], "big") / 2**64 for sha in hashes)
        parts = (np.fromiter(places, float, len(self)) / share).astype(int)
        parts = np.minimum(parts, count)
        return [self.chosen(parts == number) for number in range(count + 1)]

    def __len__(self):
        return len(self.source)


@dataclasses.dataclass(frozen=True)
class Corpus:
    """A parallel corpus."""

    name: str  # what results on this text are labelled with, e.g. "TED-HRLR pt_to_en"
    pair: str  # by TFDS's name, e.g. "pt_to_en"
    official: bool  # whether numbers on this text may stand beside the paper's
    origin: str  # where the text was found, for the run's manifest
    train: Split
    dev: Split
    test: Split

    @property
    def target_language(self) -> str:
        """The tag of the targets' language, the `en` of `"pt_to_en"`."""
        return self.pair.rpartition("_to_")[2]

    def validated_on(self, share: float) -> "Corpus":
        """Returns the text with a share of the training pairs dealt for validation."""
        if not share:
            return self
        dev, train = self.train.dealt(share)
        if not (len(dev) and len(train)):
            raise ValueError(
                "Expected 'held_out' in [text] to leave pairs to train and to validate "
                f"on. Received: {share}, of {len(self.train)} pairs."
            )
        name = f"{self.name}, {share:.2%} held out"
        return dataclasses.replace(
            self, name=name, official=False, train=train, dev=dev
        )

    def digest(self) -> str:
        """Returns the sha256 of all sentences, so that a run can name its text."""
        return self._sha256

    @functools.cached_property
    def _sha256(self) -> str:
        sha = hashlib.sha256()
        for split in (self.train, self.dev, self.test):
            for side in (split.source, split.target):
                for number, sentence in enumerate(side):
                    sha.update(b"\n" * (number > 0) + sentence.encode())
                sha.update(b"\0")
        return sha.hexdigest()


def check_aligned(source: Sequence, target: Sequence, where: object):
    """Refuses sides of different lengths."""
    if len(source) != len(target):
        raise ValueError(
            "Line i of one side translates line i of the other: both need as many "
            f"lines. Received: {len(source)} and {len(target)} in {where}."
        )


def has_a_word(sentence: str) -> bool:
    """Whether anything of a sentence is seen, in training as in translating."""
    return any(
        unicodedata.category(one) not in _UNSEEN and one not in _BLANKS
        for one in unicodedata.normalize("NFKC", sentence)
    )


@functools.cache
def word_pattern() -> str:
    """Returns the regular expression, for RE2, of sentences that `has_a_word` takes."""
    every = (
        chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000
    )
    unseen = "".join(
        f"\\x{{{ord(one):x}}}" for one in every if not has_a_word(one)
    )
    return f"(?s).*[^{unseen}].*"
