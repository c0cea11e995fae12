"""Language models on one side of a text: loss and perplexity a token."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reprt.lab.pages.comparison import FORCED, PREFIX, order
from reprt.lab.pages.frame import Group, by_settings, spread
from reprt.lab.pages.tables import markdown
from reprt.lab.records import Run


def page_values(runs: Sequence[Run], settings, out: Path) -> dict[str, str]:
    groups = by_settings(run for run in runs if run.finished)
    groups.sort(key=order)
    return {"table": markdown([_cells(group) for group in groups], "ll")}


def _cells(group: Group) -> dict[str, str]:
    return {
        **group.head,
        "rate": group.rate,
        "parameters": group.cell("parameters", 0),
        "teacher-forced, validation": group.cell(FORCED, 3),
        "prefix, validation": group.cell(PREFIX, 3),
        "prefix, test": group.cell("test_prefix_loss_per_token", 3),
        "perplexity, teacher-forced": spread(np.exp(group.table[FORCED]), 1),
        "perplexity, prefix": spread(np.exp(group.table[PREFIX]), 1),
    }
