"""Which reading of the paper comes nearest to the numbers that it reports."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from reprt.lab import paper
from reprt.lab.pages.frame import Group, by_settings
from reprt.lab.pages.tables import markdown, plain
from reprt.lab.records import Run

LOSSES = ("train_loss", "val_loss")
HEAD = (
    "model | text | what departs from this package's defaults | seeds | "
    "training loss | validation loss | training − paper | validation − paper | distance"
).split(" | ")


def page_values(texts: Sequence[Sequence[Run]], settings, out: Path) -> dict[str, str]:
    runs = [run for text in texts for run in text]
    pairs = sorted({run.pair for run in runs})
    if len(pairs) > 1 or pairs[0] not in paper.TABLE_1:
        raise ValueError(
            f"Expected runs on one pair of Table 1. Received: {', '.join(pairs)}."
        )
    groups = [
        group
        for text in texts
        for group in by_settings(run for run in text if run.finished)
    ]
    foreign = {plain(run.text) for run in runs if not run.manifest.official_text}
    results = paper.TABLE_1[pairs[0]].items()
    return {
        "pair": pairs[0],
        "foreign": ", ".join(sorted(foreign)),
        "sections": "\n\n".join(_section(*result, groups) for result in results),
    }


def _section(model: str, result: Mapping[str, float], groups: Sequence[Group]) -> str:
    rows = []
    for group in (each for each in groups if each.run.settings.preset == model):
        gaps = [group.table[n].mean() - result[n] for n in LOSSES]
        cells = [
            plain(group.run.label),
            plain(group.run.text),
            ", ".join(group.run.departures) or "nothing",
            str(len(group.table)),
            *(group.cell(name, 3) for name in LOSSES),
            *(f"{gap:+.3f}" for gap in gaps),
            f"{math.hypot(*gaps):.3f}",
        ]
        rows.append((math.hypot(*gaps), cells))
    rows.sort(key=lambda row: row[0])
    theirs = [f"{result[name]:.2f}" for name in LOSSES]
    first = ["paper", "", "", "1", *theirs, "", "", ""]
    lines = [dict(zip(HEAD, cells)) for cells in (first, *(c for _, c in rows))]
    return f"## {model}\n\n{markdown(lines, 'lll')}"
