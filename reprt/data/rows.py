"""Rows of ids, laid end to end in memory, or in files that are memory-mapped."""

import bisect
import hashlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from reprt.files import whole_file

SHARD = 2**18  # rows of a file


class Rows(Sequence[np.ndarray]):
    """A sequence of arrays that are the pieces of one, or of a few.

    Args:
        ids: the ids of all rows, or a list of arrays that each hold those of some rows.
        lengths: the number of ids of each row.

    Example:

    >>> Rows(np.array([5, 6, 7]), [1, 2])[1]
    array([6, 7])
    """

    def __init__(
        self,
        ids: np.ndarray | list[np.ndarray],
        lengths: Sequence[int] | np.ndarray,
    ):
        self._parts = ids if isinstance(ids, list) else [ids]
        self._firsts = [0, *itertools.accumulate(map(len, self._parts[:-1]))]
        self.splits = np.zeros(len(lengths) + 1, "int64")
        np.cumsum(lengths, out=self.splits[1:])

    @classmethod
    def of(cls, rows: Sequence[np.ndarray]) -> "Rows":
        """Lays any sequence of arrays end to end; `Rows` stay as they are."""
        if isinstance(rows, cls):
            return rows
        return cls(np.concatenate(rows), [len(row) for row in rows])

    @classmethod
    def joined(cls, several: Sequence["Rows"]) -> "Rows":
        """Returns the rows of several files, without a copy of their ids."""
        return cls(
            [part for rows in several for part in rows._parts],
            np.concatenate([rows.lengths for rows in several]),
        )

    @property
    def ids(self) -> np.ndarray:
        """The ids of all rows; a copy, if they are in several arrays."""
        return self._parts[0] if len(self._parts) == 1 else np.concatenate(self._parts)

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.splits)

    def occurrences(self, token: int) -> int:
        """Returns how many of the ids are this one."""
        return sum(int(np.count_nonzero(part == token)) for part in self._parts)

    def digest(self) -> str:
        """Returns the sha256 of the shards' sha256s, in files or in memory."""
        sha = hashlib.sha256()
        for part in shards(len(self)):
            numbers = _numbers(Rows.of(self[part]))
            sha.update(hashlib.sha256(numbers.tobytes()).digest())
        return sha.hexdigest()

    def __len__(self):
        return len(self.splits) - 1

    def __getitem__(self, index):
        chosen = range(len(self))[index]  # counts and fails as a list does
        if isinstance(chosen, range):
            return [self[row] for row in chosen]
        start, end = self.splits[chosen : chosen + 2].tolist()
        part = bisect.bisect(self._firsts, start) - 1
        first = self._firsts[part]
        return self._parts[part][start - first : end - first]


def shards(count: int) -> Iterator[slice]:
    """Yields which of `count` rows are in each file."""
    for start in range(0, count, SHARD):
        yield slice(start, start + SHARD)


def write_rows(rows: Rows, path: Path):
    """Writes the ids of all rows, their lengths, and their number as one array.

    A kill leaves the whole file or none.
    """
    with whole_file(path) as file:
        np.save(file, _numbers(rows))


def read_rows(path: Path) -> Rows:
    """Maps what `write_rows` wrote into memory; ids are read when they are asked for.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is damaged.
    """
    try:
        # A plain array of the same memory, because its slices are faster.
        numbers = np.asarray(np.load(path, mmap_mode="r"))
        ids, lengths = np.split(numbers[:-1], [-numbers[-1]])
    except (EOFError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}.") from error
    return Rows(ids, lengths)


def _numbers(rows: Rows) -> np.ndarray:
    return np.concatenate([rows.ids, rows.lengths, [len(rows)]]).astype("int32")
