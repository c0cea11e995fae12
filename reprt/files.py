"""Files, written whole or not at all and read if they end; the folder of those kept.

A file that is being written has a temporary name. Its process holds a lock on it, so
others see whether that process lives, and remove what a killed one has left.
"""

import contextlib
import errno
import fcntl
import functools
import hashlib
import os
import re
import shutil
import stat
import sys
import uuid
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

_OWN = re.compile(r"\.reprt-[0-9a-f]{12}(\..*)?")
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)  # of some network disks
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a file for writing, which gets its name when all of it is written.

    A kill leaves the whole new file, or what was there before. A link
    is replaced, and what it leads to stays as it is.

    Example:

    >>> with whole_file(Path("answer")) as file:  # doctest: +SKIP
    ...     file.write(b"42")
    """
    make = functools.partial(Path.touch, exist_ok=False)
    with _whole(path, make) as unfinished, open(unfinished, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Makes a folder, which gets its name when all that belongs in it is there.

    A kill leaves the whole folder or none.

    Raises:
        OSError: if there is such a folder by then, and it is not empty.
    """
    with _whole(path, Path.mkdir) as unfinished:
        yield unfinished
        for inside in unfinished.rglob("*"):
            _sync(inside)


def write_text(path: Path, text: str):
    """Writes a file, whole or not at all."""
    with whole_file(path) as file:
        file.write(text.encode())


def is_unfinished(path: Path) -> bool:
    """Whether a file or folder is being written, or was when its process ended."""
    return bool(_OWN.fullmatch(path.name))


def lock_file(path: Path) -> BinaryIO:
    """Opens a file to be locked. What it holds stays; a link is refused."""
    with _named(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "ab", opener=no_link)


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Holds a lock on a file while the context lasts; waits for another holder."""
    with lock_file(path) as lock:
        if not locked(lock):
            print(f"Waiting for the process that holds {lock.name}.", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def locked(file: BinaryIO) -> bool:
    """Locks a file unless another process has, and returns whether none has.

    The system releases the lock when the process ends, however it ends. A disk without
    locks cannot tell, so every process gets True there.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True


def no_link(path: str, flags: int) -> int:
    """Opens a file for `open`; refuses a link, and does not wait for a pipe."""
    if os.path.islink(path):
        raise OSError(errno.ELOOP, "Expected a file. Received a symbolic link", path)
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


def opened(path: str | os.PathLike) -> BufferedReader:
    """Opens a file for reading.

    Raises:
        OSError: if it is missing, or is a pipe or a device, which might never end.
    """
    kind = stat.S_IFMT(os.stat(path).st_mode)
    if kind != stat.S_IFREG:
        received = f"Expected a file. Received {_KINDS.get(kind, 'something else')}"
        raise OSError(errno.EINVAL, received, str(path))
    return open(path, "rb")


def read_text(path: str | os.PathLike, universal_newlines: bool = True) -> str:
    """Returns the text of a file, any line break as `\\n` if newlines are universal.

    Raises:
        OSError: as `opened` does.
        ValueError: if it is not UTF-8, naming the line.
    """
    with opened(path) as file:
        data = file.read()
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise not_utf8(path, data[error.start], line) from None
    if universal_newlines:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def not_utf8(name: object, byte: int, line: int) -> ValueError:
    """Returns the error that names the first byte of a text that is not UTF-8."""
    return ValueError(
        f"Expected {name} to be UTF-8. Received: the byte 0x{byte:02x} in line {line}."
    )


def sha256_of(path: str | os.PathLike) -> str:
    """Returns the sha256 of a file in hexadecimal digits."""
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def in_home(path: str) -> Path:
    """Returns a path whose `~` is a home folder.

    Raises:
        ValueError: if there is no such home folder.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"There is no home folder for {path}.") from None


def cache() -> Path:
    """Returns the folder for what is downloaded, unpacked, learnt or tokenised.

    Raises:
        ValueError: if it would be in a home folder, and there is none.
    """
    try:
        return in_home(os.environ.get("REPRT_CACHE") or "~/.cache/reprt")
    except ValueError as error:
        raise ValueError(f"{error} Set REPRT_CACHE to a folder.") from None


@contextlib.contextmanager
def _whole(path: Path, make: Callable[[Path], object]) -> Iterator[Path]:
    with _named(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(path.parent)
        unfinished, held = _begun(path, make)
        try:
            yield unfinished
            os.replace(unfinished, path)
            _sync(path.parent)
        finally:
            _remove(unfinished)
            os.close(held)


def _begun(path: Path, make: Callable[[Path], object]) -> tuple[Path, int]:
    """Makes what no other process has, and holds it by a lock."""
    while True:
        unfinished = path.with_name(f".reprt-{uuid.uuid4().hex[:12]}{path.suffix}")
        make(unfinished)
        # Before the lock it may be taken for abandoned. Not all disks know locks; on
        # those nothing is removed.
        with contextlib.suppress(FileNotFoundError):
            held = os.open(unfinished, os.O_RDONLY)
            with contextlib.suppress(OSError):
                fcntl.flock(held, fcntl.LOCK_EX)
            if unfinished.exists():
                return unfinished, held
            os.close(held)


def _remove_abandoned(folder: Path):
    for path in filter(is_unfinished, folder.iterdir()):
        with contextlib.suppress(OSError):  # its process lives, or another removes it
            held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path)
            finally:
                os.close(held)


def _remove(path: Path):
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path):
    """Makes the disk keep a file, or what a folder lists, if the power fails."""
    with contextlib.suppress(OSError):  # which not all disks can for folders
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _named(path: Path):
    """Errors of the system name the file to be written, and how to move the cache."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        name = error.filename
        if name is None or any(map(_OWN.fullmatch, Path(os.fsdecode(name)).parts)):
            name = path
        reason = error.strerror or ""
        with contextlib.suppress(ValueError):  # there may be no place for a cache
            if path.absolute().is_relative_to(cache().absolute()):
                reason += "; set REPRT_CACHE to a folder that can be written"
        raise OSError(error.errno, reason, str(name)) from error
