"""Tar archives, read member by member: none decides where a file goes."""

import contextlib
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any


@contextlib.contextmanager
def plain_files(path: Path) -> Iterator[Iterator[tuple[tarfile.TarInfo, Any]]]:
    """Yields a tar archive's regular files, each with its content, as they come."""
    try:
        with tarfile.open(path) as tar:
            yield ((each, tar.extractfile(each)) for each in tar if each.isreg())
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        if getattr(error, "errno", None):  # the disk's, not the archive's
            raise
        reason = str(error).partition("\n")[0].rstrip(":")
        raise ValueError(
            f"{path} should be a whole tar archive, compressed or not, but is damaged "
            f"or something else ({reason}). Get it again."
        ) from error


@contextlib.contextmanager
def open_member(archive: Path, name: str) -> Iterator[tuple[IO[bytes], int]]:
    """Opens one file of an archive; yields it and its size."""
    with plain_files(archive) as files:
        for entry, file in files:
            if entry.name.removeprefix("./") == name:
                yield file, entry.size
                return
        raise ValueError(f"Expected the file {name} in {archive}. Received: none.")
