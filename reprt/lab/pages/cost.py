"""What trainings cost, as a table."""

from collections.abc import Collection

from reprt.analysis.cost import Cost
from reprt.lab.pages.tables import markdown

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


def cost_table(costs: Collection[tuple[str, Cost | None]]) -> list[str]:
    """Returns a table's lines, in Markdown.

    Args:
        costs: what each is of, and the cost; None where it is not known.

    Example:

    >>> lines = cost_table([("repe", Cost(1200, 900, 4000, 3600, 7 * 10**9, 2.0))])
    >>> print(lines[-1])
    | repe | 1,200 | 900 | 4,000 | 3,600 | 4.10e7 | 7.00e9 | 0.001 | 3.50e9 |
    """
    rows = [[name, *_cells(cost)] for name, cost in costs]
    return markdown(HEAD, "l" + "r" * (len(HEAD) - 1), rows)


def cost_section(costs: Collection[tuple[str, Cost | None]]) -> list[str]:
    """Returns a section of a page; no lines if no cost is known."""
    if not any(cost for _, cost in costs):
        return []
    return ["## What the training cost", "", *cost_table(costs), "", RULE, ""]


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
