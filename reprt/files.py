"""Files, there as a whole or not at all; their hash; the folder of those kept."""

import contextlib
import hashlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a file for writing, which gets its name when all of it is written.

    A kill leaves the whole file or none, and what was there before until then.

    Example:

    >>> with whole_file(Path("answer")) as file:  # doctest: +SKIP
    ...     file.write(b"42")
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own, for two processes or machines may write the same file at once.
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def sha256_of(path: str | os.PathLike) -> str:
    """Returns the sha256 of a file in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache() -> Path:
    """Returns the folder for what is downloaded, unpacked, learnt or tokenised."""
    return Path(os.environ.get("REPRT_CACHE") or "~/.cache/reprt").expanduser()
