"""Which reading of the paper comes nearest to the numbers that it reports."""

import math
from collections.abc import Sequence
from pathlib import Path

from reprt import paper
from reprt.pages.files import notes, write_text
from reprt.pages.runs import Series, by_settings, provenance_lines, read_runs
from reprt.training.run_folder import RunFolderError

LOSSES = ("train_loss", "val_loss")


def write_readings(folder: Path) -> Path:
    """Writes `readings.md` from the runs of one text, each a reading of the paper.

    A file `notes.md` in the folder becomes part of the page.

    Args:
        folder: a folder with run folders in it.

    Returns:
        The path of the page.

    Raises:
        RunFolderError: if there is no run, or the paper has no such pair.
    """
    runs = read_runs(folder)
    manifest, pair = runs[0].manifest, runs[0].settings["text"]["pair"]
    if pair not in paper.TABLE_1:
        raise RunFolderError(
            f"Expected runs on a pair of Table 1. Received: {pair}, in {folder}."
        )
    finished = [run for run in runs if run.metrics and run.log]
    unfinished = sorted({run.name for run in runs} - {run.name for run in finished})
    series = by_settings(finished)
    warning = [] if manifest["official_text"] else [
        f"> **Not comparable with the paper.** Ours are on {manifest['text']}.",
        "",
    ]
    lines = [
        f"# Readings of the paper: {manifest['text']}",
        "",
        *warning,
        "What the paper leaves open, tried out. Losses are teacher-forced, as Keras "
        "reports them, after the last epoch; the distance is that of both losses from "
        "the paper's two, in nats. The nearest comes first.",
        "",
        *notes(folder),
    ]
    for model, result in paper.TABLE_1[pair].items():
        own = [each for each in series if each.runs[0].preset == model]
        lines += _table(model, result, own)
    if unfinished:
        lines += [f"Not finished: {', '.join(unfinished)}.", ""]
    lines += ["## How it was run", ""]
    for each in series:
        for run in each.runs:
            lines.append(f"- **{run.name}**")
            lines += [f"  - {line}" for line in provenance_lines(run)]
    page = folder / "readings.md"
    write_text(page, "\n".join([*lines, ""]))
    return page


def distance(series: Series, result: paper.Result) -> float:
    """Returns how far the mean losses are from the paper's."""
    return math.hypot(
        *(series.mean(name) - getattr(result, name) for name in LOSSES)
    )


def _table(model, result, series: Sequence[Series]) -> list[str]:
    lines = [
        f"## {model}",
        "",
        "| run | what departs from this package's defaults | seeds | training loss | "
        "validation loss | training − paper | validation − paper | distance |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
        f"| paper | | 1 | {result.train_loss:.2f} | {result.val_loss:.2f} | | | |",
    ]
    for each in sorted(series, key=lambda each: distance(each, result)):
        differences = [each.mean(name) - getattr(result, name) for name in LOSSES]
        cells = [
            each.runs[0].name.removesuffix(f".{each.runs[0].seed}"),
            ", ".join(each.departures) or "nothing",
            str(len(each.runs)),
            *(each.cell(name, 3) for name in LOSSES),
            *(f"{difference:+.3f}" for difference in differences),
            f"{distance(each, result):.3f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]
