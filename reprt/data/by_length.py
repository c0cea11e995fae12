"""Sentences of like length together, where their order does not matter."""

from collections.abc import Iterator, Sequence

import numpy as np

from reprt.layers.masks import PAD_ID


def by_length(
    lengths: Sequence[int], batch_size: int, equal: bool = False
) -> Iterator[np.ndarray]:
    """Yields the indices of batches, the shortest sentences first.

    Args:
        lengths: the sentences' lengths.
        batch_size: the most sentences of a batch.
        equal: whether the sentences of a batch have the very same length.
    """
    order = np.argsort(lengths, kind="stable")
    groups = [order]
    if equal:
        steps = np.diff(np.asarray(lengths)[order])
        groups = np.split(order, np.flatnonzero(steps) + 1)
    for group in groups:
        for start in range(0, len(group), batch_size):
            yield group[start : start + batch_size]


def padded(
    rows: Sequence[Sequence[int] | np.ndarray], shape: tuple[int, int] | None = None
) -> np.ndarray:
    """Returns rows of ids as one array, with 0 after the shorter ones.

    Args:
        rows: the rows.
        shape: of the array; None for as many rows and columns as there have to be.
    """
    if shape is None:
        shape = len(rows), max(map(len, rows), default=0)
    ids = np.full(shape, PAD_ID, dtype="int32")
    for into, row in zip(ids, rows):
        into[: len(row)] = row
    return ids
