"""The ids that every peer is given: pairs of sentences, from a file or generated."""

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

START, END, FIRST_PIECE = 2, 3, 4


class Batch(NamedTuple):
    """A padded batch for teacher forcing, int32 with 0 for padding."""

    source: np.ndarray
    inputs: np.ndarray
    labels: np.ndarray


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Aligned sentences as ids, `[START]` to `[END]`."""

    source: Sequence[np.ndarray]
    target: Sequence[np.ndarray]

    def __len__(self):
        return len(self.source)

    def take(self, indices) -> "Pairs":
        """Returns the pairs of these numbers, in this order."""
        return Pairs(
            [self.source[i] for i in indices], [self.target[i] for i in indices]
        )

    def first(self, count: int) -> "Pairs":
        """Returns so many pairs from the start, or all if there are fewer."""
        return self.take(range(min(count, len(self))))

    def batch(self) -> Batch:
        """Returns all pairs as one batch, padded to the longest."""
        # Each target loses its own last token, not the batch's last column: padding
        # must not turn [END] into an input.
        return Batch(
            _padded(self.source),
            _padded([row[:-1] for row in self.target]),
            _padded([row[1:] for row in self.target]),
        )

    def target_tokens(self) -> int:
        """Returns the number of real tokens that are predicted."""
        return sum(len(row) - 1 for row in self.target)


def _padded(rows):
    batch = np.zeros((len(rows), max(map(len, rows))), "int32")
    for padded, row in zip(batch, rows):
        padded[: len(row)] = row
    return batch


@dataclasses.dataclass(frozen=True)
class Text:
    """Pairs of sentences, and the two vocabularies' sizes."""

    name: str
    vocab_sizes: tuple[int, int]
    pairs: Pairs

    def shuffled(self, *seed: int) -> Pairs:
        """Returns the training pairs in an order that is a function of the seed."""
        return self.pairs.take(np.random.default_rng(seed).permutation(len(self.pairs)))

    def save(self, path: Path):
        """Writes the file that `load` reads."""
        sides = {}
        for side in ("source", "target"):
            rows = getattr(self.pairs, side)
            sides[side] = np.concatenate(rows)
            sides[f"{side}_lengths"] = np.array([len(row) for row in rows])
        np.savez_compressed(
            path,
            name=self.name,
            vocab_sizes=self.vocab_sizes,
            **sides,
        )

    def describe(self) -> dict:
        """Returns what a reader needs to know of the text."""
        ids = (*self.pairs.source, *self.pairs.target)
        digest = hashlib.sha256(np.concatenate(ids).astype("int32").tobytes())
        return {
            "name": self.name,
            "pairs": len(self.pairs),
            "vocab_sizes": list(self.vocab_sizes),
            "mean_tokens": [
                round(float(np.mean([len(row) for row in side])), 1)
                for side in (self.pairs.source, self.pairs.target)
            ],
            "sha256": digest.hexdigest(),
        }


def load(path: Path) -> Text:
    """Reads what `save` has written."""
    with np.load(path) as file:
        sides = [
            np.split(file[side], np.cumsum(file[f"{side}_lengths"])[:-1])
            for side in ("source", "target")
        ]
        sizes = tuple(int(size) for size in file["vocab_sizes"])
        name = str(file["name"])
    return Text(name, sizes, Pairs(*sides))


def generate(
    pairs: int,
    seed: int,
    vocab_sizes=(7765, 7010),
    mean_tokens: float = 26,
) -> Text:
    """Returns random ids whose lengths are distributed as TED's.

    Lengths are log-normal, 26 tokens on average and 4 to 128, so that a shuffled batch
    of 64 is padded to some 95; the lengths of a pair go together. Ids are drawn as
    Zipf has it, since a batch that repeats frequent words touches fewer rows of the
    embedding.
    """
    random, spread, together = np.random.default_rng(seed), 0.62, 0.9
    normal = random.standard_normal((2, pairs))
    normal[1] = together * normal[0] + (1 - together**2) ** 0.5 * normal[1]
    lengths = mean_tokens * np.exp(spread * normal - spread**2 / 2)
    lengths = np.clip(np.rint(lengths), 4, 128).astype(int)

    def row(length, vocab_size):
        rank = (vocab_size - FIRST_PIECE) ** random.random(length - 2)
        pieces = FIRST_PIECE - 1 + rank.astype("int32")
        return np.concatenate([[START], pieces, [END]]).astype("int32")

    source, target = (
        [row(length, size) for length in side]
        for side, size in zip(lengths, vocab_sizes)
    )
    name = f"generated ids, seed {seed}"
    return Text(name, tuple(vocab_sizes), Pairs(source, target))
