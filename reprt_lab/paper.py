"""What the paper reports, from `paper.toml`: Table 1 and Figure 3, for comparison."""

from pathlib import Path

from reprt.files import read_toml

# The columns of Table 1, by the names that pages give to our own numbers.
COLUMNS = ("epochs", "train_loss", "val_loss", "seconds_an_epoch")
# What pages call its two models.
LABELS = {"baseline": "baseline", "repe": "RePE as published"}

_NUMBERS = read_toml(Path(__file__).with_suffix(".toml"))
PARAMETERS = _NUMBERS["parameters"]
FIGURE_3A = _NUMBERS["figure_3a"]
# Seconds an epoch: their mean and deviation.
FIGURE_3B = _NUMBERS["figure_3b"]
TABLE_1: dict[str, dict[str, dict[str, float]]] = {}
for pair, models in _NUMBERS["table_1"].items():
    TABLE_1[pair] = {}
    for model, numbers in models.items():
        TABLE_1[pair][model] = dict(zip(COLUMNS, numbers))
