"""Language models on one side of a text: loss and perplexity a token."""

import numpy as np

from reprt_lab.pages.comparison import order
from reprt_lab.pages.frame import (
    FORCED,
    LOSS,
    PREFIX,
    TRIALS,
    Column,
    group_by_settings,
    groups_table,
    mean,
    parameters,
    rate,
    spread,
)


def perplexity(name: str) -> Column:
    """Returns the column of a loss' perplexity."""

    def cell(group):
        return spread(np.exp(group.table[name]), 1)

    return cell


COLUMNS = {
    **TRIALS,
    "rate": rate,
    "parameters": parameters,
    "teacher-forced, validation": mean(FORCED, 3),
    "prefix, validation": mean(PREFIX, 3),
    "prefix, test": mean(LOSS, 3),
    "perplexity, teacher-forced": perplexity(FORCED),
    "perplexity, prefix": perplexity(PREFIX),
}


def page_values(runs, settings, out):
    groups = group_by_settings(run for run in runs if run.finished)
    groups.sort(key=order)
    return {"table": groups_table(groups, COLUMNS)}
