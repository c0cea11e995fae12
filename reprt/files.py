"""Files: read, and written whole or not at all; locks; the folder of the cache."""

# By hand, for the usual libraries cannot write a folder whole or not at all.

import contextlib
import csv
import hashlib
import io
import itertools
import json
import os
import re
import shutil
import sys
import time
import tomllib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import platformdirs

_UNFINISHED = re.compile(r"\.reprt-[0-9a-f]{12}(\..*)?")


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a file for writing, which gets its name when all of it is written.

    A link is replaced, and what it leads to stays as it is.
    """
    with _write_whole(path) as unfinished, open(unfinished, "xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Makes a folder, which gets its name when all that belongs in it is there."""
    with _write_whole(path) as unfinished:
        unfinished.mkdir()
        yield unfinished
        for path_inside in filter(Path.is_file, unfinished.rglob("*")):
            with open(path_inside, "rb") as file:
                os.fsync(file.fileno())


def write_text(path: Path, text: str):
    """Writes a file, whole or not at all."""
    with whole_file(path) as file:
        file.write(text.encode())


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns rows as CSV below their names; cells that a row lacks are empty.

    >>> csv_text([{"a": 1}, {"a": 2, "b": 0.5}])
    'a,b\\n1,\\n2,0.5\\n'
    """
    if not rows:
        return ""
    names = dict.fromkeys(itertools.chain.from_iterable(rows))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def make_once(
    path: Path,
    make: Callable[[Path], None],
    progress: Callable[[str], None],
):
    """Leaves a file that `make` writes, unless it is there as it was written.

    Its sha256 stands beside it, as `sha256sum` writes and checks it. A file that has
    another, or none, is written anew.
    """
    checksum_file = path.with_name(f"{path.name}.sha256")
    if path.is_file() and checksum_file.is_file():
        if checksum_file.read_bytes() == checksum(path):
            return
        progress(f"{path} is damaged, and is made anew")
    make(path)
    with whole_file(checksum_file) as file:
        file.write(checksum(path))


def sha256_of(path: Path) -> str:
    """Returns the sha256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksum(path: Path) -> bytes:
    """Returns the line that `sha256sum` writes of a file."""
    return f"{sha256_of(path)}  {path.name}\n".encode()


def is_unfinished(path: Path) -> bool:
    """Whether a file or folder is being written, or was when its process ended."""
    return bool(_UNFINISHED.fullmatch(path.name))


def remove_unfinished(folder: Path, pattern: str = "*"):
    """Removes what killed processes left half-written in a folder.

    The caller must be the only process that writes such files there.
    """
    for path in folder.glob(pattern):
        if is_unfinished(path):
            _remove(path)


@contextlib.contextmanager
def file_lock(path: Path, wait: bool = True) -> Iterator[bool]:
    """Holds a lock on a file while the context lasts.

    The system releases it when the process ends, however it ends. A disk without locks,
    as some of a network are, cannot tell; every process gets True there. Without `wait`
    it yields False where another process holds the lock. A link is replaced.
    """
    # The extra `train` has it, as it has all that takes locks.
    import portalocker

    with _name_path_in_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            path.unlink()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        lock = os.fdopen(os.open(path, flags, 0o666), "ab")
    with lock:
        acquired = _try_lock(lock)
        if not acquired and wait:
            print(
                f"Waiting for the process that holds {path}.",
                file=sys.stderr,
            )
            portalocker.lock(lock, portalocker.LOCK_EX)
            acquired = True
        elif not acquired:
            # A page holds it for a moment, to see whether a run is in training.
            time.sleep(0.1)
            acquired = _try_lock(lock)
        yield acquired


def _try_lock(lock) -> bool:
    """Takes a lock if it is free; a disk without locks has only free ones."""
    import portalocker

    try:
        portalocker.lock(lock, portalocker.LOCK_EX | portalocker.LOCK_NB)
    except portalocker.AlreadyLocked:
        return False
    except portalocker.LockException:
        pass
    return True


def read_text(path: str | os.PathLike) -> str:
    """Returns a file's text, its line breaks as `\\n`; it has to be UTF-8."""
    data = Path(path).read_bytes()
    try:
        # Some editors put a byte order mark before a text.
        text = data.decode().removeprefix("\ufeff")
        return text.replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise not_utf8(path, data[error.start], line) from None


def not_utf8(name: object, byte: int, line: int) -> ValueError:
    """Returns the error that names the first byte of a text that is not UTF-8."""
    return ValueError(
        f"Expected {name} to be UTF-8. Received: the byte 0x{byte:02x} in line {line}."
    )


def read_toml(path: Path) -> dict[str, Any]:
    """Returns the tables of a TOML file; a `ValueError` names a file that is none."""
    return _parse(tomllib.loads, path, "TOML")


def read_json(path: Path) -> Any:
    """Returns the content of a JSON file; a `ValueError` names a file that is none."""
    return _parse(json.loads, path, "JSON")


def _parse(parse: Callable[[str], Any], path: Path, language: str) -> Any:
    text = read_text(path)
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{path} is not valid {language}: {error}.") from error


def cache() -> Path:
    """Returns the folder for what is downloaded, learnt or tokenised."""
    if folder := os.environ.get("REPRT_CACHE"):
        return expand_path(folder)
    try:
        return Path(platformdirs.user_cache_dir("reprt")).expanduser()
    except RuntimeError:
        raise ValueError(
            "Expected a home folder, where the cache goes. Received: a user without "
            "one. Set REPRT_CACHE to a folder that can be written."
        ) from None


def expand_path(path: str) -> Path:
    """Returns a path with the user's home in the place of `~`.

    A name that is not UTF-8 is a `ValueError`: no recipe or record could hold it.
    """
    try:
        place = Path(path).expanduser()
        str(place.absolute()).encode()
    except RuntimeError:
        raise ValueError(
            f"Expected a path whose ~ stands for a home folder. Received: {path}, of a "
            "user without one. Write the whole path."
        ) from None
    except UnicodeEncodeError:
        raise ValueError(
            f"Expected a path to be UTF-8. Received: {str(place.absolute())!r}. Rename "
            "it."
        ) from None
    return place


@contextlib.contextmanager
def _write_whole(path: Path) -> Iterator[Path]:
    with _name_path_in_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(
            f".reprt-{uuid.uuid4().hex[:12]}{path.suffix}"
        )
        try:
            yield unfinished
            os.replace(unfinished, path)
        finally:
            _remove(unfinished)


def _is_cached(path: Path) -> bool:
    try:
        return path.absolute().is_relative_to(cache().absolute())
    # There is no cache.
    except ValueError:
        return False


def _remove(path: Path):
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _name_path_in_errors(path: Path):
    """Makes system errors name the file, and say how to move the cache."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        reason, name = error.strerror or "", os.fsdecode(error.filename or path)
        if any(map(_UNFINISHED.fullmatch, Path(name).parts)):
            name = str(path)
        # A file that is read meanwhile may stand elsewhere.
        named = Path(name).absolute()
        of_cache = _is_cached(named) or path.absolute().is_relative_to(named)
        if _is_cached(path) and of_cache:
            reason += "; set REPRT_CACHE to a folder that can be written"
        raise OSError(error.errno, reason, name) from error
