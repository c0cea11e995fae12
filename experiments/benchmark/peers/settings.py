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
    """A model to be made.

    Args:
        vocab_sizes: of source and target, padding included.
        model: one of `SIZES`, or of ours another preset.
        variant: what follows the colon in a peer's name, for the peer to interpret.
        dropout: rate of dropout.
        dense: whether Adam moves every row of an embedding at every step, as it is
            defined; by default Keras moves those that a batch touched.
        batch_size: sentences translated at once, where the peer can.
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
    frequency = 10000 ** -(np.arange(width // 2) / (width // 2))
    angle = np.arange(length)[:, None] * frequency
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=1).astype("float32")
