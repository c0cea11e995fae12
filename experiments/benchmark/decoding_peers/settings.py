"""What every peer is told."""

import dataclasses

import numpy as np

# Which beam sizes there are of each peer; None for any.
PEERS = {"reprt": None, "tutorial": (1,), "ctranslate2": None}
# The environment that a peer runs in, where it is not its own.
ENVIRONMENTS = {"tutorial": "plain_keras"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """A model to translate with.

    Args:
        vocab_sizes: of source and target, padding included.
        batch_size: sentences translated at once, where the peer can.
        threads: how many may compute.
        variant: what follows the colon in a peer's name, for the peer to interpret.
        weights: file of the weights, as ours have been saved.
        run: our own peer's, a folder of `reprt train`; else weights are initial ones.
        forbidden: ids that our own peer gives no probability, and so in its weights.
        seed: of initial weights.
    """

    vocab_sizes: tuple[int, int]
    batch_size: int
    threads: int
    variant: str = ""
    weights: str | None = None
    run: str | None = None
    forbidden: tuple[int, ...] = ()
    seed: int = 0

    def load(self) -> list[np.ndarray]:
        """Returns the arrays of the file."""
        with np.load(self.weights) as file:
            return [file[name] for name in file.files]
