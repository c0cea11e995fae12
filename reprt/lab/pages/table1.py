"""The paper's Table 1, with ours beside it."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from reprt.data.corpora.ted import PAIRS
from reprt.files import write_text
from reprt.lab import paper
from reprt.lab.pages.frame import NONE, NOT_RUN, by_settings, cell, run_of, runs_table
from reprt.lab.pages.provenance import starts_of
from reprt.lab.pages.runs import Run, read_texts
from reprt.lab.pages.tables import latex, markdown, notes, plain, write_markdown
from reprt.lab.recipe import PageSettings
from reprt.lab.records import Manifest

MODELS = paper.LABELS
# What the paper prints of each model, and with how many digits.
PRINTED = {"epochs": 0, "train_loss": 2, "val_loss": 2, "seconds_an_epoch": 0}
COLUMNS = ("epochs", "training loss", "validation loss", "seconds an epoch")
BEYOND = {
    "val_loss_per_token": ("validation loss, teacher-forced", 3),
    "val_prefix_loss_per_token": ("validation loss, prefix", 3),
    "test_bleu": ("BLEU", 2),
    "test_chrf": ("chrF", 2),
    "parameters": ("parameters", 0),
    "tokens_per_second": ("target tokens a second", 0),
    "seconds_an_epoch": ("seconds an epoch", 1),
}
BEYOND_HEAD = ["text", "model", "seeds", *(label for label, _ in BEYOND.values())]


@dataclasses.dataclass(frozen=True)
class Row:
    """A pair of languages: the paper's results and ours on one text.

    Attributes:
        pair: the pair's name.
        manifest: of our runs, which names their text; None if there are none.
        groups: ours, the paper's models and variants of them.
        first: whether it is the first row of its pair, which has the paper's line.
    """

    pair: str
    manifest: Manifest | None = None
    groups: Sequence[pd.DataFrame] = ()
    first: bool = True

    @property
    def official(self) -> bool:
        return self.manifest is not None and self.manifest.official_text

    @property
    def ours(self) -> dict[str, pd.DataFrame]:
        """Our results with the paper's two models.

        Runs with the paper's settings; where there are none, those that are named after
        its models, whose departures stand below the table.
        """
        nearest = sorted(self.groups, key=lambda g: len(run_of(g).settings.departures))
        return {
            run_of(group).model: group
            for group in reversed(nearest)
            if run_of(group).model in MODELS
        }

    def papers(self, model: str) -> dict[str, float]:
        """The paper's numbers, by our names."""
        result = paper.TABLE_1.get(self.pair, {}).get(model)
        if result is None:
            return {}
        return {**dataclasses.asdict(result), "seconds_an_epoch": result.seconds}

    def difference(self, model: str, name: str) -> str:
        """Ours minus the paper's, where the two can be compared."""
        if model not in self.ours or name == "seconds_an_epoch":  # on other hardware
            return NONE
        ours, theirs = self.ours[model][name].mean(), self.papers(model).get(name)
        if theirs is None or pd.isna(ours):
            return NONE
        return f"{ours - theirs:+.{PRINTED[name]}f}"

    @property
    def lines(self) -> list[list[str]]:
        """Its lines: its name, both sizes, whose, the cells of both models."""
        found, known = [], PAIRS.get(self.pair)
        if known and self.papers("baseline") and self.first:
            theirs = [
                f"{self.papers(model)[name]:,.{digits}f}"
                for model in MODELS
                for name, digits in PRINTED.items()
            ]
            sizes = [f"{known.train:,}", f"{known.dev:,}"]
            found.append([self.pair, *sizes, "paper", *theirs])
        head = ["" if found else self.pair, "", ""]
        ours = "ours" + ("*" if any(map(_departs, self.ours.values())) else "")
        if self.manifest and not self.official:  # numbers on another text name it
            pairs = self.manifest.sentence_pairs
            head = [head[0], f"{pairs.train:,}", f"{pairs.dev:,}"]
            ours += f", on {self.manifest.text}: not comparable"
        found.append([*head, ours, *(c for model in MODELS for c in self._cells(model))])
        if self.official and self.ours:
            cells = [self.difference(model, name) for model in MODELS for name in PRINTED]
            found.append(["", "", "", "ours − paper", *cells])
        return found

    def _cells(self, model: str) -> list[str]:
        if model not in self.ours:
            return [NOT_RUN, *[NONE] * (len(PRINTED) - 1)]
        group = self.ours[model]
        epochs = dict.fromkeys([group["epochs"].min(), group["epochs"].max()])
        state = "" if all(run.finished for run in group["run"]) else " so far"
        losses = [(name, digits) for name, digits in PRINTED.items() if name != "epochs"]
        return ["–".join(map(str, epochs)) + state, *(cell(group, *n) for n in losses)]


def write_table1(folder: Path, settings: PageSettings, out: Path) -> Path:
    """Writes `table1.md`, `.tex` and `.csv` from the runs in a folder.

    Args:
        folder: a folder with runs, or with a folder of them for each text.
        settings: those of the page.
        out: where the files go.

    Returns:
        The path of the page.

    Raises:
        RunFolderError: if there is no run.
    """
    rows = read_rows(folder)
    write_text(out / "table1.csv", _csv(rows))
    write_text(out / "table1.tex", _latex(rows))
    head = [f"{name}: {column}" for name in MODELS.values() for column in COLUMNS]
    lines = [line for row in rows for line in row.lines]
    groups = [group for row in rows for group in row.groups]
    departures = dict.fromkeys(
        f"- \\* {_on(group)}: {group['departures'].iloc[0]}"
        for group in groups
        if _departs(group)
    )
    started = []
    for group in groups:
        seeds = ", ".join(map(str, group["seed"]))
        label, _, text = _on(group).partition(" on ")
        started.append(f"- **{label}** on {text}, seed {seeds}:")
        started += [line for run in group["run"] for line in starts_of(run)]
    return write_markdown(
        out / "table1.md",
        "# Table 1",
        "Losses are teacher-forced, as Keras reports them, after the last epoch. The "
        "published decoder then knows the mean and variance of words to come; “Beyond "
        "the paper” below has the losses without them. Ours are mean ± standard "
        "deviation where there are several seeds, and a run's seconds an epoch are a "
        "median. The paper's seconds are those of two A100 GPUs, and ours are those of "
        "the hardware named below.",
        markdown(["pair", "train", "dev", "", *head], lines),
        notes(folder),
        "## Beyond the paper",
        "Losses here are means over tokens, in nats. The *prefix* loss gives the "
        "decoder the words before each position and no others, as in a translation. "
        "BLEU and chrF are those of greedy search on the test split, on corpus tokens.",
        markdown(BEYOND_HEAD, _beyond(groups), names=2),
        "Settings that are not the paper's:" if departures else "",
        "\n".join(departures),
        "## How it was run",
        "\n".join(started),
    )


def read_rows(folder: Path) -> list[Row]:
    """Returns the rows of Table 1 in its order, then those of other pairs.

    Raises:
        RunFolderError: if there is no run in the folder.
    """
    rows: dict[str, list[Row]] = {pair: [] for pair in PAIRS}
    for runs in read_texts(folder):
        begun = [run for run in runs if run.log]
        if begun:
            own = rows.setdefault(begun[0].pair, [])
            own.append(Row(begun[0].pair, runs[0].manifest, _groups(begun), not own))
    return [row for pair, found in rows.items() for row in found or [Row(pair)]]


def _groups(runs: Sequence[Run]) -> list[pd.DataFrame]:
    # A run that is under way has other epochs than the others.
    finished = by_settings(runs_table(run for run in runs if run.finished))
    return finished + [runs_table([run]) for run in runs if not run.finished]


def _departs(group: pd.DataFrame) -> bool:
    return bool(group["departures"].iloc[0])


def _on(group: pd.DataFrame) -> str:
    return f"{plain(run_of(group).label)} on {plain(run_of(group).manifest.text)}"


def _beyond(groups: Sequence[pd.DataFrame]) -> list[list[str]]:
    return [
        [
            run_of(group).manifest.text,
            run_of(group).label + ("*" if _departs(group) else ""),
            str(len(group)),
            *(cell(group, name, digits) for name, (_, digits) in BEYOND.items()),
        ]
        for group in groups
    ]


def _latex(rows: Sequence[Row]) -> str:
    head = ["pair", "train", "dev", "", *("epochs", "train", "val", "s/epoch") * 2]
    lines = [line for row in rows for line in row.lines]
    spans = " & ".join(
        rf"\multicolumn{{{len(PRINTED)}}}{{c}}{{{name}}}" for name in MODELS.values()
    )
    above, rule, below = latex(head, lines, names=1).partition("\\toprule\n")
    beyond = latex(BEYOND_HEAD, _beyond([g for row in rows for g in row.groups]), names=2)
    return (
        f"% \\usepackage{{booktabs}}\n{above}{rule}& & & & {spans} \\\\\n{below}\n\n"
        f"% Beyond the paper\n{beyond}\n"
    )


def _csv(rows: Sequence[Row]) -> str:
    names = list(dict.fromkeys([*PRINTED, *BEYOND]))
    found = [
        {
            "pair": pair,
            "source": "paper",
            "text": f"TED-HRLR {pair}",
            "official_text": True,
            "model": model,
            "seeds": 1,
            **{name: Row(pair).papers(model)[name] for name in PRINTED},
        }
        for pair, results in paper.TABLE_1.items()
        for model in results
    ]
    for row, group in ((row, group) for row in rows for group in row.groups):
        starts = [start for run in group["run"] for start in run.manifest.starts]
        found.append(
            {
                "pair": row.pair,
                "source": "ours",
                "text": run_of(group).manifest.text,
                "official_text": row.official,
                "model": run_of(group).model,
                "seeds": len(group),
                **group[names].mean().round(5),
                **group[names].std().round(5).add_suffix("_sd"),
                "departures": "; ".join(run_of(group).settings.departures),
                "commits": " ".join(sorted({s.commit for s in starts if s.commit})),
            }
        )
    columns = [*found[0]][:6] + names + [f"{name}_sd" for name in names]
    table = pd.DataFrame(found, columns=[*columns, "departures", "commits"])
    return table.convert_dtypes().to_csv(index=False, lineterminator="\n")
