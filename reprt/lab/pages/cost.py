"""What trainings cost, as a section of a page."""

from collections.abc import Mapping
from typing import Any

from reprt.analysis.cost import COUNTED, Cost, peak, power
from reprt.lab.pages.tables import fill, markdown, plain
from reprt.lab.records import Run


def cost_section(tables: Mapping[str, Any]) -> str:
    """Returns a section on the mean costs of tables of runs, by what it calls them."""
    rows = []
    for name, runs in tables.items():
        rows.append({"model": plain(name)})
        means = runs[[*COUNTED, "train_seconds"]].mean(skipna=False)
        if not means.isna().any():
            run: Run = runs["run"].iloc[0]
            start, seconds = run.manifest.starts[-1], means["train_seconds"]
            devices, speed = max(1, len(start.devices)), means["train_flops"] / seconds
            rows[-1] |= counts(Cost(**means[COUNTED]))
            rows[-1]["device hours"] = f"{devices * seconds / 3600:.3f}"
            rows[-1]["FLOP/s"] = power(speed)
            if most := peak(start.hardware, run.settings.training.precision):
                rows[-1]["of the peak"] = f"{speed / devices / most:.1%}"
    known = any(row.keys() - {"model"} for row in rows)
    return fill("cost", table=markdown(rows)) if known else ""


def counts(cost: Cost) -> dict[str, str]:
    return {
        "parameters": f"{cost.parameters:,.0f}",
        "without tables": f"{cost.parameters_without_tables:,.0f}",
        "source tokens": f"{cost.train_source_tokens:,.0f}",
        "target tokens": f"{cost.train_target_tokens:,.0f}",
        "FLOPs, 6·N·D": power(cost.flops_by_parameters),
        "FLOPs, products": power(cost.train_flops),
    }
