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
        return cls(np.concatenate(rows), [len(row) for row in rows])

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.splits)

    def __len__(self):
        return len(self.splits) - 1

    def __getitem__(self, index):
        chosen = range(len(self))[index]  # counts and fails as a list does
        if isinstance(chosen, range):
            return [self[row] for row in chosen]
        start, end = self.splits[chosen : chosen + 2].tolist()
        return self.ids[start:end]


def write_rows(several: Iterable[Rows], path: Path):
    """Writes all ids, the length of each row, and the number of rows as int32."""
    lengths = [np.array([], "int32")]
    with whole_file(path) as file:
        for rows in several:
            file.write(rows.ids.astype("int32").tobytes())
            lengths.append(rows.lengths)
        ends = np.concatenate(lengths)
        file.write(np.append(ends, len(ends)).astype("int32").tobytes())


def read_rows(path: Path) -> Rows:
    """Maps what `write_rows` wrote into memory; a `ValueError` if it is damaged."""
    try:
        # A plain array of the same memory, because its slices are faster.
        numbers = np.asarray(np.memmap(path, "int32", "r"))
        ids, lengths = np.split(numbers[:-1], [len(numbers) - 1 - numbers[-1]])
        if len(ids) != lengths.sum():
            raise ValueError("its lengths are not those of its rows")
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}. Remove it.") from error
    return Rows(ids, lengths)
