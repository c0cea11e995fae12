"""Rows of ids, laid end to end in memory or in a file that is memory-mapped."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from reprt.files import whole_file


class Rows(Sequence[np.ndarray]):
    """A sequence of arrays that are the pieces of one."""

    def __init__(self, ids: np.ndarray, lengths: Sequence[int] | np.ndarray):
        self.ids = ids
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
        # A plain array of the same memory, because its slices are faster.
        numbers = np.asarray(np.memmap(path, "int32", "r"))
        count = numbers[-1]
        ids, lengths = np.split(numbers[:-1], [len(numbers) - 1 - count])
        if len(ids) != lengths.sum():
            raise ValueError("its lengths are not those of its rows")
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}. Remove it.") from error
    return Rows(ids, lengths)
