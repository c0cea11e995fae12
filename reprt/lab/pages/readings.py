"""Which reading of the paper comes nearest to the numbers that it reports."""

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from reprt.lab import paper
from reprt.lab.pages.frame import by_settings, cell, run_of, runs_table
from reprt.lab.pages.provenance import left_out, starts_of
from reprt.lab.pages.runs import read_texts
from reprt.lab.pages.tables import markdown, notes, plain, write_markdown
from reprt.lab.recipe import PageSettings
from reprt.lab.records import RunFolderError

LOSSES = ("train_loss", "val_loss")
HEAD = (
    "model | text | what departs from this package's defaults | seeds | "
    "training loss | validation loss | training − paper | validation − paper | distance"
).split(" | ")


def write_readings(folder: Path, settings: PageSettings, out: Path) -> Path:
    """Writes `readings.md` from runs on one pair, each a reading of the paper.

    Args:
        folder: a folder with runs, or with a folder of them for each form of the text.
        settings: those of the page.
        out: where it goes.

    Returns:
        The path of the page.

    Raises:
        RunFolderError: if there is no run, or the paper has no such pair.
    """
    texts = read_texts(folder)
    runs = [run for text in texts for run in text]
    pair, *others = sorted({run.pair for run in runs})
    if others or pair not in paper.TABLE_1:
        raise RunFolderError(
            "Expected runs on one pair of Table 1. Received, in "
            f"{folder}: {', '.join([pair, *others])}."
        )
    groups = [
        group
        for text in texts
        for group in by_settings(runs_table(r for r in text if r.finished and r.log))
    ]
    foreign = {run.manifest.text for run in runs if not run.manifest.official_text}
    named = ", ".join(map(plain, sorted(foreign)))
    lines = []
    for run in (run for group in groups for run in group["run"]):
        label, text = plain(run.label), plain(run.manifest.text)
        lines += [f"- **{label}**, run `{run.name}`, on {text}", *starts_of(run)]
    return write_markdown(
        out / "readings.md",
        f"# Readings of the paper: {pair}",
        f"> **Not comparable with the paper:** {named}." if named else "",
        "The paper leaves some things open, and this page tries them. Losses are "
        "teacher-forced, as Keras reports them, after the last epoch. The distance is "
        "that of both losses from the paper's two, in nats. The nearest comes first.",
        notes(folder),
        *(
            _section(model, result, groups)
            for model, result in paper.TABLE_1[pair].items()
        ),
        left_out("Not finished", (r for r in runs if not (r.finished and r.log))),
        "## How it was run",
        "\n".join(lines),
    )


def distance(group: pd.DataFrame, result: paper.Result) -> float:
    """Returns how far the mean losses are from the paper's."""
    return math.hypot(*_differences(group, result))


def _differences(group, result) -> list[float]:
    return [group[name].mean() - getattr(result, name) for name in LOSSES]


def _section(model, result: paper.Result, groups: Sequence[pd.DataFrame]) -> str:
    theirs = [f"{getattr(result, name):.2f}" for name in LOSSES]
    rows = [["paper", "", "", "1", *theirs, "", "", ""]]
    own = [group for group in groups if run_of(group).settings.preset == model]
    for group in sorted(own, key=lambda group: distance(group, result)):
        run = run_of(group)
        rows.append(
            [
                plain(run.label),
                plain(run.manifest.text),
                group["departures"].iloc[0] or "nothing",
                str(len(group)),
                *(cell(group, name, 3) for name in LOSSES),
                *(f"{each:+.3f}" for each in _differences(group, result)),
                f"{distance(group, result):.3f}",
            ]
        )
    return f"## {model}\n\n{markdown(HEAD, rows, names=3)}"
