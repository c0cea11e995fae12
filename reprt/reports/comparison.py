"""Trials of many models: what is left of a gain when the decoder cannot see ahead."""

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from reprt.analysis.cost import COUNTED
from reprt.files import write_text
from reprt.reports.cost import cost_section
from reprt.reports.escaping import in_markdown
from reprt.reports.files import new_figure, notes, save_figure
from reprt.reports.provenance import left_out_lines, out_of_time_lines, starts_lines
from reprt.reports.runs import Run, read_runs
from reprt.reports.series import Series, by_schedule, drawn, rate_names, with_spread
from reprt.reports.tables import csv_text, markdown

HEAD = (
    "model | looks ahead | seeds | parameters | teacher-forced | prefix | prefix − "
    "teacher-forced | prefix − baseline's | BLEU, test | seconds an epoch"
).split(" | ")
COLUMNS = (
    "run",
    "model",
    "schedule",
    "schedule_dim",
    "seed",
    "looks_ahead",
    "parameters",
    "epochs",
    "train_loss_per_token",
    "val_loss_per_token",
    "val_prefix_loss_per_token",
    "test_bleu",
    "seconds_an_epoch",
    "commit",
    "finished",
)
COSTS = (*COUNTED[1:], "train_seconds")  # of runs whose results tell
PREFIX = "val_prefix_loss_per_token"


def is_comparison(folder: Path) -> bool:
    """Returns whether the runs in a folder are trials, named MODEL.SCHEDULE.SEED."""
    return any("." in run.name for run in read_runs(folder))


def write_comparison(folder: Path, out: Path | None = None) -> Path:
    """Writes `comparison.md`, `.csv` and `.png` on the trials in a folder.

    A file `notes.md` in the folder becomes part of the page, so that what a person has
    to say survives the next writing.

    Args:
        folder: a folder with the runs of a recipe with `[trials]`.
        out: where the files go; None for the same folder.

    Returns:
        The path of the page.

    Raises:
        RunFolderError: as `reprt.reports.runs.read_runs`.
    """
    runs, out = read_runs(folder), out or folder
    finished = [run for run in runs if run.metrics is not None and run.log]
    series = by_schedule(finished)
    series.sort(key=lambda each: _mean(each, PREFIX, math.inf))
    write_text(out / "comparison.csv", _table_of_runs(finished))
    write_text(out / "comparison.md", _page(runs, finished, series, notes(folder)))
    if series:
        _draw(series, runs[0], out / "comparison.png")
    return out / "comparison.md"


def _mean(series: Series, name: str, otherwise: float) -> float:
    return series.mean(name) if series.values(name) else otherwise


def _groups(series: Sequence[Series]) -> list[tuple[str, list[Series]]]:
    """Series that can be set side by side: those of each schedule."""
    groups: list[tuple[str, list[Series]]] = []
    names = rate_names(series)
    for name in sorted({each.schedule for each in series}, reverse=True):
        own = [each for each in series if each.schedule == name]
        common = all(each.whole_schedule == own[0].whole_schedule for each in own)
        # A model whose own schedule is the common one was trained only once.
        group = [
            each
            for each in series
            if each in own or common and each.whole_schedule == own[0].whole_schedule
        ]
        if not any(set(map(id, group)) <= set(map(id, other)) for _, other in groups):
            if common:
                title = f"All on one schedule, {names[own[0].model, name]}"
            elif all(each.schedule_dim for each in own):
                title = "Each on its own schedule, m = the width of its embedding"
            else:
                title = "Each on its own schedule"
            groups.append((title, group))
    return groups


def _table_of_runs(runs) -> str:
    head = [*COLUMNS, *(COSTS if any(run.cost for run in runs) else ())]
    rows = []
    for run in sorted(runs, key=lambda run: run.name):
        row = {
            **run.numbers,
            "run": run.name,
            "model": run.model,
            "schedule": run.schedule,
            "schedule_dim": run.schedule_dim,
            "seed": run.seed,
            "looks_ahead": run.looks_ahead,
            "commit": run.manifest["starts"][-1]["commit"],
            "finished": run.results.get("finished"),
        }
        cells = {name: row[name] for name in head if name in row}
        rows.append(
            {n: f"{c:.5f}" if isinstance(c, float) else c for n, c in cells.items()}
        )
    return csv_text(rows, head)


def _page(runs, finished, series, notes) -> str:
    manifest = runs[0].manifest
    name, official = in_markdown(manifest["text"]), manifest["official_text"]
    warning = [] if official else [
        f"> Every number on this page is on the {name}, none on TED-HRLR.",
        "",
    ]
    unfinished = [run for run in runs if run not in finished]
    rates = rate_names(series)
    return "\n".join(
        [
            f"# What the gain is made of: {name}",
            "",
            *warning,
            f"The page has {len(finished)} runs. Each row below gives mean ± standard "
            "deviation over its seeds. Losses are in nats per token, on the validation "
            "split after the last epoch. The *teacher-forced* loss gives the decoder "
            "the whole right target at once. The *prefix* loss gives it only the "
            "tokens before each position, as search does. Their difference is what "
            "looking ahead is worth. Differences from the baseline's are paired by "
            "seed. BLEU is that of greedy search on the test split.",
            "",
            "![Both losses and BLEU](comparison.png)",
            "",
            *notes,
            *(line for group in _groups(series) for line in _table(*group)),
            *out_of_time_lines(finished),
            *left_out_lines("Not finished", unfinished),
            *cost_section(
                [
                    (f"{each.label}, {rates[each.model, each.schedule]}", each.cost)
                    for each in series
                ]
            ),
            "## How it was run",
            "",
            "Each run is a row of [comparison.csv](./comparison.csv). Seconds an epoch "
            "are the median of a run's epochs. The machine may have had other work to "
            "do. These commands started the runs, each so many times:",
            "",
            *starts_lines(finished),
        ]
    )


def _table(title, group) -> list[str]:
    baseline = next((each for each in group if each.model == "baseline"), None)
    rows = []
    for each in group:
        both = [run.numbers for run in each.runs if PREFIX in run.numbers]
        gaps = [found[PREFIX] - found["val_loss_per_token"] for found in both]
        alone = baseline is None or each is baseline
        behind = [] if alone else each.differences(baseline, PREFIX)
        rows.append(
            [
                each.label,
                "**yes**" if each.looks_ahead else "no",
                str(len(each.runs)),
                f"{each.mean('parameters'):,.0f}",
                each.cell("val_loss_per_token", 3),
                each.cell(PREFIX, 3),
                f"{statistics.mean(gaps):+.3f}" if gaps else "–",
                with_spread(behind, 3, "+") if behind else "–",
                each.cell("test_bleu", 2),
                each.cell("seconds_an_epoch", 1),
            ]
        )
    return [f"## {title}", "", *markdown(HEAD, "ll" + "r" * 8, rows), ""]


def _draw(series: Sequence[Series], run: Run, path: Path):
    """The models with a colour, a row for each of their schedules."""
    colours = drawn(series)
    series = [each for each in series if each.model in colours]
    height = 1.6 + 0.26 * len(series)
    figure, (losses, bleu) = new_figure(
        1, 2, figsize=(10, height), width_ratios=(2, 1), sharey=True
    )
    places = range(len(series), 0, -1)
    for place, each in zip(places, series):
        colour = colours[each.model]
        forced, prefix = (
            each.values(f"val_{kind}_per_token") for kind in ("loss", "prefix_loss")
        )
        ends = [statistics.mean(values) for values in (forced, prefix) if values]
        losses.plot(
            ends, [place] * len(ends), "-", color=colour, alpha=0.5, linewidth=3
        )
        losses.plot(
            forced, [place] * len(forced), "o", color=colour, fillstyle="none"
        )
        losses.plot(prefix, [place] * len(prefix), "o", color=colour)
        values = each.values("test_bleu")
        bleu.barh(place, _mean(each, "test_bleu", 0.0), color=colour, alpha=0.5)
        bleu.plot(values, [place] * len(values), ".", color=colour)
    rates, title = rate_names(series), run.manifest["text"]
    names = [
        f"{each.label}, {rates[each.model, each.schedule]}" for each in series
    ]
    if len(set(rates.values())) == 1:
        names = [each.label for each in series]
        title = f"{title}, {series[0].rate}"
    losses.set_yticks(list(places), names, fontsize=8)
    losses.set_ylim(0.4, len(series) + 0.6)
    losses.set_xlabel("validation loss, nats per token; one dot a seed")
    losses.set_title(
        "What looking ahead is worth: hollow with the whole\n"
        "target given, filled with the words before alone",
        loc="left",
        fontsize=9,
    )
    bleu.set_xlabel("BLEU, test split, greedy search")
    bleu.set_title("What search makes of it", loc="left", fontsize=9)
    for axis in (losses, bleu):
        axis.grid(alpha=0.3)
    figure.suptitle(title, fontsize=10)
    save_figure(figure, path)
