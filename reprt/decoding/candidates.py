"""The target pieces that may translate a sentence, so that a search scores few."""

import itertools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np

from reprt.constants import RESERVED
from reprt.files import write_text
from reprt.reading import read_json

FILE = "candidates.json"
COMMON, LIKELY = 256, 24
MOST_PAIRS = 200_000  # of a large text, evenly spread
PAIRS_AT_A_TIME = 2_000

Ids = Sequence[int] | np.ndarray


class _Table(TypedDict):
    common: list[int]
    likely: list[list[int]]


class Candidates:
    """For every source piece the target pieces that it is likely to become.

        V(x) = common ∪ likely(x_1) ∪ … ∪ likely(x_n)

    A search that is given them computes logits for V(x) alone, where x is all
    sentences of a batch. The output layer is most of a small model's work. Other pieces
    cannot be chosen, so translations may change.

    Args:
        common: target pieces that any sentence may have.
        likely: for each source piece some target pieces.

    Example:

    >>> candidates = Candidates([3], [[], [], [], [], [7, 8], [8]])
    >>> candidates(np.array([[4, 5], [5, 0]])).tolist()
    [3, 7, 8]
    """

    def __init__(self, common: Ids, likely: Sequence[Ids]):
        self.common = np.asarray(common, "int32")
        self.likely = [np.asarray(pieces, "int32") for pieces in likely]

    def __call__(self, source_ids) -> np.ndarray:
        """Returns V(x), in order.

        Args:
            source_ids: integer array `(sentences, sources)`.
        """
        own = [self.likely[piece] for piece in np.unique(source_ids)]
        return np.unique(np.concatenate([self.common, *own]))

    @classmethod
    def learn(
        cls,
        pairs: Iterable[tuple[np.ndarray, np.ndarray]],
        source_vocab_size: int,
        target_vocab_size: int,
        common: int = COMMON,
        likely: int = LIKELY,
    ) -> "Candidates":
        """Counts which pieces stand in the same pairs of sentences.

        The likely pieces of s are those t with the largest Dice coefficients,
        `2 n(s, t) / (n(s) + n(t))`. n counts the pairs that have a piece.

        Args:
            pairs: ids of source and target.
            source_vocab_size, target_vocab_size: how many pieces there are.
            common: how many of the pieces that most targets have are common. Reserved
                ids are common as well.
            likely: how many pieces each source piece has.
        """
        of_source = np.zeros(source_vocab_size, "int64")
        of_target = np.zeros(target_vocab_size, "int64")
        keys, counts = np.zeros(0, "int64"), np.zeros(0, "int64")
        block: list[np.ndarray] = []

        def counted():
            found, numbers = np.unique(np.concatenate(block), return_counts=True)
            both, inverse = np.unique(np.append(keys, found), return_inverse=True)
            total = np.bincount(inverse, np.append(counts, numbers), len(both))
            return both, total.astype("int64")

        for source, target in pairs:
            s, t = np.unique(source).astype("int64"), np.unique(target)
            of_source[s] += 1
            of_target[t] += 1
            block.append((s[:, None] * target_vocab_size + t).ravel())
            if len(block) == PAIRS_AT_A_TIME:
                (keys, counts), block = counted(), []
        if block:
            keys, counts = counted()
        s, t = keys // target_vocab_size, keys % target_vocab_size
        dice = 2 * counts / (of_source[s] + of_target[t])
        order = np.lexsort((t, -dice, s))  # ties by id, so that all machines agree
        starts = np.searchsorted(s[order], np.arange(source_vocab_size + 1))
        most = np.argsort(-of_target, kind="stable")[:common]
        return cls(
            np.union1d(most, np.arange(len(RESERVED))),
            [
                t[order[first : min(first + likely, last)]]
                for first, last in zip(starts, starts[1:])
            ],
        )

    def write(self, folder: Path) -> Path:
        """Writes `candidates.json` into a folder, and returns its path."""
        table = {
            "common": self.common.tolist(),
            "likely": [pieces.tolist() for pieces in self.likely],
        }
        write_text(folder / FILE, json.dumps(table) + "\n")
        return folder / FILE

    @classmethod
    def read(cls, path: Path, source_vocab_size: int, target_vocab_size: int):
        """Reads the file that `write` wrote, of vocabularies of these sizes.

        Raises:
            OSError: if there is no such file.
            ValueError: if it is no such file, or is of other vocabularies.
        """
        table = read_json(path, _Table)
        lists = len(table["likely"])
        ids = [0, *table["common"], *itertools.chain(*table["likely"])]
        lowest, highest = min(ids), max(ids)
        if lists != source_vocab_size or lowest < 0 or highest >= target_vocab_size:
            raise ValueError(
                f"Expected {path} to have a list for each of the {source_vocab_size} "
                f"source pieces, of ids below {target_vocab_size}. Received "
                f"{lists} lists of ids from {lowest} to {highest}."
            )
        return cls(table["common"], table["likely"])
