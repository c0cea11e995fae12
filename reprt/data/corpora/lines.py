"""The lines of texts: where they end, and the text of each."""

import gzip
import io
import itertools
import mmap
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from reprt.files import not_utf8

LARGE = 2**26  # bytes; smaller files are read, so that nobody changes them meanwhile


def decoded(file: Iterable[bytes], name: object) -> Iterator[str]:
    """Yields the lines of a text without their breaks, as they come.

    LF ends a line, with or without a CR before it. What follows the last break is a
    line unless it is empty.
    A text that is not UTF-8 is a `ValueError` that names it and the line.

    Example:

    >>> list(decoded(io.BytesIO(b"one\\rtwo\\r\\nthree"), "text"))
    ['one\\rtwo', 'three']
    """
    for line, _ in _split(file, name):
        yield line.decode()


def _split(file: Iterable[bytes], name: object) -> Iterator[tuple[bytes, int]]:
    """Yields each line without its break, and its size with it."""
    for number, line in enumerate(file, 1):
        bare = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            bare.decode()
        except UnicodeDecodeError as error:
            raise not_utf8(name, bare[error.start], number) from None
        yield bare, len(line)


class Lines(Sequence[str]):
    """Some lines of a file: its bytes, perhaps mapped, where each starts and ends."""

    def __init__(self, data, starts: np.ndarray, ends: np.ndarray):
        self._data, self._starts, self._ends = data, starts, ends

    @classmethod
    def read(cls, path: Path) -> "Lines":
        """Finds the lines of a file, which end as those of `decoded`.

        A file whose name ends with `.gz` is decompressed in memory. Another large
        file is mapped into memory, and has to stay as it is.

        Raises:
            ValueError: as `decoded` does, or if it cannot be decompressed.
        """
        return cls.of(_content(path), path)

    @classmethod
    def of(cls, data: bytes | mmap.mmap, name: object) -> "Lines":
        """Finds the lines of what a file holds, as `read` does."""
        stream = io.BytesIO(data) if isinstance(data, bytes) else data
        pieces = iter(stream.readline, b"")
        sizes = itertools.chain.from_iterable(
            (len(line), size) for line, size in _split(pieces, name)
        )
        bare, whole = np.fromiter(sizes, "int64").reshape(-1, 2).T
        starts = np.cumsum(whole) - whole
        return cls(data, starts, starts + bare)

    def chosen(self, kept: Sequence[bool]) -> "Lines":
        """Returns the lines that are kept, which are still to be decoded."""
        mask = np.asarray(kept)
        return Lines(self._data, self._starts[mask], self._ends[mask])

    def __len__(self):
        return len(self._starts)

    def __iter__(self) -> Iterator[str]:
        return map(self._line, self._starts, self._ends)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return list(map(self._line, self._starts[index], self._ends[index]))
        return self._line(self._starts[index], self._ends[index])

    def __reduce__(self):
        # The process that gets it may have no such file.
        return Lines, (bytes(self._data), self._starts, self._ends)

    def _line(self, start, end) -> str:
        return self._data[start:end].decode()


def _content(path: Path) -> bytes | mmap.mmap:
    with open(path, "rb") as file:  # perhaps a pipe
        if path.suffix != ".gz":
            if os.fstat(file.fileno()).st_size < LARGE:
                return file.read()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            return gzip.decompress(file.read())
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(
                f"Expected {path} to be a whole gzip file. Received: {error}."
            ) from error
