"""WMT'14 English-French: its archives, how they become one text, how it is read."""

import contextlib
import dataclasses
import gzip
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TypedDict

from reprt.data.corpora.archive import unpack
from reprt.data.corpora.corpus import Corpus, Split, has_a_word
from reprt.data.corpora.download import download
from reprt.data.corpora.lines import Lines
from reprt.files import cache, held, opened, read_text, write_text
from reprt.progress import byte_line
from reprt.reading import read_json

LANGUAGES = ("en", "fr")
PAIRS = ("en_to_fr", "fr_to_en")
# The default ratio of Moses' clean-corpus-n, and the length that fairseq gives it.
LONGEST = 250  # words between spaces
MOST_TIMES = 9  # as many words as the other side has
RULES = 1  # changes whenever the archives give another text

RECORD = "parts.json"  # which parts the training text has
VALIDATION = "dev/newstest2013.{}"
# What systems were given, and what their translations are compared with.
SOURCE = "test-full/newstest2014-fren-src.{}.sgm"
REFERENCE = "test-full/newstest2014-fren-ref.{}.sgm"

_LINES_BETWEEN = 10_000  # pairs from one look at the progress to the next
_SEGMENT = re.compile(r"<seg[^>]*>(.*?)</seg>")


@dataclasses.dataclass(frozen=True)
class Part:
    """An archive.

    Args:
        name: what it is called in messages and in the record.
        url: where it is.
        size: its size in bytes; None where it is not known.
        known_hash: its sha256 in hexadecimal digits, or an MD5 as `md5:...`.
        members: the names of the files in it that are read.
    """

    name: str
    url: str
    size: int | None
    known_hash: str
    members: tuple[str, ...]


def _both(name: str) -> tuple[str, ...]:
    return tuple(name.format(language) for language in LANGUAGES)


# Addresses, sizes and sha256 of these are TFDS 4.9.10's (url_checksums of
# wmt14_translate; for UN and giga-fren, of wmt15_translate). The names of the members
# are TFDS' too (translate/wmt.py).
TRAIN = (
    Part(
        "europarl-v7",
        "http://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz",
        657_632_379,
        "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
        _both("training/europarl-v7.fr-en.{}"),
    ),
    Part(
        "commoncrawl",
        "http://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz",
        918_311_367,
        "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
        _both("commoncrawl.fr-en.{}"),
    ),
    Part(
        "un",
        "http://www.statmt.org/wmt13/training-parallel-un.tgz",
        2_365_634_246,
        "29141b5c1eba149a94f7a59d3b1a834b2e47fe0f8758d68dcd77a3d3f497ee47",
        _both("un/undoc.2000.fr-en.{}"),
    ),
    Part(
        "news-commentary-v9",
        "http://www.statmt.org/wmt14/training-parallel-nc-v9.tgz",
        80_418_416,
        "cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
        _both("training/news-commentary-v9.fr-en.{}"),
    ),
    Part(
        "giga-fren",
        "http://www.statmt.org/wmt10/training-giga-fren.tar",
        2_595_102_720,
        "3ff8319f6919393520559bfbc7ad6a747ec81b3abc7be9993b338d4b017b4d9a",
        _both("giga-fren.release2.fixed.{}.gz"),
    ),
)
DEV = Part(
    "newstest2013",
    "http://data.statmt.org/wmt19/translation-task/dev.tgz",
    38_654_961,
    "7a7deccf82ebb05ba508dba5eb21356492224e8f630ec4f992132b029b4b25e7",
    _both(VALIDATION),
)
# Address, MD5 and names are those of sacrebleu's `wmt14/full`, which has no size.
TEST = Part(
    "newstest2014",
    "https://statmt.org/wmt14/test-full.tgz",
    None,
    "md5:a8cd784e006feb32ac6f3d9ec7eb389a",
    _both(SOURCE) + _both(REFERENCE),
)


class Joined(TypedDict):
    """What the record says of a part of the training text."""

    name: str
    pairs: int
    kept: int
    bytes: list[int]
    sha256: list[str]


def load(pair: str) -> Corpus:
    """Returns the text, downloaded, cleaned and joined unless it is in the cache.

    A call does not repeat what an interrupted one has finished. The training text is
    the five archives of `TRAIN` in this order, without the pairs that `cleaned` drops;
    it is not in memory. Validation is newstest2013 and test is newstest2014. The
    source side is what systems were given, and the target side is their reference.
    Both are whole and as sacrebleu reads them.

    Args:
        pair: `"en_to_fr"` or `"fr_to_en"`.

    Raises:
        DownloadError: if a download fails; the next call resumes.
        ValueError: for another pair, or if an archive does not hold what it should.

    Example:

    >>> load("en_to_fr").name  # doctest: +SKIP
    'WMT14 en_to_fr'
    """
    if pair not in PAIRS:
        raise ValueError(f"Expected one of {', '.join(PAIRS)}. Received: {pair!r}.")
    source, target = sides = pair.split("_to_")
    folder = place()
    dev, test = (folder / part.name for part in (DEV, TEST))
    if not _is_whole(folder):  # a whole one may be where nothing can be written
        with held(folder.with_suffix(".lock")):
            for part in (DEV, TEST):
                _unpacked(part, folder)
            _join(folder)
    return Corpus(
        name=f"WMT14 {pair}",
        pair=pair,
        official=False,
        origin=str(folder),
        train=Split(*(Lines.read(folder / f"train.{side}") for side in sides)),
        dev=Split(*(Lines.read(dev / VALIDATION.format(side)) for side in sides)),
        test=Split(
            _segments(test / SOURCE.format(source)),
            _segments(test / REFERENCE.format(target)),
        ),
    )


def place() -> Path:
    """Returns the folder of the text; other archives or rules have another one."""
    hashes = [part.known_hash for part in (*TRAIN, DEV, TEST)]
    identity = RULES, LONGEST, MOST_TIMES, hashes
    sha256 = hashlib.sha256(repr(identity).encode()).hexdigest()
    return cache() / "wmt14" / sha256[:16]


def cleaned(source: bytes, target: bytes) -> tuple[bytes, bytes] | None:
    """Returns a pair with single spaces, or None where it is to be dropped.

    A pair is dropped if a side has no word or more than 250 between spaces, has more
    than nine times as many as the other, or is not UTF-8. Spaces are those of ASCII.

    Example:

    >>> cleaned(b"a  house\\r\\n", b"une maison\\n")
    (b'a house', b'une maison')
    >>> cleaned(b"a house", b"  ") is None
    True
    """
    words = source.split(), target.split()
    fewest, most = sorted(map(len, words))
    if most > min(LONGEST, MOST_TIMES * fewest):
        return None
    one, other = map(b" ".join, words)
    try:
        kept = has_a_word(one.decode()) and has_a_word(other.decode())
    except UnicodeDecodeError:
        return None
    return (one, other) if kept else None


def _is_whole(folder: Path) -> bool:
    """Whether the text is there, and nothing of what made it."""
    joined = _joined(folder)
    return (
        len(joined) == len(TRAIN)
        and all((folder / part.name).is_dir() for part in (DEV, TEST))
        and not any((folder / part.name).exists() for part in TRAIN)
        and _ends(joined) == [path.stat().st_size for path in _training_text(folder)]
    )


def _unpacked(part: Part, folder: Path) -> Path:
    """Returns the folder of a part's members, which may be there already."""
    into = folder / part.name
    if not into.is_dir():
        archive = folder.with_name(part.url.rpartition("/")[2])
        download(part.url, archive, part.size, part.known_hash)
        unpack(archive, into, part.members)
    return into


def _join(folder: Path):
    """Appends to the training text the parts that it lacks.

    A part counts when it is in the record; what a killed process has left behind is
    cut off.
    """
    joined = _joined(folder)
    with contextlib.ExitStack() as stack:
        files = [
            stack.enter_context(open(path, "ab")) for path in _training_text(folder)
        ]
        for file, end in zip(files, _ends(joined)):
            file.truncate(end)
            file.seek(end)
        for part in TRAIN[: len(joined)]:  # whose process was killed before this
            shutil.rmtree(folder / part.name, ignore_errors=True)
        for part in TRAIN[len(joined) :]:
            members = _unpacked(part, folder)
            joined.append(_append(part, members, files))
            write_text(folder / RECORD, json.dumps(joined, indent=2) + "\n")
            shutil.rmtree(members)


def _joined(folder: Path) -> list[Joined]:
    """Reads the record, which the training text has to bear out.

    Raises:
        ValueError: if it does not.
    """
    record = folder / RECORD
    joined = read_json(record) if record.exists() else []
    again = f"Remove {folder}; the command makes it again."
    names = [part.name for part in TRAIN[: len(joined)]]
    sizes = [part["bytes"] for part in joined]
    if [part["name"] for part in joined] != names or any(
        len(each) != len(LANGUAGES) or min(each) < 0 for each in sizes
    ):
        raise ValueError(
            f"Expected {record} to have the parts {', '.join(names)} with two sizes "
            f"each. Received another record. {again}"
        )
    for path, end in zip(_training_text(folder), _ends(joined)):
        if end and (not path.exists() or path.stat().st_size < end):
            raise ValueError(
                f"Expected {path} to have {end:,} bytes or more, as {record} says. "
                f"{again}"
            )
    return joined


def _training_text(folder: Path) -> list[Path]:
    return [folder / f"train.{language}" for language in LANGUAGES]


def _ends(joined: Sequence[Joined]) -> list[int]:
    """How many bytes of each side are in the record."""
    sides = range(len(LANGUAGES))
    return [sum(part["bytes"][side] for part in joined) for side in sides]


def _append(part: Part, folder: Path, files: Sequence[BinaryIO]) -> Joined:
    """Appends one part; each line but the first of a file begins with its break."""
    hashes = [hashlib.sha256() for _ in files]
    begun = [os.fstat(file.fileno()).st_size for file in files]
    between = b"\n" if begun[0] else b""
    pairs = kept = 0
    for pairs, pair in enumerate(_pairs(part, folder), start=1):
        if clean := cleaned(*pair):
            kept += 1
            for file, sha256, line in zip(files, hashes, clean):
                sha256.update(line + b"\n")
                file.write(between + line)
            between = b"\n"
    for file in files:
        file.flush()
        os.fsync(file.fileno())
    return {
        "name": part.name,
        "pairs": pairs,
        "kept": kept,
        "bytes": [file.tell() - start for file, start in zip(files, begun)],
        "sha256": [sha256.hexdigest() for sha256 in hashes],
    }


def _pairs(part: Part, folder: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yields the lines of both members, and shows how far they have been read."""
    paths = [folder / member for member in part.members]
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(opened(path)) for path in paths]
        sides = [
            stack.enter_context(gzip.open(file)) if path.suffix == ".gz" else file
            for path, file in zip(paths, files)
        ]
        size = os.fstat(files[0].fileno()).st_size
        line = stack.enter_context(byte_line(f"cleaning {part.name}", size, 0))
        try:
            for count, pair in enumerate(zip(*sides, strict=True)):
                if count % _LINES_BETWEEN == 0:
                    line.update(files[0].tell() - line.n)
                yield pair
        except ValueError as error:
            raise ValueError(
                f"Both files of {part.name} need the same number of lines, {paths[0]} "
                f"and {paths[1]}. Received: {error}."
            ) from error


def _segments(path: Path) -> list[str]:
    """The sentences of one of WMT's files in SGML; entities stay as they are."""
    found = _SEGMENT.findall(read_text(path))
    return [" ".join(sentence.split()) for sentence in found]
