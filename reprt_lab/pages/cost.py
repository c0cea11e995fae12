"""What trainings cost, as a section of a page."""

from collections.abc import Iterable

from reprt.analysis.cost import COST_FIELDS, Cost, scientific
from reprt_lab.pages.frame import Group, label, rate, spread
from reprt_lab.pages.tables import fill, markdown


def cost_section(groups: Iterable[Group]) -> str:
    """Returns a section on the groups' mean costs."""
    rows = []
    for group in groups:
        means = group.table[[*COST_FIELDS, "train_seconds"]].mean(skipna=False)
        if means.isna().any():
            continue
        speed = means["train_flops"] / means["train_seconds"]
        hours = group.table["devices"] * group.table["train_seconds"] / 3600
        memory = group.table["peak_memory_bytes"].max() / 2**30
        row = {
            "model": label(group),
            "rate": rate(group),
            **counts(Cost(**means[COST_FIELDS])),
            "device hours": f"{hours.mean():.3f}",
            "FLOP/s": scientific(speed),
            "peak memory, GiB": spread([memory], 2),
        }
        rows.append(row)
    return fill("cost", table=markdown(rows, 2)) if rows else ""


def counts(cost: Cost) -> dict[str, str]:
    """Returns the cells of a cost, by the heads of their columns."""
    return {
        "parameters": f"{cost.parameters:,.0f}",
        "without tables": f"{cost.parameters_without_tables:,.0f}",
        "source tokens": f"{cost.train_source_tokens:,.0f}",
        "target tokens": f"{cost.train_target_tokens:,.0f}",
        "FLOPs, 6·N·D": scientific(cost.flops_by_parameters),
        "FLOPs, products": scientific(cost.train_flops),
    }
