"""What trainings cost, as a section of a page."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from reprt.analysis.cost import Cost, power
from reprt.lab.pages.tables import fill, markdown, plain

COUNTS = (
    "parameters | without tables | source tokens | target tokens | FLOPs, 6·N·D | "
    "FLOPs, products"
).split(" | ")
HEAD = ["model", *COUNTS, "hours", "FLOP/s"]


def cost_section(tables: Mapping[str, Any]) -> str:
    """Returns a section on mean costs; nothing if no cost is known.

    Args:
        tables: the rows of runs, a data frame, by what the section calls them.
    """
    costs = {name: mean_cost(rows) for name, rows in tables.items()}
    if not any(costs.values()):
        return ""
    rows = []
    for name, cost in costs.items():
        rows.append([plain(name)])
        if cost:
            hours = f"{(cost.train_seconds or 0) / 3600:.3f}"
            rows[-1] += [*counts(cost), hours, power(cost.flops_per_second)]
    return fill("cost", table=markdown(HEAD, rows))


def mean_cost(rows) -> Cost | None:
    """Returns the mean over runs; None if the results of one do not tell."""
    means = rows[[each.name for each in dataclasses.fields(Cost)]].mean(skipna=False)
    return None if means.isna().any() else Cost(**means)


def counts(cost: Cost) -> list[str]:
    """Returns the cells of `COUNTS`."""
    counted = (
        cost.parameters,
        cost.parameters_without_tables,
        cost.train_source_tokens,
        cost.train_target_tokens,
    )
    flops = power(cost.flops_by_parameters), power(cost.train_flops)
    return [*(f"{number:,.0f}" for number in counted), *flops]
