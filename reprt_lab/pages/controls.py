"""Pairs of models on each text: differences over the same seeds, and what they show."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from reprt_lab.pages.families import BLEU, LOSS, choose, measured
from reprt_lab.pages.frame import Group, runs_table
from reprt_lab.pages.tables import markdown, plain
from reprt_lab.records import Run

LEVEL = 0.95


class Comparison(NamedTuple):
    """Two models on one text."""

    text: str
    model: Group
    other: Group

    @property
    def losses(self) -> pd.Series:
        """The differences of the prefix loss on the test split, one for each seed."""
        return self.model.differences(self.other, LOSS)

    @property
    def p(self) -> float:
        """The p-value of these differences."""
        return p_value(self.losses)


def page_values(
    texts: Sequence[Sequence[Run]], settings, out: Path
) -> dict[str, str]:
    groups = {}
    for runs in texts:
        # Those that were trained on short sentences only are about lengths.
        whole = [run for run in runs if run.settings.text.train_tokens is None]
        groups[plain(runs[0].text)] = choose(
            runs_table(filter(measured, whole))
        )
    rows: list[dict[str, str]] = []
    for names in settings.comparisons:
        comparisons = _on_each_text(groups, *names)
        corrected = holm([each.p for each in comparisons])
        rows += map(_row, comparisons, corrected)
    return {"comparisons": markdown(rows, "lll"), "seeds": _seeds(groups)}


def _on_each_text(groups, model: str, other: str) -> list[Comparison]:
    """Compares two models on the texts on which both were run."""
    found = []
    for text, of_text in groups.items():
        by_name = {group.run.model: group for group in of_text}
        if model in by_name and other in by_name:
            found.append(Comparison(text, by_name[model], by_name[other]))
    return found


def _row(comparison: Comparison, corrected: float) -> dict[str, str]:
    losses = comparison.losses
    bleus = comparison.model.differences(comparison.other, BLEU)
    return {
        "model": plain(comparison.model.run.label),
        "against": plain(comparison.other.run.label),
        "text": comparison.text,
        "seeds": str(len(losses)),
        "prefix loss": _difference(losses, 3),
        "BLEU": _difference(bleus, 1),
        "p": _probability(comparison.p),
        "p, Holm over texts": _probability(corrected),
        "shows": verdict(losses),
    }


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """Returns the 95 % interval of the mean, by Student's t; NaN with less than two.

    >>> low, high = interval([0.1, 0.2, 0.3])
    >>> round(low, 3), round(high, 3)
    (-0.048, 0.448)
    """
    bounds = stats.ttest_1samp(differences, 0).confidence_interval(LEVEL)
    return float(bounds.low), float(bounds.high)


def p_value(differences: Sequence[float]) -> float:
    """Returns the p-value of Student's paired test; NaN with less than two seeds."""
    if len(differences) < 2:
        return math.nan
    return float(stats.ttest_1samp(differences, 0).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns p-values corrected for their number by Holm's method, in their order.

    NaN, of a comparison without a test, stays NaN and does not count.

    >>> holm([0.03, 0.01, 0.04])
    [0.06, 0.03, 0.06]
    """
    order = [n for n in np.argsort(p_values) if not np.isnan(p_values[n])]
    corrected, largest = [math.nan] * len(p_values), 0.0
    for rank, n in enumerate(order):
        largest = max(largest, (len(order) - rank) * p_values[n])
        corrected[n] = min(largest, 1.0)
    return corrected


def verdict(differences: Sequence[float]) -> str:
    """Returns what differences of losses show, by whether their interval has a 0."""
    if len(differences) < 2:
        return "not decided"
    low, high = interval(differences)
    if high < 0:
        return "a lower loss"
    return "a higher loss" if low > 0 else "not decided"


def _difference(differences: pd.Series, digits: int) -> str:
    """The mean and, of several seeds, its interval."""
    if differences.empty:
        return "not run"
    mean = f"{differences.mean():+.{digits}f}"
    if len(differences) < 2:
        return mean
    low, high = interval(differences)
    return f"{mean} [{low:+.{digits}f}, {high:+.{digits}f}]"


def _probability(p: float) -> str:
    if pd.isna(p):
        return "–"
    return f"{p:.3f}" if p >= 0.0005 else "below 0.001"


def _seeds(groups) -> str:
    """The losses and BLEU of each model on each text."""
    rows = [
        {
            "text": text,
            "model": plain(group.run.label),
            "rate": group.rate,
            "dropout": str(group.run.settings.model.dropout),
            "seeds": ", ".join(map(str, sorted(group.table["seed"]))),
            "prefix loss, test": group.cell(LOSS, 3),
            "BLEU": group.cell(BLEU, 1),
        }
        for text, of_text in groups.items()
        for group in of_text
    ]
    return markdown(rows, "ll")
