"""What every peer is told, and the sizes of the paper's models (section 3.1)."""

import dataclasses
from typing import NamedTuple

BATCH_SIZE = 64
# Which models there are of each peer. Ours are presets.
PEERS = {
    "reprt": (
        *("baseline", "repe", "repe-causal"),
        *("transformer-modern-tiny", "transformer-modern-small"),
    ),
    "plain_keras": ("baseline", "repe"),
    "keras_hub": ("baseline",),
    "pytorch": ("baseline",),
}


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
        model: one of those of `PEERS`.
        vocab_sizes: of source and target, padding included.
        variant: what follows the colon in a peer's name, for the peer to interpret.
        dropout: rate of dropout.
        warmup_steps: the step of the highest rate.
        dense: whether Adam moves every row of an embedding at every step, as it is
            defined; of itself Keras moves those that a batch touched.
        seed: of the initial weights and of dropout.
    """

    model: str
    vocab_sizes: tuple[int, int]
    variant: str = ""
    dropout: float = 0.1
    warmup_steps: int = 4000
    dense: bool = False
    seed: int = 0

    @property
    def sizes(self) -> Sizes:
        return SIZES[self.model]
