"""One table of runs, and what pages compute of it: means, spreads, differences."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import pandas as pd

from reprt.analysis.cost import COUNTED
from reprt.analysis.scores import METRICS, shown_on
from reprt_lab.pages.tables import markdown, plain
from reprt_lab.paper import LABELS
from reprt_lab.records import Run

KEYS = "name text model label schedule seed rate looks_ahead".split()
SETTINGS = [
    "preset",
    "departures",
]  # which together tell all that decides a run
NUMBERS = (
    *(
        "epochs",
        "train_loss",
        "train_loss_per_token",
        "val_loss",
        "val_loss_per_token",
    ),
    *("val_prefix_loss_per_token", "test_prefix_loss_per_token"),
    *(metric.key for metric in METRICS),
    *("peak_memory_bytes", *COUNTED),
    *("train_seconds", "seconds_an_epoch", "tokens_per_second"),
)


class Group(NamedTuple):
    """Runs that differ by their seeds only: the first, and the rows of all."""

    run: Run
    table: pd.DataFrame

    @property
    def rate(self) -> str:
        return self.table["rate"].iloc[0]

    @property
    def head(self) -> dict[str, str]:
        """The first cells of its line in tables of trials."""
        ahead = "**yes**" if self.run.looks_ahead else "no"
        seeds = str(len(self.table))
        return {
            "model": plain(self.run.label),
            "looks ahead": ahead,
            "seeds": seeds,
        }

    def cell(self, name: str, digits: int) -> str:
        values = self.table[name]
        # Settings decide the parameters, and seeds do not.
        return spread(values[:1] if name == "parameters" else values, digits)

    def differences(self, other: "Group | None", name: str) -> pd.Series:
        """Returns the difference of a number for each seed that both groups have."""
        if other is None or other is self:
            return pd.Series(dtype=float)
        ours, theirs = (
            each.table.set_index("seed")[name] for each in (self, other)
        )
        return (ours - theirs).dropna()


# Makes a cell of a group and of the group that others are compared with.
Column = Callable[[Group, Group | None], str]


def mean(name: str, digits: int) -> Column:
    """Returns the column of a number: its mean over the seeds and their deviation."""

    def cell(group, reference):
        return group.cell(name, digits)

    return cell


def scores_of(page: str, head: str = "{}") -> dict[str, Column]:
    """Returns a column for each metric that a page shows, by its head."""
    return {
        head.format(metric.name): mean(metric.key, metric.pages[page])
        for metric in shown_on(page)
    }


def difference(name: str, digits: int, bold: bool = False) -> Column:
    """Returns the column of a number's difference from the reference's, by seed.

    With `bold`, it is bold where it is larger than twice its standard deviation.
    """

    def cell(group, reference):
        differences = group.differences(reference, name)
        text = spread(differences, digits, "+")
        large = abs(differences.mean()) > 2 * differences.std()
        return f"**{text}**" if bold and large else text

    return cell


def groups_table(
    groups: Iterable[Group],
    columns: Mapping[str, Column],
    reference: Group | None = None,
) -> str:
    """Returns a table with a line for each group, by the heads of its columns."""
    lines = []
    for group in groups:
        line = group.head
        for head, column in columns.items():
            line[head] = column(group, reference)
        lines.append(line)
    return markdown(lines, "ll")


def runs_table(runs: Iterable[Run]) -> pd.DataFrame:
    """Returns a row a run: `KEYS`, the run, and `NUMBERS`, NaN where not measured.

    Where two schedules of a model have the same rate, and differ in the warm-up or the
    like, the schedule's name stands behind the rate.
    """
    rows = [
        {
            **run.numbers,
            **{key: getattr(run, key) for key in KEYS},
            "preset": run.settings.preset,
            "departures": ", ".join(run.settings.departures),
            "run": run,
        }
        for run in runs
    ]
    columns = [*KEYS, *SETTINGS, "run", *NUMBERS]
    table = pd.DataFrame(rows, columns=columns).sort_values("name")
    # MODEL and MODEL.SEED of the same settings and seed are one run.
    table = table.drop_duplicates(["text", "model", "seed", *SETTINGS])
    schedules = table.groupby(["model", "rate"])["schedule"].nunique()
    alike = {rate for (_, rate), count in schedules.items() if count > 1}
    longer = table["rate"] + ", " + table["schedule"]
    return table.assign(
        rate=table["rate"].mask(table["rate"].isin(alike), longer)
    )


def as_csv(table: pd.DataFrame) -> str:
    """Returns a table for a file: what no run has is left out."""
    known = table.drop(columns=["preset", "run"]).dropna(axis=1, how="all")
    return known.convert_dtypes().to_csv(index=False, float_format="%.5f")


def grouped(table: pd.DataFrame, *by: str) -> list[Group]:
    """Returns a group for each model and value of columns, by the runs' names."""
    groups = table.groupby(["model", *by], sort=False)
    return [Group(rows["run"].iloc[0], rows) for _, rows in groups]


def by_settings(runs: Iterable[Run]) -> list[Group]:
    """Returns a group for each model and its departures, the paper's own first."""
    groups = grouped(runs_table(runs), *SETTINGS)
    return sorted(groups, key=_departures)


def _departures(group: Group) -> int:
    return len(group.run.settings.departures)


def nearest(groups: Iterable[Group]) -> dict[str, Group]:
    """Returns ours of the paper's two models, with the fewest departures."""
    found: dict[str, Group] = {}
    for group in sorted(groups, key=_departures):
        if group.run.settings.preset == group.run.model in LABELS:
            found.setdefault(group.run.model, group)
    return found


def by_schedule(table: pd.DataFrame) -> list[Group]:
    """Returns a group for each model and schedule; all else must be the same."""
    groups = grouped(table, "schedule")
    for one, rows in groups:
        for other in rows["run"]:
            both = (
                {s.preset, *s.departures}
                for s in (one.settings, other.settings)
            )
            if differing := set.symmetric_difference(*both):
                raise ValueError(
                    f"Expected {one.name} and {other.name} to differ by their seeds "
                    f"only. Received other settings: {', '.join(sorted(differing))}."
                )
    return groups


def spread(values: Iterable[float], digits: int, sign: str = "") -> str:
    """Returns the mean of numbers and, of several, their standard deviation."""
    numbers = pd.Series(values, dtype=float).dropna()
    if numbers.empty:
        return "–" if sign else "not run"
    deviation = f" ± {numbers.std():,.{digits}f}" if len(numbers) > 1 else ""
    return f"{numbers.mean():{sign},.{digits}f}{deviation}"
