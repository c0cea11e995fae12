"""What trainings cost, as a section of a page."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from reprt.analysis.cost import Cost, peak, power
from reprt.lab.pages.tables import fill, markdown, plain
from reprt.lab.records import Run


def cost_section(tables: Mapping[str, Any]) -> str:
    """Returns a section on the mean costs of tables of runs, by what it calls them."""
    fields, rows = [each.name for each in dataclasses.fields(Cost)], []
    for name, runs in tables.items():
        rows.append({"model": plain(name)})
        means = runs[fields].mean(skipna=False)
        if not means.isna().any():
            cost = Cost(**means)
            rows[-1] |= {**counts(cost), **_speed(runs["run"].iloc[0], **means)}
    known = any(row.keys() - {"model"} for row in rows)
    return fill("cost", table=markdown(rows)) if known else ""


def _speed(run: Run, train_flops: float, train_seconds: float, **_) -> dict[str, str]:
    """Returns what was measured, and a share of the peak where that is known."""
    start = run.manifest.starts[-1]
    devices, speed = max(1, len(start.devices)), train_flops / train_seconds
    found = {
        "device hours": f"{devices * train_seconds / 3600:.3f}",
        "FLOP/s": power(speed),
    }
    if most := peak(start.hardware, run.settings.training.precision):
        found["of the peak"] = f"{speed / devices / most:.1%}"
    return found


def counts(cost: Cost) -> dict[str, str]:
    return {
        "parameters": f"{cost.parameters:,.0f}",
        "without tables": f"{cost.parameters_without_tables:,.0f}",
        "source tokens": f"{cost.train_source_tokens:,.0f}",
        "target tokens": f"{cost.train_target_tokens:,.0f}",
        "FLOPs, 6·N·D": power(cost.flops_by_parameters),
        "FLOPs, products": power(cost.train_flops),
    }
