"""What trainings cost, as a section of a page."""

from collections.abc import Mapping
from typing import Any

from reprt.analysis.cost import COUNTED, Cost, peak, scientific
from reprt_lab.pages.tables import fill, markdown, plain
from reprt_lab.records import Run


def cost_section(tables: Mapping[str, Any]) -> str:
    """Returns a section on the mean costs of tables of runs, by what it calls them."""
    rows = []
    for name, runs in tables.items():
        rows.append({"model": plain(name)})
        means = runs[[*COUNTED, "train_seconds"]].mean(skipna=False)
        if not means.isna().any():
            run: Run = runs["run"].iloc[0]
            starts = [each.manifest.starts[-1] for each in runs["run"]]
            devices = [max(1, len(start.devices)) for start in starts]
            speed = means["train_flops"] / means["train_seconds"]
            hours = (devices * runs["train_seconds"]).mean() / 3600
            rows[-1] |= counts(Cost(**means[COUNTED]))
            rows[-1]["device hours"] = f"{hours:.3f}"
            rows[-1]["FLOP/s"] = scientific(speed)
            alike = (
                len({(start.hardware, len(start.devices)) for start in starts})
                == 1
            )
            most = peak(starts[0].hardware, run.settings.training.precision)
            if alike and most:
                rows[-1]["of the peak"] = f"{speed / devices[0] / most:.1%}"
    known = any(row.keys() - {"model"} for row in rows)
    return fill("cost", table=markdown(rows)) if known else ""


def counts(cost: Cost) -> dict[str, str]:
    return {
        "parameters": f"{cost.parameters:,.0f}",
        "without tables": f"{cost.parameters_without_tables:,.0f}",
        "source tokens": f"{cost.train_source_tokens:,.0f}",
        "target tokens": f"{cost.train_target_tokens:,.0f}",
        "FLOPs, 6·N·D": scientific(cost.flops_by_parameters),
        "FLOPs, products": scientific(cost.train_flops),
    }
