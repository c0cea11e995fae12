"""One table of runs, and what pages compute of it: means, spreads, differences by seed.

A group is the part of the table with the runs that differ by their seeds only.
"""

from collections.abc import Iterable

import pandas as pd

from reprt.analysis.cost import COUNTED
from reprt.lab.pages.runs import Run
from reprt.lab.records import RunFolderError

NOT_RUN, NONE = "not run", "–"
KEYS = "name text model label schedule seed rate looks_ahead departures run".split()
NUMBERS = (
    "epochs",
    "train_loss",
    "val_loss",
    "train_loss_per_token",
    "val_loss_per_token",
    "val_prefix_loss_per_token",
    "test_prefix_loss_per_token",
    "test_bleu",
    "test_chrf",
    "seconds_an_epoch",
    "tokens_per_second",
    "peak_memory_bytes",
    *COUNTED,
    "train_seconds",
)


def runs_table(runs: Iterable[Run]) -> pd.DataFrame:
    """Returns a row a run: `KEYS`, and `NUMBERS`, which are NaN if not measured.

    Where a model has two schedules whose rates read alike, for they differ in the
    warm-up or the like, the schedule's name stands behind the rate.
    """
    rows = [
        {
            **run.numbers,
            **{key: getattr(run, key) for key in ("name", "model", "label", "seed")},
            "schedule": run.schedule,
            "rate": run.rate,
            "text": run.manifest.text,
            "looks_ahead": run.manifest.looks_ahead,
            "departures": ", ".join(run.settings.departures),
            "run": run,
        }
        for run in runs
    ]
    table = pd.DataFrame(rows, columns=[*KEYS, *NUMBERS]).sort_values("name")
    schedules = table.groupby(["model", "rate"])["schedule"].nunique()
    alike = {rate for (_, rate), count in schedules.items() if count > 1}
    longer = table["rate"] + ", " + table["schedule"]
    return table.assign(rate=table["rate"].where(~table["rate"].isin(alike), longer))


def by_schedule(table: pd.DataFrame) -> list[pd.DataFrame]:
    """Returns a group for each model and schedule, by their names.

    Raises:
        RunFolderError: if runs of one differ by more than their seeds.
    """
    groups = [group for _, group in table.groupby(["model", "schedule"], sort=False)]
    for group in groups:
        first = run_of(group)
        others = group[group["departures"] != ", ".join(first.settings.departures)]
        if len(others):
            one, other = first.settings, run_of(others).settings
            differing = sorted({*one.departures} ^ {*other.departures})
            raise RunFolderError(
                f"Expected {one.name} and {other.name} to differ by their seeds only. "
                f"Received runs that differ in {', '.join(differing)}."
            )
    return groups


def by_settings(table: pd.DataFrame) -> list[pd.DataFrame]:
    """Returns a group for each model and its departures, the paper's own first."""
    groups = table.groupby(["model", "departures"], sort=False)
    return sorted(
        (group for _, group in groups),
        key=lambda group: len(run_of(group).settings.departures),
    )


def run_of(group: pd.DataFrame) -> Run:
    """Returns the first run of a group, which tells what all of them have."""
    return group["run"].iloc[0]


def spread(values: Iterable[float], digits: int, sign: str = "") -> str:
    """Returns the mean of numbers and, of several, their standard deviation.

    Args:
        values: the numbers; those that are NaN do not count.
        digits: after the point.
        sign: the mean's, as in a format: `"+"` writes that of positive numbers too.

    Example:

    >>> spread([1.0, 2.0], 2, "+"), spread([1200.0], 0), spread([], 2)
    ('+1.50 ± 0.71', '1,200', 'not run')
    """
    numbers = pd.Series(values, dtype=float).dropna()
    if numbers.empty:
        return NOT_RUN
    deviation = f" ± {numbers.std():,.{digits}f}" if len(numbers) > 1 else ""
    return f"{numbers.mean():{sign},.{digits}f}{deviation}"


def cell(group: pd.DataFrame, name: str, digits: int) -> str:
    """Returns the mean of a number and its standard deviation, as a table has them."""
    values = group[name]
    # Parameters are the settings' doing, and not the seeds'.
    return spread(values[:1] if name == "parameters" else values, digits)


def differences(group: pd.DataFrame, other: pd.DataFrame, name: str) -> pd.Series:
    """Returns, of each seed that both have, the difference of a number."""
    ours, theirs = (each.set_index("seed")[name] for each in (group, other))
    return (ours - theirs).dropna()
