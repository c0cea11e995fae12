"""Tar archives unpacked safely, whole or not at all."""

import gzip
import lzma
import os
import tarfile
import tempfile
import zlib
from pathlib import Path

_CHUNK = 1 << 16


class ArchiveError(ValueError):
    """The archive is damaged, is no tar archive, or would write outside its folder."""


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
