"""The settings of every peer, and the sizes of the paper's models (section 3.1)."""

import dataclasses
from typing import NamedTuple

import numpy as np

BATCH_SIZE = 64
WARMUP_STEPS = 4000
SEED = 0
# The peer that has our models.
OURS = "reprt"


class Sizes(NamedTuple):
    """The paper's N, m, p, r = q and s, and the width of the states."""

    blocks: int
    embedding: int
    heads: int
    head: int
    hidden: int
    width: int


SIZES = {
    "baseline": Sizes(4, 128, 8, 128, 512, width=128),
    "repe": Sizes(2, 64, 4, 64, 256, width=128),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """A model to be made, and how it is used.

    Attributes:
        vocab_sizes: both vocabularies' sizes, padding included.
        model: a name in `SIZES`, or for our peer any preset or RECIPE:MODEL.
        variant: what follows the colon in a peer's name.
        dropout: the rate of dropout.
        dense: whether Adam adds up an id's gradients before it squares them.
        batch_size: how many sentences are translated at once, where the peer can.
    """

    vocab_sizes: tuple[int, int]
    model: str = "baseline"
    variant: str = ""
    dropout: float = 0.1
    dense: bool = False
    batch_size: int = BATCH_SIZE

    @property
    def sizes(self) -> Sizes:
        return SIZES[self.model]


def sinusoids(width: int, length: int = 2048) -> np.ndarray:
    """Returns the table of positions: sines in the left half, cosines in the right."""
    frequencies = 10000 ** -(np.arange(width // 2) / (width // 2))
    angles = np.arange(length)[:, None] * frequencies
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return table.astype("float32")
