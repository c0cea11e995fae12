"""Tar archives unpacked safely, whole or not at all."""

import errno
import lzma
import os
import shutil
import tarfile
import zlib
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from reprt.files import opened, whole_folder

_CHUNK = 1 << 16
_NAMES = {errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG}
_DAMAGE = (
    tarfile.TarError,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    ValueError,
    OSError,
)


class ArchiveError(ValueError):
    """The archive is damaged, is no tar archive, or is not safe to unpack."""


def unpack(
    archive: str | os.PathLike,
    folder: str | os.PathLike,
    only: Collection[str] | None = None,
) -> Path:
    """Unpacks a tar archive, compressed or not, into a folder of its own.

    The folder appears only when all of the archive is in it. One that exists already
    is therefore whole, and is left as it is.

    Args:
        archive: the archive.
        folder: the folder to create; missing parents are created, too.
        only: names of the members to unpack; None for all. The others are skipped,
            whatever they are.

    Returns:
        `folder`.

    Raises:
        ArchiveError: if the archive is damaged, is no tar archive, has a member that
            is no plain file or folder or would be written outside `folder`, or lacks
            one of `only`. Nothing is left behind then.
    """
    folder = Path(folder)
    if folder.is_dir():
        return folder
    try:
        with opened(archive) as file, whole_folder(folder) as unfinished:
            _extract(file, unfinished, only)
    except OSError:
        # Another process may have been faster; its folder is as good.
        if not folder.is_dir():
            raise
    return folder


def _extract(file: BinaryIO, folder: Path, only: Collection[str] | None):
    try:
        with tarfile.open(fileobj=file) as tar:
            for member in _checked(tar, only):
                _write(tar, member, folder / member.name)
    except ArchiveError as error:
        raise ArchiveError(
            f"{file.name} is refused, and nothing of it was unpacked: {error}."
        ) from error
    except _DAMAGE as error:
        if getattr(error, "errno", None):  # the disk's, not the archive's
            raise
        reason = str(error).partition("\n")[0].rstrip(":")
        raise ArchiveError(
            f"{file.name} should be a whole tar archive, compressed or not, but is "
            f"damaged or something else ({reason}). Get it again."
        ) from error


def _checked(
    tar: tarfile.TarFile, only: Collection[str] | None
) -> list[tarfile.TarInfo]:
    """Returns the members to be written, all of which may be.

    tarfile's own filter follows links, and is led outside by chains of them.
    """
    members: list[tarfile.TarInfo] = []
    for member in tar:
        path = PurePosixPath(member.name)
        if only is not None and str(path) not in only:
            continue
        if not (member.isdir() or member.isreg()) or member.issparse():
            raise ArchiveError(f"{member.name!r} is no plain file or folder")
        if path.is_absolute() or ".." in path.parts:
            raise ArchiveError(f"{member.name!r} would be written outside its folder")
        members.append(member)
        if member.size < 0:
            raise tarfile.ReadError(f"{member.name!r} has {member.size} bytes")
    # tarfile takes a damaged header for the end, and stops there. The checksum of the
    # compressed stream stands behind the end, and is verified by reading on.
    end: BinaryIO = tar.fileobj  # type: ignore[assignment]
    end.seek(tar.offset)
    if end.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
        raise tarfile.ReadError("it has no end")
    while end.read(_CHUNK):
        pass
    there = {str(PurePosixPath(member.name)) for member in members}
    if missing := sorted(set(only or ()) - there):
        raise ArchiveError(f"it has no {' and no '.join(missing)}")
    return members


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path):
    try:
        if member.isdir():
            path.mkdir(parents=True, exist_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as file:
            shutil.copyfileobj(tar.extractfile(member), file)  # type: ignore
    except OSError as error:
        if error.errno not in _NAMES:
            raise
        raise ArchiveError(
            f"{member.name!r} cannot be written ({error.strerror})"
        ) from error
