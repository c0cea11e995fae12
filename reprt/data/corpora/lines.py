"""The lines of a text file, decoded when they are asked for."""

import itertools
import mmap
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from reprt.files import not_utf8, opened

LARGE = 2**26  # bytes; smaller files are read, so that nobody changes them meanwhile
_CHUNK = 2**16  # lines that are decoded at a time
_BREAK = re.compile(rb"\r\n?|\n")


class Lines(Sequence[str]):
    """Some lines of a file, in the order of the file.

    Args:
        data: its bytes, perhaps mapped into memory.
        starts, ends: where each line begins and ends in them.
    """

    def __init__(self, data, starts: np.ndarray, ends: np.ndarray):
        self._data, self._starts, self._ends = data, starts, ends

    @classmethod
    def read(cls, path: Path) -> "Lines":
        """Finds the lines of a file; what follows the last line break is one, too.

        A large file is mapped into memory, and has to stay as it is.

        Raises:
            OSError: as `reprt.files.opened` does.
            ValueError: if it is not UTF-8, naming the line.
        """
        with opened(path) as file:
            large = os.fstat(file.fileno()).st_size >= LARGE
            data = (
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                if large
                else file.read()
            )
        # Not as `splitlines`, which also breaks at signs that occur within sentences.
        breaks = (found.span() for found in _BREAK.finditer(data))
        spans = np.fromiter(itertools.chain.from_iterable(breaks), "int64")
        starts, ends = np.append(0, spans[1::2]), np.append(spans[::2], len(data))
        for first in range(0, len(starts), _CHUNK):
            start, end = starts[first], ends[first : first + _CHUNK][-1]
            try:
                data[start:end].decode()
            except UnicodeDecodeError as error:
                raise not_utf8(path, data, start + error.start) from None
        return cls(data, starts, ends)

    def chosen(self, kept: Sequence[bool]) -> "Lines":
        """Returns the lines that are kept, which are still to be decoded."""
        mask = np.asarray(kept)
        return Lines(self._data, self._starts[mask], self._ends[mask])

    def __len__(self):
        return len(self._starts)

    def __iter__(self) -> Iterator[str]:
        for start, end in zip(self._starts, self._ends):
            yield self._line(start, end)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return list(map(self._line, self._starts[index], self._ends[index]))
        return self._line(self._starts[index], self._ends[index])

    def __reduce__(self):
        # The process that gets it may have no such file.
        return Lines, (bytes(self._data), self._starts, self._ends)

    def _line(self, start, end) -> str:
        return self._data[start:end].decode()
