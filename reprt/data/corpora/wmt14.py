"""WMT'14 English-French and English-German: archives, one text, how it is read."""

# By hand: TFDS does not clean, and sacrebleu takes a broken download for a whole one.

import contextlib
import dataclasses
import gzip
import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reprt.data.corpora.archive import open_member
from reprt.data.corpora.corpus import Corpus, Split, has_a_word
from reprt.data.corpora.download import download
from reprt.data.corpora.lines import read_lines
from reprt.files import cache, checksum, file_lock, read_toml, whole_folder
from reprt.progress import byte_line

PAIRS = ("en_to_fr", "fr_to_en", "en_to_de", "de_to_en")
# The default ratio of Moses' clean-corpus-n, and the length that fairseq gives it.
# A side with more words between spaces is left out with its pair.
LONGEST = 250
# So is a pair of which a side has this many times the words of the other.
MOST_TIMES = 9
# It changes whenever the archives give other files.
RULES = 3

# `sha256sum --check` reads it beside the files of a text.
SUMS = "SHA256SUMS"

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
    without the pairs that `cleaned` drops. Validation is newstest2013. Test is
    newstest2014 as sacrebleu reads it: what systems were given, and their reference.
    """
    if pair not in PAIRS:
        raise ValueError(
            f"Expected one of {', '.join(PAIRS)}. Received: {pair!r}."
        )
    [other] = {*pair.split("_to_")} - {"en"}
    folder = place(other)
    if not _is_whole(folder):
        with file_lock(folder.with_suffix(".lock")):
            if not _is_whole(folder):
                shutil.rmtree(folder, ignore_errors=True)
                _make(folder, other)

    splits = [
        Split(
            *(
                read_lines(folder / f"{name}.{side}")
                for side in pair.split("_to_")
            )
        )
        for name in ("train", "dev", f"test.{pair}")
    ]
    return Corpus(f"WMT14 {pair}", pair, False, str(folder), *splits)


def place(other: str) -> Path:
    """Returns the folder of the text of these archives, by these rules."""
    parts = [part.sha256 for part in (*TRAIN, DEV)]
    identity = RULES, LONGEST, MOST_TIMES, parts, other
    sha256 = hashlib.sha256(repr(identity).encode()).hexdigest()
    return cache() / "wmt14" / sha256[:16]


def cleaned(source: bytes, target: bytes) -> tuple[bytes, bytes] | None:
    """Returns a pair with single spaces, or None where it is to be dropped.

    A pair is dropped if a side has no word or more than 250 between spaces, has more
    than nine times as many as the other, or is not UTF-8. Spaces are those of ASCII.
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


def _make(folder: Path, other: str):
    """Writes the text, and a record of what was kept of each part."""
    parts = [part for part in TRAIN if other in part.languages]
    dev, *train = [_downloaded(part.url, part.sha256) for part in (DEV, *parts)]
    # Sacrebleu knows address, MD5 and files. Its own download ends the process where
    # the MD5 is another, and takes what a killed one has left for the whole.
    from sacrebleu.dataset import DATASETS

    full = DATASETS["wmt14/full"]
    (url,), (md5,) = full.data, full.md5  # type: ignore[misc]
    test = _downloaded(url, f"md5:{md5}")
    with whole_folder(folder) as place, contextlib.ExitStack() as stack:
        for language, member in zip(("en", other), DEV.members(other)):
            with open_member(dev, member) as (sentences, _):
                (place / f"dev.{language}").write_bytes(sentences.read())
        for pair in (pair for pair in PAIRS if other in pair):
            languages = pair.split("_to_")
            # What systems were given, and what translations are compared with.
            for language, member in zip(
                languages, full.langpairs["-".join(languages)]
            ):
                with open_member(test, member) as (sgml, _):
                    text = "\n".join([*_segments(sgml.read().decode()), ""])
                (place / f"test.{pair}.{language}").write_text(text, "utf-8")
        sides = [
            stack.enter_context(open(place / f"train.{language}", "wb"))
            for language in ("en", other)
        ]
        records = [
            _clean(part, other, path, sides) for part, path in zip(parts, train)
        ]
        for file in sides:
            file.flush()
        (place / "parts.json").write_text(json.dumps(records, indent=2) + "\n")
        (place / SUMS).write_bytes(_sums(place))


def _is_whole(folder: Path) -> bool:
    """Whether a text is there, with the files that were written."""
    if not folder.is_dir():
        return False
    # Texts that earlier versions cached have no such file.
    sums = folder / SUMS
    return not sums.is_file() or sums.read_bytes() == _sums(folder)


def _sums(folder: Path) -> bytes:
    files = sorted(each for each in folder.iterdir() if each.name != SUMS)
    return b"".join(map(checksum, files))


def _downloaded(url: str, known_hash: str) -> Path:
    return download(url, cache() / "wmt14" / url.rpartition("/")[2], known_hash)


def _segments(sgml: str) -> list[str]:
    return [" ".join(each.split()) for each in _SEGMENT.findall(sgml)]


def _clean(
    part: Part,
    other: str,
    archive: Path,
    files,
) -> dict[str, str | int]:
    """Adds what is kept of both sides of a part to two files; returns a record."""
    pairs = kept = 0
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
        for pairs, pair in enumerate(zip(*sides, strict=True), start=1):
            if pairs % _LINES_BETWEEN == 0:
                line.update(english.tell() - line.n)
            if clean := cleaned(*pair):
                kept += 1
                for file, each in zip(files, clean):
                    file.write(each + b"\n")
    return {"name": part.name, "pairs": pairs, "kept": kept}
