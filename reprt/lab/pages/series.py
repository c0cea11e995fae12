"""Runs that differ by their seeds alone, and what they are called together."""

import collections
import dataclasses
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from reprt.analysis.cost import Cost
from reprt.lab.pages.runs import NO_DEPARTURES, Run
from reprt.lab.records import RunFolderError
from reprt.training.settings import SHOWN_AS, differing, flat

NOT_RUN = "not run"
# Okabe and Ito's colours, which the colour-blind can tell apart, without yellow.
PALETTE = "#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #000000".split()


@dataclasses.dataclass(frozen=True)
class Series:
    """Runs that differ by their seeds alone."""

    runs: Sequence[Run]

    @property
    def name(self) -> str:
        """Its runs' name without the seed."""
        return self.runs[0].name.removesuffix(f".{self.runs[0].seed}")

    @property
    def model(self) -> str:
        return self.runs[0].model

    @property
    def label(self) -> str:
        return self.runs[0].label

    @property
    def colour(self) -> str | None:
        return self.runs[0].colour

    @property
    def reference(self) -> bool:
        return self.runs[0].reference

    @property
    def schedule(self) -> str:
        return self.runs[0].schedule

    @property
    def schedule_dim(self) -> int | None:
        return self.runs[0].schedule_dim

    @property
    def rate(self) -> str:
        return self.runs[0].rate

    @property
    def whole_schedule(self) -> dict[str, Any]:
        """Its settings; the paper's m is there even where it is the model's own."""
        return {**self.runs[0].settings["schedule"], "dim": self.schedule_dim}

    @property
    def looks_ahead(self) -> bool:
        return self.runs[0].looks_ahead

    @property
    def departures(self) -> Sequence[str]:
        return self.runs[0].departures

    @property
    def cost(self) -> Cost | None:
        """The mean over its runs; None if the results of one do not tell."""
        if not all(run.cost for run in self.runs):
            return None
        return Cost(*(self.mean(each.name) for each in dataclasses.fields(Cost)))

    @property
    def finished(self) -> bool:
        return all(run.metrics is not None for run in self.runs)

    def values(self, name: str) -> list[float]:
        """Returns the number of each run that has it, as `Run.numbers` names it."""
        numbers = [run.numbers for run in self.runs]
        return [each[name] for each in numbers if name in each]

    def mean(self, name: str) -> float:
        return statistics.mean(self.values(name))

    def deviation(self, name: str) -> float | None:
        """Returns the standard deviation, if there are several numbers."""
        values = self.values(name)
        return statistics.stdev(values) if values[1:] else None

    def differences(self, other: "Series", name: str) -> list[float]:
        """Returns, of each seed that both have, the difference of a number."""
        ours, others = (
            {run.seed: run.numbers[name] for run in each.runs if name in run.numbers}
            for each in (self, other)
        )
        return [ours[seed] - others[seed] for seed in ours if seed in others]

    def cell(self, name: str, digits: int) -> str:
        """Mean and standard deviation, as a table has them."""
        values = self.values(name)
        if not values:
            return NOT_RUN
        # Parameters are the settings' doing, and not the seeds'.
        same = name == "parameters"
        return with_spread([self.mean(name)] if same else values, digits)


def drawn(series: Sequence[Series]) -> dict[str, str]:
    """Returns the colours of the models that a picture shows, by their names.

    They are those to which the recipe gives a colour. Where it gives none, they are the
    first ones, as many as can be told apart.
    """
    given = {each.model: each.colour for each in series if each.colour}
    models = dict.fromkeys(each.model for each in series)
    return given or dict(zip(models, PALETTE))


def rate_names(series: Sequence[Series]) -> dict[tuple[str, str], str]:
    """Returns what tables call the rate of each series, by model and schedule.

    Where a model has two schedules whose rates read alike, for they differ in the
    warm-up or the like, the schedule's name stands behind the rate.
    """
    models = collections.Counter((each.model, each.rate) for each in series)
    alike = {rate for (_, rate), count in models.items() if count > 1}
    return {
        (each.model, each.schedule): (
            f"{each.rate}, {each.schedule}" if each.rate in alike else each.rate
        )
        for each in series
    }


def with_spread(values: Sequence[float], digits: int, sign: str = "") -> str:
    """Returns the mean of numbers and, of several, their standard deviation.

    Args:
        values: one number or more.
        digits: after the point.
        sign: the mean's, as in a format: `"+"` writes that of positive numbers too.

    Example:

    >>> with_spread([1.0, 2.0], 2, "+"), with_spread([1200.0], 0)
    ('+1.50 ± 0.71', '1,200')
    """
    spread = f" ± {statistics.stdev(values):,.{digits}f}" if values[1:] else ""
    return f"{statistics.mean(values):{sign},.{digits}f}{spread}"


def by_schedule(runs: Sequence[Run]) -> list[Series]:
    """Returns the runs of each model and schedule together, by their names.

    Raises:
        RunFolderError: if such runs differ by more than their seeds.
    """
    runs = sorted(runs, key=lambda run: run.name)
    found = _grouped(runs, lambda run: (run.model, run.schedule))
    for series in found:
        first, *others = series.runs
        for run in others:
            names = differing(
                flat(first.settings),
                flat(run.settings),
                {"name", *SHOWN_AS, *NO_DEPARTURES},
            )
            if names:
                raise RunFolderError(
                    f"Expected {first.name} and {run.name} to differ by their seeds "
                    f"alone. Received runs that differ in {', '.join(names)}."
                )
    return found


def by_settings(runs: Sequence[Run]) -> list[Series]:
    """Returns runs that differ by their seeds alone together, the paper's own first."""
    series = _grouped(runs, lambda run: (run.model, *run.departures))
    return sorted(series, key=lambda each: len(each.departures))


def _grouped(runs: Sequence[Run], key: Callable[[Run], tuple]) -> list[Series]:
    found: dict[tuple, list[Run]] = {}
    for run in runs:
        found.setdefault(key(run), []).append(run)
    return [Series(each) for each in found.values()]
