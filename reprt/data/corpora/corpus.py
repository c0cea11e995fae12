"""What every source of text delivers: three splits of aligned sentences and a name."""

import dataclasses
import functools
import hashlib
import itertools
import sys
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np

SPLITS = ("train", "dev", "test")
# Accents, spaces, controls and what else is not seen: no word has only these.
_UNSEEN = {"Mn", "Me", "Zs", "Zl", "Zp", "Cc", "Cf"}
# To Unicode these blanks of Hangul and Braille are letters and symbols.
_BLANKS = "\u115f\u1160\u2800"


@dataclasses.dataclass(frozen=True)
class Split:
    """Aligned sentences: `source[i]` is translated by `target[i]`."""

    source: Sequence[str]
    target: Sequence[str]

    @classmethod
    def of(cls, source, target, where: object) -> "Split":
        """Returns the pairs that have a word on both sides; none is a `ValueError`."""
        check_aligned(source, target, where)
        both = zip(map(has_a_word, source), map(has_a_word, target))
        split = cls(source, target).chosen(map(all, both))
        if not len(split):
            raise ValueError(
                "Expected at least one line with text on both sides. Received: none in "
                f"{where}."
            )
        return split

    def chosen(self, mask: Iterable[bool]) -> "Split":
        """Returns the pairs where the mask is True."""
        mask = list(mask)
        source = list(itertools.compress(self.source, mask))
        target = list(itertools.compress(self.target, mask))
        return Split(source, target)

    def dealt(self, share: float, count: int = 1) -> "list[Split]":
        """Returns `count` parts of about that share each, and then the rest.

        A hash of the source decides where a pair goes. So repeated sentences stay
        together even if case or spaces differ, a pair stays where it is when others are
        added, and no seed matters.
        """
        places = np.fromiter(map(_place, self.source), float, len(self))
        parts = np.minimum((places / share).astype(int), count)
        return [self.chosen(parts == number) for number in range(count + 1)]

    def __len__(self):
        return len(self.source)


@dataclasses.dataclass(frozen=True)
class Corpus:
    """A parallel corpus."""

    name: str
    """What results on this text are labelled with, e.g. `"TED-HRLR pt_to_en"`."""
    pair: str
    """The languages by TFDS's name, e.g. `"pt_to_en"`."""
    official: bool
    """Whether numbers on this text may stand beside the paper's."""
    origin: str
    """Where the text was found, for the run's manifest."""
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
            self,
            name=name,
            official=False,
            train=train,
            dev=dev,
        )

    def digest(self) -> str:
        """Returns the sha256 of all sentences, so that a run can name its text."""
        return self._sha256

    @functools.cached_property
    def _sha256(self) -> str:
        sha = hashlib.sha256()
        for split in (self.train, self.dev, self.test):
            for side in (split.source, split.target):
                # The side is not joined first, because that would double its memory.
                for number, sentence in enumerate(side):
                    sha.update(b"\n" * (number > 0) + sentence.encode())
                sha.update(b"\0")
        return sha.hexdigest()


def _place(sentence: str) -> float:
    """Returns a number from 0 to 1 that case and spaces do not change."""
    plain = " ".join(sentence.casefold().split())
    sha256 = hashlib.sha256(plain.encode()).digest()
    return int.from_bytes(sha256[:8], "big") / 2**64


def check_aligned(source: Sequence, target: Sequence, where: object):
    """Refuses sides of different lengths."""
    if len(source) != len(target):
        raise ValueError(
            "Line i of one side translates line i of the other: both need as many "
            f"lines. Received: {len(source)} and {len(target)} in {where}."
        )


def has_a_word(sentence: str) -> bool:
    """Whether anything of a sentence is seen, in training as in translating."""
    for character in unicodedata.normalize("NFKC", sentence):
        unseen = unicodedata.category(character) in _UNSEEN
        if not unseen and character not in _BLANKS:
            return True
    return False


@functools.cache
def word_pattern() -> str:
    """Returns the regular expression, for RE2, of sentences that `has_a_word` takes."""
    unseen = []
    for code in range(sys.maxunicode + 1):
        surrogate = 0xD800 <= code < 0xE000
        if not surrogate and not has_a_word(chr(code)):
            unseen.append(f"\\x{{{code:x}}}")
    return f"(?s).*[^{''.join(unseen)}].*"
