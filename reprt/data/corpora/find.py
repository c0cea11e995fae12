"""The search for the text to train on: given, cached, downloaded or built in.

The transcripts of TED-HRLR may not be distributed with the package (CC BY-NC-ND), so
this module searches for them.
"""

import functools
import os
import tarfile
from collections.abc import Sequence

from reprt.constants import TEXTS
from reprt.data.corpora import embedded, own, ted, wmt14
from reprt.data.corpora.corpus import Corpus
from reprt.data.corpora.download import download
from reprt.data.corpora.tables import TABLES, Quoting, is_table
from reprt.files import cache, expand_path


class TextUnavailable(ValueError):
    """The text that was asked for is missing, or cannot be used."""


class NothingFound(TextUnavailable):
    """The search for TED ended without a text."""


def find(
    text: str,
    pair: str,
    columns: Sequence[str] = (),
    quoting: Quoting | None = None,
) -> Corpus:
    """Finds the text of a pair; its name and origin tell which it is.

    The search for TED takes the first of these that is there:

    1. the folder or archive that the environment variable `REPRT_TED` names,
    2. what TFDS has prepared, in `TFDS_DATA_DIR` or `~/tensorflow_datasets`,
    3. the archive in the cache, `REPRT_CACHE` or `~/.cache/reprt`, on macOS
       `~/Library/Caches/reprt`,
    4. the archive from its original address,
    5. the archive from its copy in the Internet Archive.

    Args:
        text: `"ted"` or `"auto"` for the search; `"embedded"` for the built-in text;
            `"wmt14"` for that of WMT'14, downloaded if it is not in the cache; else the
            path of a folder or archive laid out as the official one, or of a table with
            one column per language.
        pair: the name that TFDS gives to the pair, e.g. `"pt_to_en"`. A folder or
            archive may hold other pairs, e.g. `"zh-CN_to_en"`.
        columns: of a table, the source's and the target's. Defaults to the languages.
        quoting: of `.tsv` and `.csv`: `"none"` if quotes are part of the sentences,
            `"double"` if they stand around cells and are doubled within, `"backslash"`
            if a backslash is before those within, `"escapes"` if they are part of the
            sentences and a line break is written as `\\n`. Defaults to the one way that
            fits.

    Raises:
        TextUnavailable: if the path or `REPRT_TED` is given but cannot be used, or if
            the download of `"wmt14"` fails; `NothingFound` if the search does.
        ValueError: if the pair is unknown, or not that of the built-in text.
    """
    ted.find_pair(pair)
    if not text.strip():
        raise ValueError(
            f"Expected the name of a text, one of {', '.join(TEXTS)}, or a path. "
            f"Received: {text!r}."
        )
    if text == "embedded":
        corpus = embedded.load()
        if corpus.pair != pair:
            raise ValueError(
                f"Expected the pair of the embedded text, {corpus.pair}. Received: "
                f"{pair}. Another pair needs another --text."
            )
        return corpus
    if text == "wmt14":
        try:
            return wmt14.load(pair)
        except (OSError, ValueError) as error:
            message = f"The text of WMT'14 is not available: {error}"
            raise TextUnavailable(message) from error
    if text not in ("auto", "ted"):
        setting = f"a path (the names are {', '.join(TEXTS)})"
        return _read_path(text, pair, setting, columns, quoting)
    if from_environment := os.environ.get("REPRT_TED"):
        return _read_path(from_environment, pair, "REPRT_TED")
    # Nothing else can be searched for.
    ted.find_pair(pair, of_ted=True)

    failures = []
    sources = [
        ("prepared by TFDS", _read_prepared),
        ("in the cache", _read_cached),
    ]
    for address in ted.ADDRESSES:
        sources.append(
            ("by download", functools.partial(_read_download, address))
        )
    for name, source in sources:
        try:
            return source(pair)
        except (ImportError, OSError, ValueError) as error:
            failures.append(f"- {name}: {error}")
    attempts = "\n".join(failures)
    raise NothingFound(f"""THE TED-HRLR TEXT OF {pair} WAS NOT FOUND. Tried:
{attempts}

There are three ways to get it:
1. Name the archive, or a folder unpacked from it: REPRT_TED=PATH or --text PATH.
2. Let TFDS prepare ted_hrlr_translate/{pair}, or place the archive at \
{cache() / ted.NAME}.
3. Run this again with a network. It downloads {ted.ADDRESSES[-1]} \
({ted.SIZE:,} bytes) and checks its sha256 {ted.SHA256}.""")


def _read_path(
    path: str,
    pair: str,
    setting: str,
    columns: Sequence[str] = (),
    quoting=None,
) -> Corpus:
    """Reads the text that the user names, and no other."""
    place = expand_path(path)
    try:
        if not place.exists():
            raise FileNotFoundError(
                "there is no such folder, archive or table."
            )
        if is_table(path):
            return own.load(
                pair,
                [str(place)],
                columns=columns,
                quoting=quoting,
            )
        if place.is_file() and not tarfile.is_tarfile(place):
            raise ValueError(
                "expected a folder or a tar archive laid out as TED-HRLR's, or a table "
                f"whose name ends with {', '.join(TABLES)}. Two files are named by "
                "--train SOURCE TARGET."
            )
        return ted.read(place, pair)
    except (OSError, ValueError) as error:
        raise TextUnavailable(
            f"{path}, given as {setting}, cannot be used for {pair}: {error}"
        ) from error


def _read_prepared(pair: str) -> Corpus:
    data = os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"
    folder = expand_path(data) / "ted_hrlr_translate" / pair / "1.0.0"
    # TFDS takes seconds to import, so it is asked only if there is something to read.
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no {folder}.")
    try:
        return ted.read_prepared(folder, pair)
    # TFDS and TensorFlow have no common base of errors.
    except Exception as error:
        raise ValueError(f"{folder} cannot be read: {error}") from error


def _read_cached(pair: str) -> Corpus:
    archive = cache() / ted.NAME
    if not archive.is_file():
        raise FileNotFoundError(f"there is no {archive}.")
    return ted.read(archive, pair)


def _read_download(address: str, pair: str) -> Corpus:
    download(address, cache() / ted.NAME, ted.SHA256)
    return _read_cached(pair)
