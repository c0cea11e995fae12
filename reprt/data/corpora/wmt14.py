"""WMT'14 English-French and English-German: archives, one text, how it is read."""

# By hand: TFDS does not clean, and sacrebleu takes a broken download for a whole one.

import contextlib
import dataclasses
import functools
import gzip
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from reprt.data.corpora.archive import open_member
from reprt.data.corpora.corpus import Corpus, Split, has_a_word
from reprt.data.corpora.download import download
from reprt.data.corpora.lines import decode_lines
from reprt.data.corpora.store import store_once
from reprt.files import cache, read_toml, write_text
from reprt.progress import byte_line

PAIRS = ("en_to_fr", "fr_to_en", "en_to_de", "de_to_en")
# A pair is dropped if a side has more words between spaces than this, the length that
# fairseq gives Moses' clean-corpus-n.
LONGEST = 250
# So is a pair of which a side has more than this many times the words of the other, the
# default ratio of clean-corpus-n.
MOST_TIMES = 9
# It changes whenever the archives give other files.
RULES = 4

# The pairs from one look at the progress to the next.
_LINES_BETWEEN = 10_000
_SEGMENT = re.compile(r"<seg[^>]*>(.*?)</seg>")


@dataclasses.dataclass(frozen=True)
class Part:
    """An archive, as `wmt14.toml` has it."""

    name: str
    url: str
    sha256: str
    member: str
    languages: Sequence[str] = ("fr", "de")

    def members(self, other: str) -> list[str]:
        """The files in English and in the other language."""
        return [self.member.format(side, other=other) for side in ("en", other)]


_PARTS = read_toml(Path(__file__).with_suffix(".toml"))["part"]
DEV, *TRAIN = (Part(**part) for part in _PARTS)


def load(pair: str) -> Corpus:
    """Returns the text, downloaded, cleaned and joined unless it is in the cache.

    The training text is the archives of `TRAIN` that have the languages, in this order,
    without the pairs that `clean_pair` drops. Validation is newstest2013. Test is
    newstest2014 as sacrebleu reads it: what systems were given, and their reference.
    """
    if pair not in PAIRS:
        raise ValueError(
            f"Expected one of {', '.join(PAIRS)}. Received: {pair!r}."
        )
    [other] = {*pair.split("_to_")} - {"en"}
    pairs = [name for name in PAIRS if other in name]
    names = ["train", "dev", *pairs]
    sides = store_once(
        place(other), names, functools.partial(_read, other, pairs)
    )
    # The text is from English, and newstest2014 has its own for each direction.
    step = 1 if pair == pairs[0] else -1
    train, dev = (Split(*sides[name][::step]) for name in names[:2])
    return Corpus(
        f"WMT14 {pair}",
        pair,
        False,
        str(place(other)),
        train,
        dev,
        Split(*sides[pair]),
    )


def place(other: str) -> Path:
    """Returns the folder of the text of these archives, by these rules."""
    parts = [part.sha256 for part in (*TRAIN, DEV)]
    identity = RULES, LONGEST, MOST_TIMES, parts, other
    sha256 = hashlib.sha256(repr(identity).encode()).hexdigest()
    return cache() / "wmt14" / sha256[:16]


def clean_pair(source: bytes, target: bytes) -> tuple[bytes, bytes] | None:
    """Returns a pair with single spaces, or None where it is to be dropped.

    A pair is dropped if a side has no word or more than 250 between spaces, has more
    than nine times as many as the other, or is not UTF-8. Spaces are those of ASCII.
    """
    words = source.split(), target.split()
    fewest, most = sorted(map(len, words))
    if most > min(LONGEST, MOST_TIMES * fewest):
        return None
    source, target = map(b" ".join, words)
    try:
        if has_a_word(source.decode()) and has_a_word(target.decode()):
            return source, target
    except UnicodeDecodeError:
        pass
    return None


def _read(
    other: str,
    pairs: Sequence[str],
) -> Iterator[tuple[str, str, str]]:
    """Yields the pairs of all splits, and records what was kept of each part."""
    parts = [part for part in TRAIN if other in part.languages]
    dev, *train = [_download(part.url, part.sha256) for part in (DEV, *parts)]
    # Sacrebleu knows address, MD5 and files. Its own download ends the process where
    # the MD5 is another, and takes what a killed one has left for the whole.
    from sacrebleu.dataset import DATASETS

    full = DATASETS["wmt14/full"]
    (url,), (md5,) = full.data, full.md5  # type: ignore[misc]
    test = _download(url, f"md5:{md5}")
    sides = []
    for member in DEV.members(other):
        with open_member(dev, member) as (file, _):
            sides.append(list(decode_lines(file, member)))
    for source, target in zip(*sides, strict=True):
        yield "dev", source, target
    for pair in pairs:
        # What systems were given, and what translations are compared with.
        sides = []
        for member in full.langpairs[pair.replace("_to_", "-")]:
            with open_member(test, member) as (sgml, _):
                sides.append(_segments(sgml.read().decode()))
        for source, target in zip(*sides, strict=True):
            yield pair, source, target
    records = []
    for part, path in zip(parts, train):
        count = count_kept = 0
        for count, clean in enumerate(_clean_part(part, other, path), 1):
            if clean is not None:
                count_kept += 1
                source, target = clean
                yield "train", source.decode(), target.decode()
        records.append({"name": part.name, "pairs": count, "kept": count_kept})
    text = json.dumps(records, indent=2) + "\n"
    write_text(place(other) / "parts.json", text)


def _download(url: str, known_hash: str) -> Path:
    return download(url, cache() / "wmt14" / url.rpartition("/")[2], known_hash)


def _segments(sgml: str) -> list[str]:
    return [" ".join(text.split()) for text in _SEGMENT.findall(sgml)]


def _clean_part(
    part: Part,
    other: str,
    archive: Path,
) -> Iterator[tuple[bytes, bytes] | None]:
    """Yields what `clean_pair` makes of each pair of a part."""
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        (english, size), (foreign, _) = (
            enter(open_member(archive, member))
            for member in part.members(other)
        )
        sides: list[Any] = [english, foreign]
        if part.member.endswith(".gz"):
            sides = [enter(gzip.open(side)) for side in sides]
        line = enter(byte_line(f"cleaning {part.name}", size))
        for number, pair in enumerate(zip(*sides, strict=True), start=1):
            if number % _LINES_BETWEEN == 0:
                line.update(english.tell() - line.n)
            yield clean_pair(*pair)
