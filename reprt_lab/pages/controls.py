"""Pairs of models on each text: differences over the same seeds, and what they show."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from reprt_lab.pages.families import choose, has_results
from reprt_lab.pages.frame import (
    BLEU,
    LOSS,
    corpus,
    dropout,
    groups_table,
    label,
    mean,
    rate,
    runs_table,
    seeds,
    spread,
)
from reprt_lab.pages.positions import longest
from reprt_lab.pages.tables import markdown


def page_values(texts, settings, out):
    groups = []
    for runs in texts:
        # Runs that were trained on short sentences only are about lengths.
        whole = [
            run for run in runs if has_results(run) and longest(run) is None
        ]
        groups += choose(runs_table(whole))
    models = {}
    for group in groups:
        run = group.run
        # Runs on a text of one name may have other vocabularies.
        models[run.model, (run.text, run.manifest.hashes)] = group
    rows = []
    for name, *others in settings.comparisons:
        rows += _compare(models, name, others)
    return {
        "comparisons": markdown(rows, 3),
        "seeds": groups_table(groups, COLUMNS),
    }


def _compare(models, name: str, others: Sequence[str]) -> list[dict[str, str]]:
    """The rows of a model, one for each text on which one of the others was run."""
    rows, p_values = [], []
    for (model, text), group in models.items():
        rivals = [
            models[other, text] for other in others if (other, text) in models
        ]
        if model == name and rivals:
            against = rivals[0]
            losses = group.differences(against, LOSS)
            loss, p_value = difference_and_p_value(losses, 3)
            bleu, _ = difference_and_p_value(
                group.differences(against, BLEU), 1
            )
            row = {
                "model": label(group),
                "against": label(against),
                "text": corpus(group),
                "seeds": str(len(losses)),
                "prefix loss": loss,
                "BLEU": bleu,
            }
            rows.append(row)
            p_values.append(p_value)
    for row, p in zip(rows, holm(p_values)):
        if not math.isnan(p):
            row["p"] = f"{p:.3f}" if p >= 0.0005 else "below 0.001"
    return rows


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns p-values corrected for their number by Holm's method, in their order.

    NaN, of a comparison without a test, stays NaN and does not count.

    >>> holm([0.03, 0.01, 0.04])
    [0.06, 0.03, 0.06]
    """
    ascending = pd.Series(p_values, dtype=float).dropna().sort_values()
    tests = np.arange(len(ascending), 0, -1)
    corrected = (ascending * tests).cummax().clip(upper=1)
    return corrected.reindex(range(len(p_values))).tolist()


def difference_and_p_value(
    differences: pd.Series,
    digits: int,
) -> tuple[str, float]:
    """Returns a mean with its 95 % interval, and the p-value of Student's paired test.

    Less than two seeds have no interval, and NaN in the place of the p-value.

    >>> text, p_value = difference_and_p_value(pd.Series([0.1, 0.2, 0.3]), 3)
    >>> text, round(p_value, 3)
    ('+0.200 [-0.048, +0.448]', 0.074)
    """
    text = spread([differences.mean()], digits, "+")
    if len(differences) < 2:
        return text, math.nan
    test = stats.ttest_1samp(differences, 0)
    low, high = test.confidence_interval()
    interval = f"[{low:+.{digits}f}, {high:+.{digits}f}]"
    return f"{text} {interval}", float(test.pvalue)


COLUMNS = {
    "text": corpus,
    "model": label,
    "rate": rate,
    "dropout": dropout,
    "seeds": seeds,
    "prefix loss, test": mean(LOSS, 3),
    "BLEU": mean(BLEU, 1),
}
