"""WMT'14 English-French and English-German: archives, one text, how it is read."""

# By hand: TFDS does not clean, and sacrebleu takes a broken download for a whole one.

import dataclasses
import gzip
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reprt.data.corpora.archive import open_member
from reprt.data.corpora.corpus import Corpus, Split, has_a_word
from reprt.data.corpora.download import download
from reprt.data.corpora.lines import read_lines
from reprt.files import cache, file_lock, read_toml, whole_folder
from reprt.progress import byte_line

PAIRS = ("en_to_fr", "fr_to_en", "en_to_de", "de_to_en")
# The most words between spaces, and how many times as many as the other side has: the
# length that fairseq gives Moses' clean-corpus-n, and that program's own ratio.
LONGEST = 250
GREATEST_RATIO = 9
# It changes whenever the archives, or the rules of cleaning, give other files.
VERSION = 4

# The progress is shown again after this many pairs.
_PAIRS_BETWEEN = 10_000
_SEGMENT = re.compile(r"<seg[^>]*>(.*?)</seg>")


@dataclasses.dataclass(frozen=True)
class Part:
    """An archive, as `wmt14.toml` has it."""

    name: str
    url: str
    sha256: str
    member: str
    languages: Sequence[str] = ("fr", "de")

    def members(self, other: str) -> dict[str, str]:
        """The files in English and in the other language."""
        return {
            language: self.member.format(language, other=other)
            for language in ("en", other)
        }


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
    source, target = pair.split("_to_")
    other = target if source == "en" else source
    folder = place(other)
    if not folder.is_dir():
        with file_lock(folder.with_suffix(".lock")):
            # Another process may have written it in the meantime.
            if not folder.is_dir():
                _make(folder, other)
    splits = []
    for name in ("train", "dev", f"test.{pair}"):
        sources = read_lines(folder / f"{name}.{source}")
        splits.append(Split(sources, read_lines(folder / f"{name}.{target}")))
    return Corpus(f"WMT14 {pair}", pair, False, str(folder), *splits)


def place(other: str) -> Path:
    """Returns the folder of the text in English and another language."""
    return cache() / "wmt14" / f"en-{other}-{VERSION}"


def cleaned(source: bytes, target: bytes) -> tuple[bytes, bytes] | None:
    """Returns a pair with single spaces, or None where it is to be dropped.

    A pair is dropped if a side has no word or more than 250 between spaces, has more
    than nine times as many as the other, or is not UTF-8. Spaces are those of ASCII.
    """
    words = source.split(), target.split()
    fewest, most = sorted(map(len, words))
    if most > min(LONGEST, GREATEST_RATIO * fewest):
        return None
    source, target = map(b" ".join, words)
    try:
        both = has_a_word(source.decode()) and has_a_word(target.decode())
    except UnicodeDecodeError:
        return None
    return (source, target) if both else None


def _make(folder, other):
    """Writes the text."""
    # Sacrebleu knows address, MD5 and files. Its own download ends the process where
    # the MD5 is another, and takes what a killed one has left for the whole.
    from sacrebleu.dataset import DATASETS

    news: Any = DATASETS["wmt14/full"]
    test = _download(news.data[0], f"md5:{news.md5[0]}")
    dev = _download(DEV.url, DEV.sha256)
    parts = [part for part in TRAIN if other in part.languages]
    archives = [_download(part.url, part.sha256) for part in parts]
    with whole_folder(folder) as text:
        for language, member in DEV.members(other).items():
            with open_member(dev, member) as (_, sentences):
                (text / f"dev.{language}").write_bytes(sentences.read())
        for languages in (("en", other), (other, "en")):
            pair = "_to_".join(languages)
            # What systems were given, and what translations are compared with.
            members = news.langpairs["-".join(languages)]
            for language, member in zip(languages, members):
                with open_member(test, member) as (_, sgml):
                    segments = _segments(sgml.read().decode())
                lines = "\n".join([*segments, ""])
                (text / f"test.{pair}.{language}").write_text(lines, "utf-8")
        with (
            open(text / "train.en", "wb") as english,
            open(text / f"train.{other}", "wb") as foreign,
        ):
            for part, archive in zip(parts, archives):
                _clean(part, other, archive, english, foreign)


def _download(url, known_hash):
    return download(url, cache() / "wmt14" / url.rpartition("/")[2], known_hash)


def _segments(sgml: str) -> list[str]:
    return [" ".join(text.split()) for text in _SEGMENT.findall(sgml)]


def _clean(part, other, archive, *files):
    """Adds the clean pairs of a part to two files."""
    english, foreign = part.members(other).values()
    with (
        open_member(archive, english) as (size, content),
        open_member(archive, foreign) as (_, foreign_content),
        byte_line(f"cleaning {part.name}", size) as line,
    ):
        sides: list[Any] = [content, foreign_content]
        if part.member.endswith(".gz"):
            sides = [gzip.open(side) for side in sides]
        for number, pair in enumerate(zip(*sides, strict=True)):
            if number % _PAIRS_BETWEEN == 0:
                line.update(content.tell() - line.n)
            if sentences := cleaned(*pair):
                for file, sentence in zip(files, sentences):
                    file.write(sentence + b"\n")
