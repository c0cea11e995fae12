"""What every source of text delivers: three splits of aligned sentences and a name."""

import dataclasses
import functools
import hashlib
import json
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from reprt.data.corpora.store import Sentences, digest_of, folder_of, store_once
from reprt.files import cache, read_json, write_text

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
        check_aligned(len(source), len(target), where)
        pairs = drop_empty_pairs(zip(source, target), where)
        return cls(*map(list, zip(*pairs)))

    def __len__(self):
        return len(self.source)


@dataclasses.dataclass(frozen=True)
class Facts:
    """What only a look at all sentences tells.

    Attributes:
        sha256: that of all sentences, by which a run names its text.
        test_sources: the number of different sources of the test.
        repeated: how many of them are in the training text as well.
    """

    sha256: str
    test_sources: int
    repeated: int


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
        names = "dev", "train"
        sides = self.train.source, self.train.target
        folder = folder_of((share, *map(digest_of, sides)))
        splits = store_once(
            folder, names, lambda: deal(zip(*sides), share, names)
        )
        dev, train = (Split(*splits[name]) for name in names)
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
        return self.facts.sha256

    @functools.cached_property
    def facts(self) -> Facts:
        """What a look at all sentences tells; that at a text on disk is kept."""
        sides = self._sides
        if not all(isinstance(side, Sentences) for side in sides):
            return self._look()
        digests = " ".join(map(digest_of, sides))
        name = hashlib.sha256(digests.encode()).hexdigest()
        path = cache() / "texts" / f"{name}.json"
        if not path.exists():
            write_text(path, json.dumps(dataclasses.asdict(self._look())))
        return Facts(**read_json(path))

    def _look(self) -> Facts:
        sha = hashlib.sha256()
        for side in self._sides:
            # The side is not joined first, because that would double its memory.
            for number, sentence in enumerate(side):
                sha.update(b"\n" * (number > 0) + sentence.encode())
            sha.update(b"\0")
        sources = set(self.test.source)
        repeated = sources.intersection(self.train.source)
        return Facts(sha.hexdigest(), len(sources), len(repeated))

    @property
    def _sides(self) -> list[Sequence[str]]:
        sides = []
        for split in (self.train, self.dev, self.test):
            sides += [split.source, split.target]
        return sides

    def in_memory(self) -> "Corpus":
        """Returns the same text for machines that have another disk."""
        splits: dict[str, Any] = {}
        for name in SPLITS:
            split = getattr(self, name)
            splits[name] = Split(list(split.source), list(split.target))
        return dataclasses.replace(self, **splits)


def deal(
    pairs: Iterable[tuple[str, str]],
    share: float,
    names: Sequence[str],
) -> Iterator[tuple[str, str, str]]:
    """Yields pairs, each after a split's name: all but the last get about that share.

    A hash of the source decides where a pair goes. So repeated sentences stay together
    even if case or spaces differ, a pair stays where it is when others are added, and
    no seed matters.
    """
    for source, target in pairs:
        part = int(_place(source) / share)
        yield names[min(part, len(names) - 1)], source, target


def _place(sentence: str) -> float:
    """Returns a number from 0 to 1 that case and spaces do not change."""
    plain = " ".join(sentence.casefold().split())
    sha256 = hashlib.sha256(plain.encode()).digest()
    return int.from_bytes(sha256[:8], "big") / 2**64


def check_aligned(source_lines: int, target_lines: int, where: object):
    """Refuses sides of different lengths."""
    if source_lines != target_lines:
        raise ValueError(
            "Line i of one side translates line i of the other: both need as many "
            f"lines. Received: {source_lines} and {target_lines} in {where}."
        )


def drop_empty_pairs(
    pairs: Iterable[Sequence[str | None]],
    where: object,
) -> Iterator[tuple[str, str]]:
    """Yields the pairs that have a word on both sides; none is a `ValueError`.

    It says how many pairs it drops. Where one side is longer, the other's sentences
    are None at the end.
    """
    pairs = iter(pairs)
    complete = dropped = 0
    for number, (source, target) in enumerate(pairs):
        if source is None or target is None:
            longer = number + 1 + sum(1 for _ in pairs)
            if source is None:
                check_aligned(number, longer, where)
            check_aligned(longer, number, where)
        elif has_a_word(source) and has_a_word(target):
            complete += 1
            yield source, target
        else:
            dropped += 1
    if not complete:
        raise ValueError(
            "Expected at least one line with text on both sides. Received: none in "
            f"{where}."
        )
    if dropped:
        _say_dropped(dropped, complete + dropped, str(where))


@functools.cache
def _say_dropped(dropped: int, pairs: int, where: str):
    """Says it once, as the same file may be read for several splits."""
    print(
        f"Left out {dropped:,} of {pairs:,} pairs, which have a side without words: "
        f"{where}",
        file=sys.stderr,
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
