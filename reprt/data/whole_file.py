"""Files that are there as a whole or not at all."""

import contextlib
import os
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
    # The process in its name, for two of them may write the same file at once.
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
