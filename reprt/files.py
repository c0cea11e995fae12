"""Files: read, and written whole or not at all; locks; the folder of the cache."""

# By hand, for the usual libraries cannot write a folder whole or not at all.

import contextlib
import json
import os
import re
import shutil
import sys
import tomllib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import platformdirs

_UNFINISHED = re.compile(r"\.reprt-[0-9a-f]{12}(\..*)?")


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a file for writing, which gets its name when all of it is written.

    A link is replaced, and what it leads to stays as it is.
    """
    with _whole(path) as unfinished, open(unfinished, "xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Makes a folder, which gets its name when all that belongs in it is there."""
    with _whole(path) as unfinished:
        unfinished.mkdir()
        yield unfinished
        for inside in filter(Path.is_file, unfinished.rglob("*")):
            with open(inside, "rb") as file:
                os.fsync(file.fileno())


def write_text(path: Path, text: str):
    """Writes a file, whole or not at all."""
    with whole_file(path) as file:
        file.write(text.encode())


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
    import portalocker  # of the extra `train`, like all that takes locks

    with _naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            path.unlink()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        lock = os.fdopen(os.open(path, flags, 0o666), "ab")
    with lock:
        mine = True
        try:
            portalocker.lock(lock, portalocker.LOCK_EX | portalocker.LOCK_NB)
        except portalocker.AlreadyLocked:
            mine = wait
            if wait:
                print(f"Waiting for the process that holds {path}.", file=sys.stderr)
                portalocker.lock(lock, portalocker.LOCK_EX)
        except portalocker.LockException:
            pass
        yield mine


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
    return _parsed(tomllib.loads, path, "TOML")


def read_json(path: Path) -> Any:
    """Returns the content of a JSON file; a `ValueError` names a file that is none."""
    return _parsed(json.loads, path, "JSON")


def _parsed(parse: Callable[[str], Any], path: Path, language: str) -> Any:
    text = read_text(path)
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{path} is not valid {language}: {error}.") from error


def cache() -> Path:
    """Returns the folder for what is downloaded, learnt or tokenised."""
    named = os.environ.get("REPRT_CACHE")
    return Path(named or platformdirs.user_cache_dir("reprt")).expanduser()


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[Path]:
    with _naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f".reprt-{uuid.uuid4().hex[:12]}{path.suffix}")
        try:
            yield unfinished
            os.replace(unfinished, path)
        finally:
            _remove(unfinished)


def _remove(path: Path):
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _naming(path: Path):
    """Makes system errors name the file, and say how to move the cache."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        reason, name = error.strerror or "", os.fsdecode(error.filename or path)
        if any(map(_UNFINISHED.fullmatch, Path(name).parts)):
            name = str(path)
        if path.absolute().is_relative_to(cache().absolute()):
            reason += "; set REPRT_CACHE to a folder that can be written"
        raise OSError(error.errno, reason, name) from error
