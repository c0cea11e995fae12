"""Tar archives, read file by file: nothing of them is unpacked."""

import contextlib
import gzip
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

DAMAGES = (
    tarfile.TarError,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
)


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[Iterator[tuple[str, int, IO[bytes]]]]:
    """Yields the name, the size and the content of each file of a tar archive."""
    try:
        with tarfile.open(path) as archive:
            yield _files(archive)
    except DAMAGES as error:
        raise ValueError(
            f"Expected {path} to be a whole tar archive, compressed or not. Received: "
            "a damaged one, or another file. Get it again."
        ) from error


def _files(archive):
    for entry in archive:
        # Links and folders have no content of their own.
        if entry.isreg():
            name = entry.name.removeprefix("./")
            yield name, entry.size, archive.extractfile(entry)


@contextlib.contextmanager
def open_member(path: Path, member: str) -> Iterator[tuple[int, IO[bytes]]]:
    """Yields the size and the content of one file of an archive."""
    with open_archive(path) as files:
        for name, size, content in files:
            if name == member:
                yield size, content
                return
        raise ValueError(
            f"Expected the file {member} in {path}. Received: none."
        )
