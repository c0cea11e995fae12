"""Which reading of the paper comes nearest to the numbers that it reports."""

import math
from collections.abc import Sequence
from pathlib import Path

from reprt import paper
from reprt.files import write_text
from reprt.reports.escaping import code, in_markdown
from reprt.reports.files import notes
from reprt.reports.provenance import left_out_lines, provenance_lines
from reprt.reports.runs import read_texts
from reprt.reports.series import Series, by_settings
from reprt.reports.tables import markdown
from reprt.runs.records import RunFolderError

LOSSES = ("train_loss", "val_loss")
HEAD = (
    "model | text | what departs from this package's defaults | seeds | "
    "training loss | validation loss | training − paper | validation − paper | distance"
).split(" | ")


def write_readings(folder: Path, out: Path | None = None) -> Path:
    """Writes `readings.md` from runs on one pair, each a reading of the paper.

    A file `notes.md` in the folder becomes part of the page.

    Args:
        folder: a folder with runs, or with a folder of them for each form of the text.
        out: where the page goes; None for the same folder.

    Returns:
        The path of the page.

    Raises:
        RunFolderError: if there is no run, or the paper has no such pair.
    """
    texts = read_texts(folder)
    runs = [run for text in texts for run in text]
    pairs = sorted({run.settings["text"]["pair"] for run in runs})
    if len(pairs) > 1 or pairs[0] not in paper.TABLE_1:
        raise RunFolderError(
            "Expected runs on one pair of Table 1. Received, in "
            f"{folder}: {', '.join(pairs)}."
        )
    finished = [[run for run in text if run.metrics and run.log] for text in texts]
    series = [each for text in finished for each in by_settings(text)]
    unfinished = [run for run in runs if not (run.metrics and run.log)]
    others = sorted(
        {run.manifest["text"] for run in runs if not run.manifest["official_text"]}
    )
    named = ", ".join(map(in_markdown, others))
    warning = [f"> **Not comparable with the paper:** {named}.", ""]
    lines = [
        f"# Readings of the paper: {pairs[0]}",
        "",
        *(warning if others else []),
        "The paper leaves some things open, and this page tries them. Losses are "
        "teacher-forced, as Keras reports them, after the last epoch. The distance is "
        "that of both losses from the paper's two, in nats. The nearest comes first.",
        "",
        *notes(folder),
    ]
    for model, result in paper.TABLE_1[pairs[0]].items():
        own = [each for each in series if each.runs[0].preset == model]
        lines += _table(model, result, own)
    lines += [*left_out_lines("Not finished", unfinished), "## How it was run", ""]
    for each in series:
        for run in each.runs:
            text = in_markdown(run.manifest["text"])
            lines.append(f"- **{run.label}**, run {code(run.name)}, on {text}")
            lines += [f"  - {line}" for line in provenance_lines(run)]
    page = (out or folder) / "readings.md"
    write_text(page, "\n".join([*lines, ""]))
    return page


def distance(series: Series, result: paper.Result) -> float:
    """Returns how far the mean losses are from the paper's."""
    return math.hypot(
        *(series.mean(name) - getattr(result, name) for name in LOSSES)
    )


def _table(model, result, series: Sequence[Series]) -> list[str]:
    theirs = [f"{result.train_loss:.2f}", f"{result.val_loss:.2f}"]
    rows = [["paper", "", "", "1", *theirs, "", "", ""]]
    for each in sorted(series, key=lambda each: distance(each, result)):
        differences = [each.mean(name) - getattr(result, name) for name in LOSSES]
        rows.append(
            [
                each.label,
                in_markdown(each.runs[0].manifest["text"]),
                ", ".join(each.departures) or "nothing",
                str(len(each.runs)),
                *(each.cell(name, 3) for name in LOSSES),
                *(f"{difference:+.3f}" for difference in differences),
                f"{distance(each, result):.3f}",
            ]
        )
    return [f"## {model}", "", *markdown(HEAD, "lllrrrrrr", rows), ""]
