"""Rows of ids, laid end to end in memory and in a file."""

import functools
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from reprt.files import whole_file

_SHA256_SIZE = hashlib.sha256().digest_size


class Rows(Sequence[np.ndarray]):
    """A sequence of arrays that are the pieces of one.

    Args:
        ids: the ids of all rows.
        lengths: the number of ids of each row.

    Example:

    >>> Rows(np.array([5, 6, 7]), [1, 2])[1]
    array([6, 7])
    """

    def __init__(self, ids: np.ndarray, lengths: Sequence[int] | np.ndarray):
        self.ids = ids
        self.splits = np.zeros(len(lengths) + 1, "int64")
        np.cumsum(lengths, out=self.splits[1:])

    @classmethod
    def of(cls, rows: Sequence[np.ndarray]) -> "Rows":
        """Lays any sequence of arrays end to end; rows that are so stay as they are."""
        if isinstance(rows, cls):
            return rows
        return cls(np.concatenate(rows), [len(row) for row in rows])

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.splits)

    @functools.cached_property
    def ragged(self):
        """The rows as a `tf.RaggedTensor`; a copy, which all epochs and models share.

        One of its own for each would stay in memory until Python looks for cycles.
        """
        import tensorflow as tf

        return tf.RaggedTensor.from_row_splits(self.ids, self.splits)

    def __reduce__(self):
        return Rows, (self.ids, self.lengths)  # TensorFlow's copy stays behind

    def __len__(self):
        return len(self.splits) - 1

    def __getitem__(self, index):
        chosen = range(len(self))[index]  # counts and fails as a list does
        if isinstance(chosen, range):
            return [self[row] for row in chosen]
        return self.ids[self.splits[chosen] : self.splits[chosen + 1]]


def write_rows(chunks: Iterable[Rows], path: Path):
    """Writes rows as they come; a kill leaves the whole file or none.

    The file is the ids of all rows, their lengths, their number, each an int32, and
    the sha256 of these.
    """
    sha, lengths = hashlib.sha256(), []
    with whole_file(path) as file:

        def write(numbers):
            data = np.asarray(numbers, "int32").tobytes()
            sha.update(data)
            file.write(data)

        for rows in chunks:
            write(rows.ids)
            lengths += rows.lengths.tolist()
        write(lengths)
        write([len(lengths)])
        file.write(sha.digest())


def read_rows(path: Path) -> Rows:
    """Reads what `write_rows` wrote.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is damaged.
    """
    data = memoryview(path.read_bytes())  # its slices are no copies
    if hashlib.sha256(data[:-_SHA256_SIZE]).digest() != data[-_SHA256_SIZE:]:
        raise ValueError(f"{path} does not have the sha256 that it ends with.")
    numbers = np.frombuffer(data[:-_SHA256_SIZE], "int32")
    ids, lengths = np.split(numbers[:-1], [-numbers[-1]])
    return Rows(ids, lengths)
