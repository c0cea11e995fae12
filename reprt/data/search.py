"""The search for the text to train on: given, cached, downloaded or built in.

The transcripts of TED-HRLR may not be distributed with the package (CC BY-NC-ND), so
this module searches for them. It announces when it falls back on the built-in text, and
the name of the corpus says so.
"""

import functools
import hashlib
import os
import sys
import tarfile
import textwrap
from pathlib import Path

from reprt.data.corpora import embedded, own, ted, wmt14
from reprt.data.corpora.corpus import Corpus
from reprt.data.corpora.download import download
from reprt.files import cache


class TextUnavailable(ValueError):
    """The text that was asked for is missing, or cannot be used."""


class NothingFound(TextUnavailable):
    """The search for TED ended without a text."""


def find(text: str, pair: str) -> Corpus:
    """Finds the text of a pair.

    The search takes the first of these that is there:

    1. the folder or archive that the environment variable `REPRT_TED` names,
    2. what TFDS has prepared, in `TFDS_DATA_DIR` or `~/tensorflow_datasets`,
    3. the archive in the cache, `REPRT_CACHE` or `~/.cache/reprt`,
    4. the archive from its original address,
    5. the archive from its copy in the Internet Archive.

    Args:
        text: `"auto"` for the search, with the built-in text if it fails; `"ted"` for
            the search only; `"embedded"` for the built-in text; `"wmt14"` for that of
            WMT'14, downloaded if it is not in the cache; else the path of a folder or
            archive laid out as the official one, or of a table with a column a
            language.
        pair: the name that TFDS gives to the pair, e.g. `"pt_to_en"`. A folder or
            archive may hold other pairs, e.g. `"zh-CN_to_en"`. The built-in text is
            Portuguese-English whatever the pair.

    Returns:
        The corpus, whose name and origin tell what was found.

    Raises:
        TextUnavailable: if the path or `REPRT_TED` is given but cannot be used, or if
            the search for `"ted"` or the download of `"wmt14"` fails.
        ValueError: if the pair is unknown.
    """
    ted.any_pair(pair)
    if text == "embedded":
        corpus = embedded.load()
        if corpus.pair != pair:
            _announce(f"The built-in text is {corpus.pair}. You asked for {pair}.")
        return corpus
    if text == "wmt14":
        try:
            return wmt14.load(pair)
        except (OSError, ValueError) as error:
            message = f"The text of WMT'14 is not available: {error}"
            raise TextUnavailable(message) from error
    if text not in ("auto", "ted"):
        setting = "a path (the names are 'auto', 'ted', 'embedded' and 'wmt14')"
        return _given(text, pair, setting)
    if from_environment := os.environ.get("REPRT_TED"):
        return _given(from_environment, pair, "REPRT_TED")
    ted.find_pair(pair)  # nothing else can be searched for

    tried = []
    sources = {"prepared by TFDS": _prepared, "in the cache": _cached}
    for address in ted.ADDRESSES:
        sources[f"by download of {address}"] = functools.partial(_downloaded, address)
    for name, source in sources.items():
        try:
            return source(pair)
        except (ImportError, OSError, ValueError) as error:
            tried.append(f"- {name}: {error}")
    report = _report(pair, tried)
    if text == "ted":
        raise NothingFound(report)
    corpus = embedded.load()
    _announce(
        f"{report}\n\nTHE BUILT-IN TEXT IS USED INSTEAD. IT IS NOT TED: "
        f"{corpus.name}, from and to the languages of {corpus.pair}. You asked for "
        f"{pair}. Its results do not reproduce the paper's."
    )
    return corpus


def _given(path: str, pair: str, setting: str) -> Corpus:
    """Reads the text that the user names, and no other."""
    place = Path(path).expanduser()
    read = ted.read_archive if place.is_file() else ted.read
    try:
        if not place.exists():
            raise FileNotFoundError("there is no such folder, archive or table.")
        if own.is_table(path):
            return own.load(pair, [str(place)])
        if place.is_file() and not tarfile.is_tarfile(place):
            raise ValueError(
                "expected a folder or a tar archive laid out as TED-HRLR's, or a table "
                f"whose name ends with {', '.join(own.TABLES)}. Two files are named by "
                "--train SOURCE TARGET."
            )
        return read(place, pair)
    except (OSError, ValueError) as error:
        raise TextUnavailable(
            f"{path}, given as {setting}, cannot be used for {pair}: {error}"
        ) from error


def _prepared(pair: str) -> Corpus:
    data = os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"
    folder = Path(data).expanduser() / "ted_hrlr_translate" / pair / "1.0.0"
    # TFDS takes seconds to import, so it is asked only if there is something to read.
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no {folder}.")
    try:
        return ted.read_prepared(folder, pair)
    except Exception as error:  # TFDS and TensorFlow have no common base of errors.
        raise ValueError(f"{folder} cannot be read: {error}") from error


def _cached(pair: str) -> Corpus:
    archive = cache() / ted.NAME
    if not archive.is_file():
        raise FileNotFoundError(f"there is no {archive}.")
    with open(archive, "rb") as file:
        received = hashlib.file_digest(file, "sha256").hexdigest()
    if received != ted.SHA256:
        raise ValueError(
            f"Expected {archive} to have the sha256 {ted.SHA256}. Received: {received}."
        )
    return ted.read_archive(archive, pair)


def _downloaded(address: str, pair: str) -> Corpus:
    download(address, cache() / ted.NAME, ted.SHA256)
    return _cached(pair)


def _report(pair: str, tried: list[str]) -> str:
    there = "\n".join(tried)
    return f"""THE TED-HRLR TEXT OF {pair} WAS NOT FOUND. Tried:
{there}

There are three ways to get it:
1. Name the archive, or a folder unpacked from it: REPRT_TED=PATH or --text PATH.
2. Let TFDS prepare ted_hrlr_translate/{pair}, or place the archive at \
{cache() / ted.NAME}.
3. Run this again with a network. It downloads {ted.ADDRESSES[-1]} \
({ted.SIZE:,} bytes) and checks its sha256 {ted.SHA256}."""


@functools.cache
def _announce(message: str):
    """Prints a framed notice to stderr, each one once in a process."""
    frame = "=" * 80
    # Addresses, paths and hashes stay whole, so that they can be copied.
    wrap = textwrap.TextWrapper(76, break_long_words=False, break_on_hyphens=False)
    lines = [line for part in message.split("\n") for line in wrap.wrap(part) or [""]]
    body = "\n".join(f"| {line}" for line in lines)
    print(f"\n{frame}\n{body}\n{frame}\n", file=sys.stderr, flush=True)
