"""What the paper reports, from `paper.toml`: Table 1 and Figure 3, for comparison."""

import dataclasses
from pathlib import Path

from reprt.files import read_toml


@dataclasses.dataclass(frozen=True)
class Result:
    """A cell group of Table 1, by the names that pages give to our own numbers."""

    epochs: int
    train_loss: float
    val_loss: float
    seconds_an_epoch: float


# What pages call its two models.
LABELS = {"baseline": "baseline", "repe": "RePE as published"}

_NUMBERS = read_toml(Path(__file__).with_suffix(".toml"))
PARAMETERS, FIGURE_3A = _NUMBERS["parameters"], _NUMBERS["figure_3a"]
FIGURE_3B = _NUMBERS["figure_3b"]  # seconds an epoch: mean and deviation
TABLE_1: dict[str, dict[str, Result]] = {
    pair: {model: Result(*numbers) for model, numbers in models.items()}
    for pair, models in _NUMBERS["table_1"].items()
}
