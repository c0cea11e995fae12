"""Tar archives, read member by member: none decides where a file goes."""

import contextlib
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

# A file of this many bytes is in order in any archive.
SMALL = 2**26
# A header that claims more than there is memory is a `MemoryError`.
DAMAGES = tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, MemoryError
# A larger one may have this many times the bytes of its archive. Texts are compressed
# to a fifth.
MOST_TIMES = 100


@contextlib.contextmanager
def plain_files(path: Path) -> Iterator[Iterator[tuple[tarfile.TarInfo, Any]]]:
    """Yields a tar archive's regular files, each with its content, as they come."""
    try:
        with tarfile.open(path) as tar:
            yield (
                (entry, tar.extractfile(entry))
                for entry in tar
                if entry.isreg()
            )
    except (*DAMAGES, OSError) as error:
        # An error of the disk is none of the archive's.
        if getattr(error, "errno", None):
            raise
        reason = (
            str(error).partition("\n")[0].rstrip(":") or type(error).__name__
        )
        raise ValueError(
            f"{path} should be a whole tar archive, compressed or not, but is damaged "
            f"or something else ({reason}). Get it again."
        ) from error


def read_member(
    archive: Path,
    entry: tarfile.TarInfo,
    file: IO[bytes],
) -> bytes:
    """Returns the content of an archive's file, unless it claims to be too large."""
    max_size = max(SMALL, MOST_TIMES * archive.stat().st_size)
    if entry.size > max_size:
        raise ValueError(
            f"Expected files of {archive} to have at most {max_size:,} bytes, as its "
            f"size allows. Received: {entry.name}, of {entry.size:,}."
        )
    return file.read()


@contextlib.contextmanager
def open_member(archive: Path, name: str) -> Iterator[tuple[IO[bytes], int]]:
    """Opens one file of an archive; yields it and its size."""
    with plain_files(archive) as files:
        for entry, file in files:
            if entry.name.removeprefix("./") == name:
                yield file, entry.size
                return
        raise ValueError(
            f"Expected the file {name} in {archive}. Received: none."
        )
