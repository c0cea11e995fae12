"""Tar archives, read member by member: none decides where a file goes."""

import contextlib
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

_CHUNK = 1 << 20


@contextlib.contextmanager
def tar_archive(path: Path) -> Iterator[tarfile.TarFile]:
    """Opens a tar archive, compressed or not.

    Raises:
        ValueError: if it is damaged or something else, naming it.
    """
    try:
        with tarfile.open(path) as tar:
            yield tar
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        if getattr(error, "errno", None):  # the disk's, not the archive's
            raise
        reason = str(error).partition("\n")[0].rstrip(":")
        raise ValueError(
            f"{path} should be a whole tar archive, compressed or not, but is damaged "
            f"or something else ({reason}). Get it again."
        ) from error


def plain_files(tar: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, IO[bytes]]]:
    """Yields each file with its content, to be read before the next.

    Links, devices and the like are passed over.
    """
    for entry in tar:
        if entry.isreg():
            yield entry, tar.extractfile(entry)  # type: ignore[misc]
    # The checksum of a compressed archive stands behind its last file.
    while tar.fileobj.read(_CHUNK):  # type: ignore[union-attr]
        pass


@contextlib.contextmanager
def open_member(archive: Path, name: str) -> Iterator[tuple[IO[bytes], int]]:
    """Opens one file of an archive; yields it and its size.

    Raises:
        ValueError: if there is none of that name, or as `tar_archive` does.
    """
    with tar_archive(archive) as tar:
        for entry, file in plain_files(tar):
            if PurePosixPath(entry.name) == PurePosixPath(name):
                yield file, entry.size
                return
        raise ValueError(f"Expected the file {name} in {archive}. Received: none.")
