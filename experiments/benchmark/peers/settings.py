"""What every peer is told, and the sizes of the paper's models (section 3.1)."""

import dataclasses
from typing import NamedTuple

import numpy as np

BATCH_SIZE, WARMUP_STEPS, SEED, OURS = 64, 4000, 0, "reprt"


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
    """A model to be made, and how it is used."""

    vocab_sizes: tuple[int, int]  # padding included
    model: str = "baseline"  # or of `SIZES`, or of ours another preset
    variant: str = ""  # what follows the colon in a peer's name
    dropout: float = 0.1
    dense: bool = False  # Adam adds up an id's gradients before it squares them
    batch_size: int = (
        BATCH_SIZE  # sentences translated at once, where the peer can
    )

    @property
    def sizes(self) -> Sizes:
        return SIZES[self.model]


def sinusoids(width: int, length: int = 2048) -> np.ndarray:
    """Returns the table of positions: sines in the left half, cosines in the right."""
    frequency = 10000 ** -(np.arange(width // 2) / (width // 2))
    angle = np.arange(length)[:, None] * frequency
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=1).astype(
        "float32"
    )
