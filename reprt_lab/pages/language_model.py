"""Language models on one side of a text: loss and perplexity a token."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reprt_lab.pages.comparison import FORCED, PREFIX, order
from reprt_lab.pages.frame import (
    Column,
    Group,
    by_settings,
    groups_table,
    mean,
    spread,
)
from reprt_lab.records import Run


def perplexity(name: str) -> Column:
    """Returns the column of a loss' perplexity."""

    def cell(group, reference):
        return spread(np.exp(group.table[name]), 1)

    return cell


def _rate(group: Group, reference: Group | None) -> str:
    return group.rate


COLUMNS = {
    "rate": _rate,
    "parameters": mean("parameters", 0),
    "teacher-forced, validation": mean(FORCED, 3),
    "prefix, validation": mean(PREFIX, 3),
    "prefix, test": mean("test_prefix_loss_per_token", 3),
    "perplexity, teacher-forced": perplexity(FORCED),
    "perplexity, prefix": perplexity(PREFIX),
}


def page_values(runs: Sequence[Run], settings, out: Path) -> dict[str, str]:
    groups = by_settings(run for run in runs if run.finished)
    groups.sort(key=order)
    return {"table": groups_table(groups, COLUMNS)}
