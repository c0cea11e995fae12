"""Downloads that resume, and are checked before they count."""

import functools
import http.client
import os
import urllib.error
import urllib.request
from pathlib import Path

from reprt.files import held, no_link
from reprt.progress import byte_line

TIMEOUT = 20
"""Seconds to wait for a connection, and then for each piece of the body."""

_CHUNK = 1 << 16


class DownloadError(OSError):
    """The address cannot be reached, or what it delivered is not what was expected."""


def download(
    url: str, path: str | os.PathLike, size: int | None, known_hash: str
) -> Path:
    """Downloads a file whose hash is known, resuming where it stopped.

    Bytes gather in `<path>.part`. Only when all are there and their hash is right
    does the file get its name, so that a file at `path` can be trusted. If the right
    file is there already, nothing is downloaded.

    Args:
        url: the address, http or https.
        path: where the file goes; missing folders are created.
        size: the expected number of bytes; None for what the server says.
        known_hash: the expected sha256 in hexadecimal digits, or an MD5 as `md5:...`.

    Returns:
        `path`.

    Raises:
        DownloadError: if the address cannot be reached, the connection drops (the
            next call resumes), or anything but the expected file is delivered (what
            came is deleted).
    """
    import pooch  # only a download needs it

    pooch.get_logger().setLevel("WARNING")
    path = Path(path)
    # One process at a time downloads; the others then find the file there.
    with held(Path(f"{path}.lock")):
        part = Path(f"{path}.part")
        receive = functools.partial(_receive, part, size)
        try:
            pooch.retrieve(url, known_hash, path.name, path.parent, downloader=receive)
        except ValueError as error:
            part.unlink(missing_ok=True)
            raise DownloadError(
                f"{url} did not deliver the expected file. {error}"
            ) from None
        if part.exists() and path.samefile(part):
            part.replace(path)
    return path


def _receive(part: Path, size: int | None, url: str, file: str, _):
    """Completes `part` and links it to `file`, whose hash pooch compares.

    A kill in between leaves the link, and the part whole.
    """
    there = part.stat().st_size if part.exists() else 0
    if there != size:
        with _request(url, 0 if size and there > size else there) as response:
            _append(url, response, part, _promised(url, response, size))
    os.unlink(file)
    os.symlink(part.name, file)


def _request(url: str, start: int) -> http.client.HTTPResponse:
    """Asks for the bytes from `start` on; the server may answer with all of them."""
    headers = {"User-Agent": "reprt"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        request = urllib.request.Request(url, headers=headers)
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


def _promised(url: str, response: http.client.HTTPResponse, size: int | None) -> int:
    """Refuses a file of another size before it overwrites what is already there."""
    total = response.headers.get("Content-Range", "").rpartition("/")[2]
    promised = total or response.headers.get("Content-Length", "")
    if size is None:
        if not promised.isdigit():
            raise DownloadError(f"{url} does not say how many bytes it delivers.")
        return int(promised)
    if promised.isdigit() and int(promised) != size:
        raise DownloadError(
            f"{url} does not deliver the expected file. Expected {size} bytes. "
            f"Received: {promised} bytes of {response.headers.get_content_type()}."
        )
    return size


def _append(url: str, response: http.client.HTTPResponse, part: Path, size: int):
    """Appends to `part`, or writes it anew if the server did not resume."""
    resumes = response.status == http.client.PARTIAL_CONTENT
    with (
        open(part, "ab+" if resumes else "wb+", opener=no_link) as file,
        byte_line(part.stem, size, file.tell()) as line,
    ):
        failure: str | None = None
        while True:
            try:
                # One byte too many is enough to know that this is another file.
                chunk = response.read(min(_CHUNK, size + 1 - file.tell()))
            except (OSError, http.client.HTTPException) as error:
                failure = str(error)
                break
            if not chunk:
                # What the server still owes of the length that it had promised.
                if response.length:
                    failure = "connection closed"
                break
            line.update(file.write(chunk))
        received = file.tell()
        file.seek(0)
        beginning = file.read(40)
    if received < size and failure is not None:
        raise DownloadError(
            f"{url}: the connection dropped after {received} of {size} bytes "
            f"({failure}). They are kept: run this again to resume."
        )
    if received != size:
        part.unlink()
        raise DownloadError(
            f"{url} did not deliver the expected file, and what came was deleted. "
            f"Expected {size} bytes. Received: "
            f"{received if received < size else f'more than {size}'}, "
            f"beginning with {beginning!r}."
        )
