"""Which reading of the paper comes nearest to the numbers that it reports.

A reading of a model is what departs from this package's defaults, and the text.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from reprt_lab import paper
from reprt_lab.pages.frame import (
    Group,
    cells,
    corpus,
    departures,
    difference,
    gap,
    group_by_settings,
    group_of_paper,
    label,
    mean,
    seeds,
)
from reprt_lab.pages.tables import NONE, markdown, plain
from reprt_lab.records import Run

LOSSES = ("train_loss", "val_loss")
# The schedule's m by eq. 15, of the baseline and of RePE.
EQ_15 = (128, 64)
# Choices that the baseline does not have.
OF_REPE_ALONE = ("model.padding_in_statistics", "model.dropout_places")


def distance(group) -> float:
    """Returns the larger of the distances of both losses from the reference's."""
    gaps = np.subtract(_losses(group), _losses(group.reference))
    return np.abs(gaps).max()


def _losses(group) -> list[float]:
    return [group.mean(name) for name in LOSSES]


def _distance(group: Group) -> str:
    return f"{distance(group):.3f}"


PAPER_COLUMNS = {
    "model": lambda group: "paper",
    "training loss": mean("train_loss", 2),
    "validation loss": mean("val_loss", 2),
}
COLUMNS = {
    "model": label,
    "text": corpus,
    "what departs from this package's defaults": departures,
    "seeds": seeds,
    "training loss": mean("train_loss", 3),
    "validation loss": mean("val_loss", 3),
    "training − paper": gap("train_loss", 3),
    "validation − paper": gap("val_loss", 3),
    "distance": _distance,
}
CHANGES = {
    "training loss": difference("train_loss", 3),
    "validation loss": difference("val_loss", 3),
}


def page_values(texts, settings, out):
    pairs = sorted({runs[0].pair for runs in texts})
    pair = pairs[0]
    if len(pairs) > 1 or pair not in paper.TABLE_1:
        raise ValueError(
            "Expected runs on one pair of Table 1. Received: "
            f"{', '.join(pairs)}."
        )
    usual_text = texts[0][0].text
    models = readings_of_each(texts, pair)
    sections, changes = [], []
    for model, readings in models.items():
        section = _section(readings, group_of_paper(pair, model))
        sections.append(f"## {paper.LABELS[model]}\n\n{section}")
        changes += _changes(readings, usual_text)
    both = readings_of_both(models, usual_text)
    return {
        "pair": pair,
        "both": markdown(both, 4),
        "changes": markdown(changes, 3),
        "sections": "\n\n".join(sections),
    }


def readings_of_each(
    texts: Iterable[Sequence[Run]],
    pair: str,
) -> dict[str, list[Group]]:
    """Returns the readings of each model; the reference is the paper's losses."""
    models: dict[str, list[Group]] = {model: [] for model in paper.LABELS}
    for runs in texts:
        for group in group_by_settings(run for run in runs if run.finished):
            model = group.run.settings.preset
            if model not in models:
                continue
            reference = group_of_paper(pair, model)
            models[model].append(group._replace(reference=reference))
    return models


def _section(readings: Sequence[Group], paper_group) -> str:
    """One model's readings, the nearest to the paper's two losses first."""
    rows = []
    for group in sorted(readings, key=distance):
        rows.append(cells(group, COLUMNS, paper_group))
    return markdown([*rows, cells(paper_group, PAPER_COLUMNS)], 3)


def readings_of_both(
    models: Mapping[str, Sequence[Group]],
    usual_text: str,
) -> list[dict[str, str]]:
    """Returns a row for each reading that both models were run with, by distance.

    RePE's own choices apart, both models have the same. So is the schedule's m, unless
    it is that of eq. 15.
    """
    rows = []
    for baseline, repe in itertools.product(*models.values()):
        m = baseline.run.settings.schedule_dim
        repe_m = repe.run.settings.schedule_dim
        shared = _without_schedule(_choices(baseline, usual_text))
        choices = _without_schedule(_choices(repe, usual_text))
        alone = {
            choice for choice in choices if choice.startswith(OF_REPE_ALONE)
        }
        if shared != choices - alone or (repe_m != m and (m, repe_m) != EQ_15):
            continue
        largest = max(distance(baseline), distance(repe))
        row = {
            "both models": ", ".join(sorted(shared)) or NONE,
            "RePE alone": ", ".join(sorted(alone)) or NONE,
            "m": str(m) if m == repe_m else f"{m}, RePE {repe_m}",
            "seeds": str(min(len(baseline.table), len(repe.table))),
            "baseline": _point(baseline),
            "RePE": _point(repe),
            "largest distance": f"{largest:.3f}",
        }
        rows.append(row)
    return sorted(rows, key=lambda row: float(row["largest distance"]))


def _without_schedule(choices: set[str]) -> set[str]:
    return {
        choice for choice in choices if not choice.startswith("schedule.dim")
    }


def _point(group: Group) -> str:
    return " / ".join(f"{loss:.3f}" for loss in _losses(group))


def _changes(
    readings: Sequence[Group],
    usual_text: str,
) -> list[dict[str, str]]:
    """What a single choice changes, beside the other choices that both have."""
    rows = []
    for base, group in itertools.permutations(readings, 2):
        shared = _choices(base, usual_text)
        choices = _choices(group, usual_text)
        if shared < choices and len(choices) == len(shared) + 1:
            row = {
                "preset": group.run.settings.preset,
                "change": ", ".join(choices - shared),
                "beside": ", ".join(sorted(shared)) or "nothing",
            }
            rows.append(row | cells(group, CHANGES, base))
    return sorted(rows, key=lambda row: row["change"])


def _choices(group: Group, usual_text: str) -> set[str]:
    """What a reading departs in, its text included."""
    choices = {*group.run.departures}
    if group.run.text != usual_text:
        choices.add(plain(group.run.text))
    return choices
