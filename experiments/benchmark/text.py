"""The ids that every peer is given: pairs of sentences, from a file or generated."""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

PAD, UNKNOWN, START, END, FIRST_PIECE = range(5)


@dataclasses.dataclass(frozen=True)
class Text:
    """Aligned sentences as ids, `[START]` to `[END]`, and the vocabularies' sizes."""

    name: str
    vocab_sizes: tuple[int, int]
    source: Sequence[np.ndarray]
    target: Sequence[np.ndarray]

    def __len__(self):
        return len(self.source)

    def take(self, indices) -> "Text":
        """Returns the pairs of these numbers, in this order."""
        source = [self.source[index] for index in indices]
        target = [self.target[index] for index in indices]
        return dataclasses.replace(self, source=source, target=target)

    def first(self, count: int) -> "Text":
        """Returns `count` pairs from the start, or all if there are fewer."""
        return self.take(range(min(count, len(self))))

    def shuffled(self, *seed: int) -> "Text":
        """Returns all pairs in an order that is a function of the seed."""
        return self.take(np.random.default_rng(seed).permutation(len(self)))

    def batch(self) -> list[np.ndarray]:
        """Returns source, inputs and labels, int32 and padded with 0."""
        # Each target loses its own last token, not the batch's last column: padding
        # must not turn [END] into an input.
        inputs = [row[:-1] for row in self.target]
        labels = [row[1:] for row in self.target]
        return [_pad(self.source), _pad(inputs), _pad(labels)]

    def target_tokens(self) -> int:
        """Returns the number of real tokens that are predicted."""
        return sum(len(row) - 1 for row in self.target)

    def save(self, path: Path):
        """Writes the file that `load` reads."""
        source = [row.tolist() for row in self.source]
        target = [row.tolist() for row in self.target]
        text = json.dumps([self.name, self.vocab_sizes, source, target])
        path.write_text(text)

    def describe(self) -> dict:
        """Returns what a reader needs to know of the text."""
        means = []
        for side in (self.source, self.target):
            mean = np.mean([len(row) for row in side])
            means.append(round(float(mean), 1))
        ids = np.concatenate([*self.source, *self.target]).astype("int32")
        return {
            "name": self.name,
            "pairs": len(self),
            "vocab_sizes": list(self.vocab_sizes),
            "mean_tokens": means,
            "sha256": hashlib.sha256(ids.tobytes()).hexdigest(),
        }


def _pad(rows):
    length = max(len(row) for row in rows)
    batch = np.zeros((len(rows), length), "int32")
    for number, row in enumerate(rows):
        batch[number, : len(row)] = row
    return batch


def load(path: Path) -> Text:
    """Reads what `save` has written."""
    name, sizes, source, target = json.loads(Path(path).read_text())
    return Text(
        name,
        tuple(sizes),
        [np.array(row, "int32") for row in source],
        [np.array(row, "int32") for row in target],
    )


def generate(
    pairs: int, vocab_sizes=(7765, 7010), mean_tokens=26, seed=0
) -> Text:
    """Returns random ids whose lengths are distributed as TED's.

    Lengths are log-normal, 26 tokens on average and 4 to 128, so that a shuffled batch
    of 64 is padded to some 95; the lengths of a pair go together. Ids are drawn as
    Zipf has it, since a batch that repeats frequent words touches fewer rows of the
    embedding.
    """
    random = np.random.default_rng(seed)
    spread, correlation = 0.62, 0.9
    normal = random.standard_normal((2, pairs))
    noise = (1 - correlation**2) ** 0.5
    normal[1] = correlation * normal[0] + noise * normal[1]
    lengths = mean_tokens * np.exp(spread * normal - spread**2 / 2)
    lengths = np.clip(np.rint(lengths), 4, 128).astype(int)

    def row(length, vocab_size):
        ranks = (vocab_size - FIRST_PIECE) ** random.random(length - 2)
        pieces = FIRST_PIECE - 1 + ranks.astype("int32")
        return np.concatenate([[START], pieces, [END]]).astype("int32")

    return Text(
        f"generated ids, seed {seed}",
        vocab_sizes,
        source=[row(length, vocab_sizes[0]) for length in lengths[0]],
        target=[row(length, vocab_sizes[1]) for length in lengths[1]],
    )
