"""Downloads that resume and are checked before they count; archives unpacked safely."""

import contextlib
import fcntl
import gzip
import hashlib
import http.client
import lzma
import os
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from reprt.progress import duration

TIMEOUT = 20
"""Seconds to wait for a connection, and then for each piece of the body."""

_CHUNK = 1 << 16


class DownloadError(OSError):
    """The address cannot be reached, or what it delivered is not what was expected."""


class ArchiveError(ValueError):
    """The archive is damaged, is no tar archive, or would write outside its folder."""


class Progress:
    """Tells how far a download has come, and when it will be done.

    On a terminal one line is rewritten in place; elsewhere, as in a log file, a line
    is added now and then.

    Args:
        name: what is downloaded.
        total: its size in bytes.
        stream: where to write to.

    Example:

    >>> with Progress("corpus.tar.gz", total=2_000_000, stream=sys.stderr) as progress:
    ...     progress(1_000_000)
    """

    def __init__(self, name: str, total: int, stream: TextIO):
        self._name = name
        self._total = total
        self._stream = stream
        self._rewrites = stream.isatty()
        self._interval = 0.2 if self._rewrites else 10.0
        self._first: tuple[float, int] | None = None
        self._shown_at = -float("inf")
        self._line_is_open = False

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_):
        if self._line_is_open:
            self._stream.write("\n")
            self._stream.flush()

    def __call__(self, received: int):
        """Shows that `received` bytes are there, unless it has shown some just now."""
        now = time.monotonic()
        if self._first is None:
            # What an earlier, interrupted download left says nothing about the speed.
            self._first = now, received
        if now - self._shown_at < self._interval and received < self._total:
            return
        self._shown_at = now
        line = self._describe(now, received)
        self._stream.write(f"\r{line:<78}" if self._rewrites else f"{line}\n")
        self._stream.flush()
        self._line_is_open = self._rewrites

    def _describe(self, now: float, received: int) -> str:
        assert self._first is not None
        started, before = self._first
        share = received / self._total
        line = f"{self._name}: {share:4.0%} of {self._total / 1e6:,.1f} MB"
        if received > before and now > started:
            speed = (received - before) / (now - started)
            left = duration((self._total - received) / speed)
            line += f", {speed / 1e6:.1f} MB/s, ETA {left}"
        return line


def download(
    url: str,
    path: str | os.PathLike,
    size: int,
    sha256: str,
    progress: TextIO | None = None,
) -> Path:
    """Downloads a file whose size and sha256 are known, resuming where it stopped.

    Bytes gather in `<path>.part`. Only when all are there and their sha256 is right
    does the file get its name, so that a file at `path` can be trusted. If the right
    file is there already, nothing is downloaded.

    Args:
        url: the address, http or https.
        path: where the file shall be; missing folders are created.
        size: the expected number of bytes.
        sha256: the expected sha256, in hexadecimal digits.
        progress: the stream to show the progress on, by default stderr.

    Returns:
        `path`.

    Raises:
        DownloadError: if the address cannot be reached, the connection drops (the
            next call resumes), or anything but the expected file is delivered (what
            came is deleted).
    """
    path = Path(path)
    part = path.with_name(path.name + ".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path.with_name(path.name + ".lock")):
        if not _is_right(path, size, sha256):
            with Progress(path.name, size, progress or sys.stderr) as shown:
                _receive(url, part, size, shown)
            try:
                check(part, size, sha256)
            except DownloadError as error:
                part.unlink()
                raise DownloadError(
                    f"{url} did not deliver the expected file, and what came was "
                    f"deleted. {error}"
                ) from None
            part.replace(path)
    return path


def check(path: str | os.PathLike, size: int, sha256: str):
    """Checks the size and the sha256 of a file.

    Args:
        path: the file.
        size: the expected number of bytes.
        sha256: the expected sha256, in hexadecimal digits.

    Raises:
        DownloadError: if either differs; it shows how the file begins, since that
            often tells what it is instead.
    """
    received = Path(path).stat().st_size
    if received == size:
        digest = sha256_of(path)
        if digest == sha256:
            return
        difference = f"the sha256 {sha256}. Received: {digest}"
    else:
        amount = f"{received}" if received < size else f"more than {size}"
        difference = f"{size} bytes. Received: {amount}"
    with open(path, "rb") as file:
        beginning = file.read(40)
    raise DownloadError(
        f"Expected {path} to have {difference}, beginning with {beginning!r}."
    )


def sha256_of(path: str | os.PathLike) -> str:
    """Returns the sha256 of a file in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unpack(archive: str | os.PathLike, folder: str | os.PathLike) -> Path:
    """Unpacks a tar archive, compressed or not, into a folder of its own.

    The folder appears only when all of the archive is in it. One that exists already
    is therefore whole, and is left as it is.

    Args:
        archive: the archive.
        folder: the folder to create; missing parents are created, too.

    Returns:
        `folder`.

    Raises:
        ArchiveError: if the archive is damaged, is no tar archive, or has a member
            that would be written outside `folder`, links to the outside or is a
            device. Nothing is left behind then.
    """
    folder = Path(folder)
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix=f".{folder.name}-", dir=folder.parent
    ) as scratch:
        whole = Path(scratch) / folder.name
        whole.mkdir()
        _extract(archive, whole)
        try:
            whole.rename(folder)
        except OSError:
            # Another process may have been faster; its folder is as good.
            if not folder.is_dir():
                raise
    return folder


def _receive(url: str, part: Path, size: int, progress: Progress):
    """Appends to `part` until it has `size` bytes, or more if the server sends more."""
    there = part.stat().st_size if part.exists() else 0
    if there == size:
        return
    with _request(url, there if there < size else 0) as response:
        _check_promise(url, response, size)
        resumes = response.status == http.client.PARTIAL_CONTENT
        with part.open("ab" if resumes else "wb") as file:
            received = file.tell()
            progress(received)
            try:
                # One byte too many is enough to know that this is another file.
                while chunk := response.read(min(_CHUNK, size + 1 - received)):
                    received += file.write(chunk)
                    progress(received)
            except (OSError, http.client.HTTPException) as error:
                raise _dropped(url, received, size, error) from error
        # `length` is what the server still owes of the length that it had promised.
        if received < size and response.length:
            raise _dropped(url, received, size, "connection closed")


def _request(url: str, start: int) -> http.client.HTTPResponse:
    """Asks for the bytes from `start` on; the server may answer with all of them."""
    headers = {"User-Agent": "reprt"}
    if start:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(url, headers=headers)
    try:
        return urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and start:
            return _request(url, start=0)
        raise DownloadError(
            f"{url} should deliver a file. Received: HTTP error {error.code} "
            f"({error.reason})."
        ) from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise DownloadError(
            f"{url} cannot be reached: {reason or type(error).__name__}."
        ) from error


def _check_promise(url: str, response: http.client.HTTPResponse, size: int):
    """Refuses a file of another size before it overwrites what is already there."""
    if response.status == http.client.PARTIAL_CONTENT:
        promised = response.headers.get("Content-Range", "").rpartition("/")[2]
    else:
        promised = response.headers.get("Content-Length", "")
    if promised.isdigit() and int(promised) != size:
        raise DownloadError(
            f"{url} does not deliver the expected file. Expected {size} bytes. "
            f"Received: {promised} bytes of {response.headers.get_content_type()}."
        )


def _dropped(url: str, received: int, size: int, reason: object) -> DownloadError:
    return DownloadError(
        f"{url}: the connection dropped after {received} of {size} bytes ({reason}). "
        "They are kept: run this again to resume."
    )


def _is_right(path: Path, size: int, sha256: str) -> bool:
    try:
        check(path, size, sha256)
    except (DownloadError, FileNotFoundError):
        return False
    return True


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lets one process at a time download; the others then find the file there."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"Waiting for the process that holds {path}.", file=sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _extract(archive: str | os.PathLike, folder: Path):
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter=_data_filter)
            # tarfile stops at the end mark; the checksum of the compressed stream
            # stands behind it and is verified only by reading on.
            while tar.fileobj.read(_CHUNK):  # type: ignore[union-attr]
                pass
    except tarfile.FilterError as error:
        raise ArchiveError(
            f"{archive} is refused, and nothing of it was unpacked: {error}."
        ) from error
    except (
        tarfile.TarError,
        gzip.BadGzipFile,
        lzma.LZMAError,
        zlib.error,
        EOFError,
    ) as error:
        reason = str(error).partition("\n")[0].rstrip(":")
        raise ArchiveError(
            f"{archive} should be a whole tar archive, compressed or not, but is "
            f"damaged or something else ({reason}). Get it anew."
        ) from error


def _data_filter(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    # The standard filter would quietly turn "/etc/passwd" into "etc/passwd".
    if member.name.startswith("/"):
        raise tarfile.AbsolutePathError(member)
    return tarfile.data_filter(member, folder)
