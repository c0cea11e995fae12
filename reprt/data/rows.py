"""Rows of ids, laid end to end in memory or in a file that is memory-mapped."""

import mmap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from reprt.files import whole_file

# This many rows are looked at together.
PART = 100_000
# Odd numbers that spread the bits of a product.
MIXERS = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9], "uint64")


class Rows(Sequence[np.ndarray]):
    """A sequence of arrays that are the pieces of one."""

    def __init__(
        self,
        ids: np.ndarray,
        lengths: Sequence[int] | np.ndarray,
        memory: mmap.mmap | None = None,
    ):
        self.ids = ids
        self._memory = memory
        self.splits = np.zeros(len(lengths) + 1, "int64")
        np.cumsum(lengths, out=self.splits[1:])

    @classmethod
    def of(cls, rows: Sequence[np.ndarray]) -> "Rows":
        """Lays any sequence of arrays end to end; `Rows` stay as they are."""
        if isinstance(rows, cls):
            return rows
        return cls(np.concatenate(rows), list(map(len, rows)))

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.splits)

    def parts(self) -> Iterator["Rows"]:
        """Yields all rows, a number at a time, and keeps none of them in memory."""
        lengths = self.lengths
        for start in range(0, len(self), PART):
            part_lengths = lengths[start : start + PART]
            first, last = self.splits[[start, start + len(part_lengths)]]
            yield Rows(self.ids[first:last], part_lengths)
            if self._memory is not None:
                self._memory.madvise(mmap.MADV_DONTNEED)

    def hashes(self) -> np.ndarray:
        """Returns a number of 64 bits for each row, which equal rows have alike."""
        places = np.arange(len(self.ids)) - np.repeat(
            self.splits[:-1], self.lengths
        )
        hashes = self.ids.astype("uint64") * MIXERS[0]
        hashes += places.astype("uint64") * MIXERS[1]
        for mixer in MIXERS:
            hashes ^= hashes >> np.uint64(29)
            hashes *= mixer
        # Sums from the beginning, modulo 2^64; their differences are those of rows.
        sums = np.zeros(len(self.ids) + 1, "uint64")
        np.cumsum(hashes, out=sums[1:])
        return sums[self.splits[1:]] - sums[self.splits[:-1]]

    def only(self, indices: np.ndarray) -> "Rows":
        """Returns the rows of these indices."""
        lengths = self.lengths[indices]
        rows = Rows(np.empty(lengths.sum(), "int32"), lengths)
        for new, old in enumerate(indices.tolist()):
            rows[new][:] = self[old]
        return rows

    def __len__(self):
        return len(self.splits) - 1

    def __getitem__(self, index):
        # A range counts from the end, and fails, as a list does.
        index = range(len(self))[index]
        if isinstance(index, range):
            return [self[row] for row in index]
        start, end = self.splits[index : index + 2].tolist()
        return self.ids[start:end]


def write_rows(parts: Iterable[Rows], path: Path):
    """Writes all ids, the length of each row, and the number of rows as int32."""
    lengths = [np.array([], "int32")]
    with whole_file(path) as file:
        for rows in parts:
            file.write(rows.ids.astype("int32").tobytes())
            lengths.append(rows.lengths)
        tail = np.concatenate(lengths)
        file.write(np.append(tail, len(tail)).astype("int32").tobytes())


def read_rows(path: Path) -> Rows:
    """Maps what `write_rows` wrote into memory; a `ValueError` if it is damaged."""
    try:
        with open(path, "rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        numbers = np.frombuffer(memory, "int32")
        count = numbers[-1]
        ids, lengths = np.split(numbers[:-1], [len(numbers) - 1 - count])
        if len(ids) != lengths.sum():
            raise ValueError("its lengths are not those of its rows")
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}. Remove it.") from error
    return Rows(ids, lengths, memory)
