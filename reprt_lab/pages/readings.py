"""Which reading of the paper comes nearest to the numbers that it reports.

A reading is a set of settings for both models. Settings go by the names that departures
have, such as `"model.table"`; to these come m, as `"schedule.dim"`, and the text.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from reprt_lab import paper
from reprt_lab.pages.frame import Group, by_settings, spread
from reprt_lab.pages.tables import markdown, plain
from reprt_lab.records import Run

LABELS = {"baseline": "baseline", "repe": "RePE"}
LOSSES = {"train_loss": "training", "val_loss": "validation"}
HEAD = (
    "model | text | what departs from this package's defaults | seeds | "
    "training loss | validation loss | training − paper | validation − paper | distance"
).split(" | ")
M, TEXT, PADDING = "schedule.dim", "text", "model.padding_in_statistics"
# Settings that make no difference to the other model.
OF_ONE_MODEL = {
    "baseline": ["model.scale"],
    "repe": [PADDING, "model.dropout_places"],
}
# What a reading's m is called, by those of the baseline and of RePE.
SCHEDULES = {
    ("128", "128"): "128",
    ("64", "64"): "64",
    ("128", "64"): "eq. 15's",
}


def page_values(
    texts: Sequence[Sequence[Run]], settings, out: Path
) -> dict[str, str]:
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
    results = paper.TABLE_1[pairs[0]]
    of_models = {
        model: [group for group in groups if group.run.settings.preset == model]
        for model in results
    }
    foreign = {
        plain(run.text) for run in runs if not run.manifest.official_text
    }
    sections = [
        _section(model, results[model], groups)
        for model, groups in of_models.items()
    ]
    return {
        "pair": pairs[0],
        "foreign": ", ".join(sorted(foreign)),
        "readings": _readings(of_models, results),
        "changes": _changes(of_models, plain(texts[0][0].text)),
        "sections": "\n\n".join(sections),
    }


def _chosen(group: Group) -> dict[str, str]:
    """The settings of a run by their names: departures, m and the text."""
    chosen = dict(each.split(" = ", 1) for each in group.run.departures)
    chosen[M] = str(group.run.settings.schedule_dim)
    chosen[TEXT] = plain(group.run.text)
    return chosen


def _shared(model: str, group: Group) -> dict[str, str]:
    """The settings that the other model must have as well in the same reading."""
    other = [M, *OF_ONE_MODEL[model]]
    return {name: v for name, v in _chosen(group).items() if name not in other}


def _said(chosen: Mapping[str, str]) -> str:
    """Settings but for m and the text, as a cell has them."""
    names = [name for name in chosen if name not in (M, TEXT)]
    return ", ".join(f"{name} = {chosen[name]}" for name in names) or "nothing"


def _gaps(group: Group, result: Mapping[str, float]) -> dict[str, float]:
    return {name: group.table[name].mean() - result[name] for name in LOSSES}


def _readings(of_models, results) -> str:
    """The readings of which both models were run, the nearest first."""
    rows = []
    for baseline, repe in itertools.product(
        of_models["baseline"], of_models["repe"]
    ):
        chosen = _chosen(baseline), _chosen(repe)
        schedule = SCHEDULES.get((chosen[0][M], chosen[1][M]))
        same = _shared("baseline", baseline) == _shared("repe", repe)
        if schedule is None or not same:
            continue
        row = {
            "what departs from this package's defaults": _said(
                chosen[0] | chosen[1]
            ),
            "text": chosen[0][TEXT],
            "m": schedule,
            "seeds": f"{len(baseline.table)} and {len(repe.table)}",
        }
        distances = []
        for model, group in (("baseline", baseline), ("repe", repe)):
            gaps = _gaps(group, results[model])
            for name, kind in LOSSES.items():
                row[f"{LABELS[model]}, {kind} − paper"] = f"{gaps[name]:+.3f}"
                distances.append(abs(gaps[name]))
        largest = max(distances)
        row["largest distance"] = f"{largest:.3f}"
        rows.append((largest, sum(distances), row))
    rows.sort(key=lambda each: each[:2])
    return markdown([row for *_, row in rows], "lll")


def _changes(of_models, usual_text: str) -> str:
    """What one setting changes, where all else is as in the runs without a change."""
    pairs = itertools.product(LABELS.values(), LOSSES.values())
    cells = [f"{label}, {kind}" for label, kind in pairs]
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for model, label in LABELS.items():
        for base, group in itertools.permutations(of_models[model], 2):
            before, after = _chosen(base), _chosen(group)
            names = [
                n for n in {**before, **after} if before.get(n) != after.get(n)
            ]
            if len(names) != 1 or not _unchanged(model, before, usual_text):
                continue
            if names == [M] and int(after[M]) > int(before[M]):
                continue  # the way back of a change that has its row
            key = _change(names[0], before, after)
            row = rows.setdefault(
                key, dict.fromkeys(["change", "m", *cells], "–")
            )
            row["change"], row["m"] = key
            for name, kind in LOSSES.items():
                differences = group.differences(base, name)
                row[f"{label}, {kind}"] = spread(differences, 3, "+")
    return markdown([rows[key] for key in sorted(rows)], "l")


def _unchanged(model: str, chosen: Mapping[str, str], usual_text: str) -> bool:
    """Whether a model is without a change; RePE's padding counts."""
    departures = {name for name in chosen if name not in (M, TEXT)}
    usual = {PADDING} if model == "repe" else set()
    return departures == usual and chosen[TEXT] == usual_text


def _change(name: str, before: Mapping[str, str], after: Mapping[str, str]):
    """What a change of one setting is called, and the m at which it is made."""
    if name == M:
        return f"m = {after[M]} instead of {before[M]}", "–"
    if name == TEXT:
        return after[TEXT], before[M]
    if name not in after:
        return f"without {name} = {before[name]}", before[M]
    return f"{name} = {after[name]}", before[M]


def _section(
    model: str, result: Mapping[str, float], groups: Sequence[Group]
) -> str:
    """One model's readings, the nearest to the paper's two losses first."""
    rows = []
    for group in groups:
        gaps = _gaps(group, result)
        distance = math.hypot(*gaps.values())
        cells = [
            plain(group.run.label),
            plain(group.run.text),
            ", ".join(group.run.departures) or "nothing",
            str(len(group.table)),
            *(group.cell(name, 3) for name in LOSSES),
            *(f"{gap:+.3f}" for gap in gaps.values()),
            f"{distance:.3f}",
        ]
        rows.append((distance, cells))
    rows.sort(key=lambda row: row[0])
    theirs = [f"{result[name]:.2f}" for name in LOSSES]
    first = ["paper", "", "", "1", *theirs, "", "", ""]
    lines = [dict(zip(HEAD, cells)) for cells in (first, *(c for _, c in rows))]
    return f"## {model}\n\n{markdown(lines, 'lll')}"
