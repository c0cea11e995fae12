"""Language models on one side of a text: loss and perplexity a token."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reprt.lab.pages.frame import by_settings, spread
from reprt.lab.pages.provenance import left_out, started
from reprt.lab.pages.runs import Run, notes, read_runs
from reprt.lab.pages.tables import markdown, plain, write_filled
from reprt.lab.recipe import PageSettings

HEAD = (
    "model | looks ahead | seeds | parameters | teacher-forced, validation | prefix, "
    "validation | prefix, test | perplexity, teacher-forced | perplexity, prefix"
).split(" | ")
FORCED, PREFIX, TEST = (
    "val_loss_per_token",
    "val_prefix_loss_per_token",
    "test_prefix_loss_per_token",
)


def write_language_model(folder: Path, settings: PageSettings, out: Path) -> Path:
    """Writes `language_model.md` on the runs on one text."""
    runs = read_runs(folder)
    finished = [run for run in runs if run.metrics and run.log]
    return write_filled(
        out / "language_model.md",
        text=plain(runs[0].text),
        notes=notes(folder),
        table=_table(finished),
        unfinished=left_out("Not finished", (r for r in runs if r not in finished)),
        started=started(
            (f"**{plain(run.label)}**, run `{run.name}`", [run]) for run in finished
        ),
    )


def _table(runs: Sequence[Run]) -> str:
    """A row for each model, the best prefix loss first."""
    rows = []
    groups = by_settings(runs)
    groups.sort(key=lambda group: group.table[PREFIX].mean())
    for group in groups:
        cells = [group.cell(name, 3) for name in (FORCED, PREFIX, TEST)]
        rows.append(
            [
                plain(group.run.label),
                group.ahead,
                str(len(group.table)),
                group.cell("parameters", 0),
                *cells,
                *(spread(np.exp(group.table[name]), 1) for name in (FORCED, PREFIX)),
            ]
        )
    return markdown(HEAD, rows, "ll")
