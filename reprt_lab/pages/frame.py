"""One table of runs, and tables of groups: means, spreads and differences."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import pandas as pd

from reprt.analysis.cost import COST_FIELDS
from reprt.analysis.scores import METRICS, metrics_of_page
from reprt_lab import paper
from reprt_lab.pages.tables import NONE, markdown, plain
from reprt_lab.records import Run

# The numbers of runs that pages compare: losses a token, on the validation split
# teacher-forced and of prefixes, on the test split of prefixes; and BLEU.
FORCED = "val_loss_per_token"
PREFIX = "val_prefix_loss_per_token"
LOSS = "test_prefix_loss_per_token"
BLEU = "test_bleu"
WORDS = "name text model rate schedule seed settings run".split()
NUMBERS = [
    "epochs",
    "train_loss",
    "train_loss_per_token",
    "val_loss",
    FORCED,
    "val_prefix_loss",
    PREFIX,
    LOSS,
    *(metric.key for metric in METRICS),
    "peak_memory_bytes",
    *COST_FIELDS,
    "train_seconds",
    "devices",
    "seconds_an_epoch",
    "tokens_per_second",
]


class Group(NamedTuple):
    """Runs that differ by their seeds only, or the paper's numbers of a model."""

    label: str
    table: pd.DataFrame
    """A row a run; without runs where the numbers are the paper's."""
    reference: "Group | None" = None
    """What its columns compare it with."""

    @property
    def run(self) -> Run:
        """The first run."""
        return self.table["run"].iloc[0]

    @property
    def settings(self) -> str:
        """The preset and what departs from it."""
        return self.table["settings"].iloc[0]

    def mean(self, name: str) -> float:
        return self.table[name].mean()

    def cell(self, name: str, digits: int) -> str:
        return spread(self.table[name], digits)

    def differences(self, other: "Group | None", name: str) -> pd.Series:
        """Returns the difference of a number for each seed that both groups have."""
        if other is None or other.table is self.table:
            return pd.Series(dtype=float)
        numbers = self.table.set_index("seed")[name]
        other_numbers = other.table.set_index("seed")[name]
        return (numbers - other_numbers).dropna()


# Makes a cell of a group.
Column = Callable[[Group], str]


def label(group: Group) -> str:
    return plain(group.label)


def corpus(group: Group) -> str:
    return plain(group.run.text)


def looks_ahead(group: Group) -> str:
    return "**yes**" if group.run.looks_ahead else "no"


def seeds(group: Group) -> str:
    return str(len(group.table))


def rate(group: Group) -> str:
    return group.table["rate"].iloc[0]


def dropout(group: Group) -> str:
    return str(group.run.settings.model.dropout)


def departures(group: Group) -> str:
    return ", ".join(group.run.departures) or NONE


def epochs(group: Group) -> str:
    """The epochs of the runs, and whether they go on."""
    fewest, most = group.table["epochs"].min(), group.table["epochs"].max()
    text = str(most) if fewest == most else f"{fewest}–{most}"
    has_runs = "run" in group.table
    return f"{text} so far" if has_runs and not group.run.metrics else text


def parameters(group: Group) -> str:
    """The number of the first run, for seeds do not change it."""
    return spread(group.table["parameters"][:1], 0)


def mean(name: str, digits: int) -> Column:
    """Returns the column of a number: its mean over the seeds and their deviation."""

    def cell(group):
        return group.cell(name, digits)

    return cell


def difference(
    name: str,
    digits: int,
    bold: bool = False,
) -> Column:
    """Returns the column of a number's difference from the reference's, by seed.

    With `bold`, it is bold where it is larger than twice its standard deviation.
    """

    def cell(group):
        differences = group.differences(group.reference, name)
        text = spread(differences, digits, "+")
        large = abs(differences.mean()) > 2 * differences.std()
        return f"**{text}**" if bold and large else text

    return cell


def gap(name: str, digits: int) -> Column:
    """Returns the column of a mean's difference from the reference's mean."""

    def cell(group):
        if group.reference is None:
            return NONE
        distance = group.mean(name) - group.reference.mean(name)
        return f"{distance:+.{digits}f}"

    return cell


def scores_of(page: str) -> dict[str, Column]:
    """Returns a column for each metric that a page shows, by its name."""
    columns = {}
    for metric in metrics_of_page(page):
        columns[metric.name] = mean(metric.key, metric.pages[page])
    return columns


# The first columns of tables of trials.
TRIALS: dict[str, Column] = {
    "model": label,
    "looks ahead": looks_ahead,
    "seeds": seeds,
}


def cells(
    group: Group,
    columns: Mapping[str, Column],
    reference: Group | None = None,
) -> dict[str, str]:
    """Returns the cells of a group's line, by the heads of its columns."""
    group = group._replace(reference=reference)
    return {head: cell(group) for head, cell in columns.items()}


def groups_table(
    groups: Iterable[Group],
    columns: Mapping[str, Column],
    reference: Group | None = None,
    words: int = 2,
) -> str:
    """Returns a table with a line for each group; `words` is that of `markdown`."""
    rows = [cells(group, columns, reference) for group in groups]
    return markdown(rows, words)


def runs_table(runs: Iterable[Run]) -> pd.DataFrame:
    """Returns a row a run: `WORDS` and `NUMBERS`, NaN where not measured.

    Where two settings of a model have the same rate, and differ in the warm-up or the
    like, the schedule's name stands behind the rate.
    """
    rows = []
    for run in runs:
        row = {
            "name": run.name,
            "text": run.text,
            "model": run.model,
            "rate": run.rate,
            "schedule": run.schedule,
            "seed": run.seed,
            "settings": ", ".join(
                [run.settings.preset, *run.settings.departures]
            ),
            "devices": max(1, len(run.manifest.starts[-1].devices)),
            "run": run,
        }
        rows.append(run.numbers | row)
    table = pd.DataFrame(rows, columns=[*WORDS, *NUMBERS])
    # MODEL and MODEL.SEED of the same settings and seed are one run.
    table = table.drop_duplicates(["text", "model", "seed", "settings"])
    rate = table["rate"]
    settings = table.groupby(["model", "rate"])["settings"].transform("nunique")
    return table.assign(
        rate=rate.mask(settings > 1, rate + ", " + table["schedule"])
    )


def group_runs(table: pd.DataFrame) -> list[Group]:
    """Returns a group for each model and its settings, by the runs' names."""
    groups = []
    for _, rows in table.groupby(["model", "settings"], sort=False):
        groups.append(Group(rows["run"].iloc[0].label, rows))
    return groups


def group_by_settings(runs: Iterable[Run]) -> list[Group]:
    """Returns a group for each model and its settings, the paper's own first."""
    groups = group_runs(runs_table(runs))
    groups.sort(key=lambda group: len(group.run.settings.departures))
    return groups


def nearest_to_paper(runs: Iterable[Run]) -> dict[str, Group]:
    """Returns the runs of the paper's two models that have the fewest departures."""
    groups: dict[str, Group] = {}
    for group in group_by_settings(runs):
        model = group.run.model
        if model in paper.LABELS and model == group.run.settings.preset:
            groups.setdefault(model, group)
    return groups


def group_of(model: str | None, groups: Iterable[Group]) -> Group | None:
    """Returns the first group of a model, by its name in the recipe, or None."""
    for group in groups:
        if group.run.model == model:
            return group
    return None


def group_of_paper(pair: str, model: str) -> Group | None:
    """Returns what the paper's Table 1 has of a model, or None."""
    numbers = paper.TABLE_1.get(pair, {}).get(model)
    if numbers is None:
        return None
    return Group(paper.LABELS[model], pd.DataFrame([numbers]))


def spread(
    values: Iterable[float],
    digits: int,
    sign: str = "",
) -> str:
    """Returns the mean of numbers and, of several, their standard deviation."""
    numbers = pd.Series(values, dtype=float).dropna()
    if numbers.empty:
        return NONE
    text = f"{numbers.mean():{sign},.{digits}f}"
    if len(numbers) == 1:
        return text
    return f"{text} ± {numbers.std():,.{digits}f}"
