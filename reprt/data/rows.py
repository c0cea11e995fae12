"""Rows of ids, laid end to end in memory, or in files that are memory-mapped."""

import bisect
import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from reprt.files import whole_file

SHARD = 2**18  # rows of a file
_SHA256_SIZE = hashlib.sha256().digest_size
_BLOCK = 2**20  # bytes that are read at a time


class Rows(Sequence[np.ndarray]):
    """A sequence of arrays that are the pieces of one, or of a few.

    Args:
        ids: the ids of all rows, or a list of arrays that each hold those of some rows.
        lengths: the number of ids of each row.
        hashes: the sha256 of each file that they were read from, if they were.

    Example:

    >>> Rows(np.array([5, 6, 7]), [1, 2])[1]
    array([6, 7])
    """

    def __init__(
        self,
        ids: np.ndarray | list[np.ndarray],
        lengths: Sequence[int] | np.ndarray,
        hashes: Sequence[bytes] = (),
    ):
        self._parts = ids if isinstance(ids, list) else [ids]
        self._firsts = [0, *itertools.accumulate(map(len, self._parts[:-1]))]
        self._hashes = hashes
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
            [sha256 for rows in several for sha256 in rows._hashes],
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
        hashes = self._hashes or [
            _sha256_of_file(Rows.of(self[part])) for part in shards(len(self))
        ]
        return hashlib.sha256(b"".join(hashes)).hexdigest()

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
    """Yields which of so many rows are in each file."""
    for start in range(0, count, SHARD):
        yield slice(start, start + SHARD)


def write_rows(chunks: Iterable[Rows], path: Path):
    """Writes rows as they come; a kill leaves the whole file or none.

    The file holds the ids of all rows, their lengths, their number, each an int32, and
    the sha256 of these.
    """
    sha = hashlib.sha256()
    with whole_file(path) as file:
        for block in _blocks(chunks):
            sha.update(block)
            file.write(block)
        file.write(sha.digest())


def read_rows(path: Path) -> Rows:
    """Maps what `write_rows` wrote into memory; ids are read when they are asked for.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is damaged.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size - _SHA256_SIZE
        sha, left = hashlib.sha256(), size
        while left > 0 and (block := file.read(min(left, _BLOCK))):
            sha.update(block)
            left -= len(block)
        if size < 0 or sha.digest() != file.read():
            raise ValueError(f"{path} does not have the sha256 that it ends with.")
        # A plain array of the same memory, because its slices are faster.
        numbers = np.asarray(np.memmap(file, "int32", "r", shape=(size // 4,)))
    ids, lengths = np.split(numbers[:-1], [-numbers[-1]])
    return Rows(ids, lengths, [sha.digest()])


def _blocks(chunks: Iterable[Rows]) -> Iterator[bytes]:
    lengths: list[int] = []
    for rows in chunks:
        yield np.asarray(rows.ids, "int32").tobytes()
        lengths += rows.lengths.tolist()
    for numbers in (lengths, [len(lengths)]):
        yield np.asarray(numbers, "int32").tobytes()


def _sha256_of_file(rows: Rows) -> bytes:
    """What a file of these rows would end with."""
    sha = hashlib.sha256()
    for block in _blocks([rows]):
        sha.update(block)
    return sha.digest()
