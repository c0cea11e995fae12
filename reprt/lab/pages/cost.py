"""What trainings cost, as a section of a page."""

import dataclasses
from collections.abc import Mapping

import pandas as pd

from reprt.analysis.cost import Cost
from reprt.lab.pages.tables import markdown, plain

HEAD = (
    "model | parameters | without tables | source tokens | target tokens | "
    "FLOPs, 6·N·D | FLOPs, products | hours | FLOP/s"
).split(" | ")
RULE = (
    "Tokens are those of all epochs, without padding. 6·N·D takes N parameters without "
    "tables, which are matrices with a vocabulary's axis, and D tokens of both sides. "
    "The products are those of matrices. They count two operations a multiply-add and "
    "the forward pass three times. Hours are those of training alone. FLOP/s are the "
    "operations of the products in this time."
)


def cost_section(groups: Mapping[str, pd.DataFrame]) -> str:
    """Returns a section on the mean cost of groups; nothing if no cost is known.

    Args:
        groups: the runs by what the table calls them.
    """
    costs = {name: mean_cost(group) for name, group in groups.items()}
    if not any(costs.values()):
        return ""
    rows = [[plain(name), *_cells(cost)] for name, cost in costs.items()]
    return "\n\n".join(["## What the training cost", markdown(HEAD, rows), RULE])


def mean_cost(group: pd.DataFrame) -> Cost | None:
    """Returns the mean over runs; None if the results of one do not tell."""
    means = group[[each.name for each in dataclasses.fields(Cost)]].mean(skipna=False)
    return None if means.isna().any() else Cost(**means)


def power(number: float | None) -> str:
    """Returns a large number in short; a dash for none.

    >>> power(6.02214e23)
    '6.02e23'
    """
    if number is None:
        return "–"
    digits, exponent = f"{number:.2e}".split("e")
    return f"{digits}e{int(exponent)}"


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
        f"{cost.train_seconds / 3600:.3f}" if cost.train_seconds else "–",
        power(cost.flops_per_second),
    ]
