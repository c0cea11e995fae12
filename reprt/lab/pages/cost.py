"""What trainings cost, as a section of a page."""

import dataclasses
from collections.abc import Mapping

import pandas as pd

from reprt.analysis.cost import Cost, power
from reprt.lab.pages.tables import fill, markdown, plain

HEAD = (
    "model | parameters | without tables | source tokens | target tokens | "
    "FLOPs, 6·N·D | FLOPs, products | hours | FLOP/s"
).split(" | ")


def cost_section(tables: Mapping[str, pd.DataFrame]) -> str:
    """Returns a section on mean costs; nothing if no cost is known.

    Args:
        tables: the rows of runs by what the section calls them.
    """
    costs = {name: mean_cost(rows) for name, rows in tables.items()}
    if not any(costs.values()):
        return ""
    rows = [[plain(name), *_cells(cost)] for name, cost in costs.items()]
    return fill("cost", table=markdown(HEAD, rows))


def mean_cost(rows: pd.DataFrame) -> Cost | None:
    """Returns the mean over runs; None if the results of one do not tell."""
    means = rows[[each.name for each in dataclasses.fields(Cost)]].mean(skipna=False)
    return None if means.isna().any() else Cost(**means)


def _cells(cost: Cost | None) -> list[str]:
    if cost is None:
        return ["–"] * (len(HEAD) - 1)
    return [
        f"{cost.parameters:,.0f}",
        f"{cost.parameters_without_tables:,.0f}",
        f"{cost.train_source_tokens:,.0f}",
        f"{cost.train_target_tokens:,.0f}",
        power(cost.flops_by_parameters),
        power(cost.train_flops),
        f"{(cost.train_seconds or 0) / 3600:.3f}",
        power(cost.flops_per_second),
    ]
