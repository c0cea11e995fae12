"""The paper's Table 1, with ours beside it."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reprt import paper
from reprt.data.corpora.ted import PAIRS
from reprt.files import write_text
from reprt.reports.escaping import in_latex, in_markdown
from reprt.reports.files import notes
from reprt.reports.provenance import provenance_lines
from reprt.reports.runs import Run, read_texts
from reprt.reports.series import NOT_RUN, Series, by_settings
from reprt.reports.tables import csv_text, latex, markdown

MODELS = paper.LABELS
# What the paper prints of each model, and with how many digits.
PRINTED = {"epochs": 0, "train_loss": 2, "val_loss": 2, "seconds_an_epoch": 0}
BEYOND = {
    "val_loss_per_token": ("validation loss, teacher-forced", 3),
    "val_prefix_loss_per_token": ("validation loss, prefix", 3),
    "test_bleu": ("BLEU", 2),
    "test_chrf": ("chrF", 2),
    "parameters": ("parameters", 0),
    "tokens_per_second": ("target tokens a second", 0),
    "seconds_an_epoch": ("seconds an epoch", 1),
}
NONE, BLANK = "–", " "


@dataclasses.dataclass(frozen=True)
class Row:
    """A pair of languages: the paper's results and ours on one text.

    Attributes:
        pair: the pair's name.
        manifest: of our runs, which names their text; None if there are none.
        series: ours, the paper's models and variants of them.
        first: whether it is the first row of its pair, which has the paper's line.
    """

    pair: str
    manifest: Mapping[str, Any] | None = None
    series: Sequence[Series] = ()
    first: bool = True

    @property
    def official(self) -> bool:
        return self.manifest is not None and self.manifest["official_text"]

    @property
    def published(self) -> Mapping[str, paper.Result]:
        return paper.TABLE_1.get(self.pair, {})

    @property
    def ours(self) -> dict[str, Series]:
        """Our results with the paper's two models.

        Runs with the paper's settings; where there are none, those that are named after
        its models, whose departures stand below the table.
        """
        found: dict[str, Series] = {}
        for each in sorted(self.series, key=lambda each: len(each.departures)):
            if each.model in MODELS:
                found.setdefault(each.model, each)
        return found

    def paper_numbers(self, model: str) -> dict[str, float]:
        if model not in self.published:
            return {}
        result = dataclasses.asdict(self.published[model])
        return {**result, "seconds_an_epoch": result["seconds"]}

    def difference(self, model: str, name: str) -> str:
        """Ours minus the paper's, where the two can be compared."""
        ours, theirs = self.ours.get(model), self.paper_numbers(model)
        if not self.official or ours is None or not ours.values(name):
            return NONE
        if name not in theirs or name == "seconds_an_epoch":  # on other hardware
            return NONE
        return f"{ours.mean(name) - theirs[name]:+.{PRINTED[name]}f}"


def write_table1(folder: Path, out: Path | None = None) -> Path:
    """Writes `table1.md`, `.tex` and `.csv` from the runs in a folder.

    Args:
        folder: a folder with runs, or with a folder of them for each text. A file
            `notes.md` in it becomes part of the page.
        out: where the files go; None for the same folder.

    Returns:
        The path of the page.

    Raises:
        RunFolderError: if there is no run.
    """
    rows, out = read_rows(folder), out or folder
    write_text(out / "table1.csv", _csv(rows))
    write_text(out / "table1.tex", f"{_latex(rows)}\n{_latex_beyond(rows)}")
    page = out / "table1.md"
    write_text(page, _page(rows, notes(folder)))
    return page


def read_rows(folder: Path) -> list[Row]:
    """Returns the rows of Table 1 in its order, then those of other pairs.

    Raises:
        RunFolderError: if there is no run in the folder.
    """
    rows: dict[str, list[Row]] = {pair: [] for pair in PAIRS}
    for runs in read_texts(folder):
        begun = [run for run in runs if run.log]
        if begun:
            pair = begun[0].settings["text"]["pair"]
            row = Row(pair, begun[0].manifest, _series(begun), not rows.get(pair))
            rows.setdefault(pair, []).append(row)
    return [row for pair, found in rows.items() for row in found or [Row(pair)]]


def _series(runs: Sequence[Run]) -> list[Series]:
    # A run that is under way has other epochs than the others.
    finished = by_settings([run for run in runs if run.metrics])
    return finished + [Series([run]) for run in runs if not run.metrics]


def _lines(row: Row, written: Callable[[str], str] = str) -> list[list[str]]:
    """The lines of one pair: its name, both sizes, whose, the cells of both models.

    The name of the text is `written` as the table needs it.
    """
    lines = []
    known = PAIRS.get(row.pair)
    if known and row.published and row.first:
        theirs = [
            f"{row.paper_numbers(model)[name]:,.{digits}f}"
            for model in MODELS
            for name, digits in PRINTED.items()
        ]
        sizes = [f"{known.train:,}", f"{known.dev:,}"]
        lines.append([row.pair, *sizes, "paper", *theirs])
    first = [BLANK] * 3 if lines else [row.pair, BLANK, BLANK]
    if row.manifest and not row.official:  # numbers on another text name it
        pairs = row.manifest["sentence_pairs"]
        first = [first[0], f"{pairs['train']:,}", f"{pairs['dev']:,}"]
    lines.append([*first, _ours(row, written), *_our_cells(row)])
    if row.official and row.ours:
        differences = [
            row.difference(model, name) for model in MODELS for name in PRINTED
        ]
        lines.append([*[BLANK] * 3, "ours − paper", *differences])
    return lines


def _ours(row: Row, written) -> str:
    mark = "*" if any(each.departures for each in row.ours.values()) else ""
    if row.manifest and not row.official:
        return f"ours{mark}, on {written(row.manifest['text'])}: not comparable"
    return f"ours{mark}"


def _our_cells(row: Row) -> list[str]:
    cells = []
    for model in MODELS:
        series = row.ours.get(model)
        if series is None:
            cells += [NOT_RUN, *[NONE] * (len(PRINTED) - 1)]
            continue
        epochs = sorted({len(run.log) for run in series.runs})
        several = "–".join(str(n) for n in dict.fromkeys((epochs[0], epochs[-1])))
        cells.append(several + ("" if series.finished else " so far"))
        cells += [series.cell(name, n) for name, n in list(PRINTED.items())[1:]]
    return cells


def _page(rows: Sequence[Row], notes: Sequence[str]) -> str:
    columns = ("epochs", "training loss", "validation loss", "seconds an epoch")
    head = [f"{name}: {column}" for name in MODELS.values() for column in columns]
    lines = [
        "# Table 1",
        "",
        "Losses are teacher-forced, as Keras reports them, after the last epoch. The "
        "published decoder then knows the mean and variance of words to come; “Beyond "
        "the paper” below has the losses without them. Ours are mean ± standard "
        "deviation where there are several seeds, and a run's seconds an epoch are a "
        "median. The paper's seconds are those of two A100 GPUs, and ours are those of "
        "the hardware named below.",
        "",
        *markdown(
            ["pair", "train", "dev", "", *head],
            "lrrl" + "r" * len(head),
            [cells for row in rows for cells in _lines(row, in_markdown)],
        ),
        "",
    ]
    return "\n".join(
        [*lines, *notes, *_beyond(rows), *_departures(rows), *_provenance(rows)]
    )


def _beyond(rows) -> list[str]:
    return [
        "## Beyond the paper",
        "",
        "Losses here are means over tokens, in nats. The *prefix* loss gives the "
        "decoder the words before each position and no others, as in a translation. "
        "BLEU and chrF are those of greedy search on the test split, on corpus tokens.",
        "",
        *markdown(
            _beyond_head(),
            "llr" + "r" * len(BEYOND),
            _beyond_cells(rows, in_markdown),
        ),
        "",
    ]


def _beyond_head() -> list[str]:
    return ["text", "model", "seeds", *(label for label, _ in BEYOND.values())]


def _beyond_cells(rows, written: Callable[[str], str] = str) -> list[list[str]]:
    found = []
    for row in rows:
        for each in row.series:
            cells = [each.cell(name, digits) for name, (_, digits) in BEYOND.items()]
            name = f"{each.label}{'*' if each.departures else ''}"
            text = written(row.manifest["text"])
            found.append([text, name, str(len(each.runs)), *cells])
    return found


def _departures(rows) -> list[str]:
    found = dict.fromkeys(
        f"- \\* {each.label} on {in_markdown(row.manifest['text'])}: "
        + ", ".join(each.departures)
        for row in rows
        for each in row.series
        if each.departures
    )
    return ["Settings that are not the paper's:", "", *found, ""] if found else []


def _provenance(rows) -> list[str]:
    lines = ["## How it was run", ""]
    for row in rows:
        for each in row.series:
            seeds = ", ".join(str(run.seed) for run in each.runs)
            lines.append(
                f"- **{each.label}** on {in_markdown(row.manifest['text'])}, "
                f"seed {seeds}:"
            )
            ways = [line for run in each.runs for line in provenance_lines(run)]
            lines += [f"  - {line}" for line in ways]
    return [*lines, ""]


def _latex(rows) -> str:
    head = " & ".join(("epochs", "train", "val", "s/epoch") * len(MODELS))
    spans = " & ".join(
        rf"\multicolumn{{{len(PRINTED)}}}{{c}}{{{name}}}" for name in MODELS.values()
    )
    table = latex(
        "lrrl" + "r" * (len(PRINTED) * len(MODELS)),
        [f"& & & & {spans}", f"pair & train & dev & & {head}"],
        map(_lines, rows),
    )
    return "% \\usepackage{booktabs}\n" + table


def _latex_beyond(rows) -> str:
    head = " & ".join(map(in_latex, _beyond_head()))
    table = latex("llr" + "r" * len(BEYOND), [head], [_beyond_cells(rows)])
    return "% Beyond the paper\n" + table


def _csv(rows) -> str:
    names = [*PRINTED, *(name for name in BEYOND if name not in PRINTED)]
    spreads = [f"{name}_sd" for name in names]
    fields = ["pair", "source", "text", "official_text", "model", "seeds", *names]
    fields += [*spreads, "departures", "commits"]
    found = []
    for pair, results in paper.TABLE_1.items():
        for model in results:
            numbers = Row(pair).paper_numbers(model)
            found.append(
                {
                    "pair": pair,
                    "source": "paper",
                    "text": f"TED-HRLR {pair}",
                    "official_text": True,
                    "model": model,
                    "seeds": 1,
                    **{name: numbers[name] for name in PRINTED},
                }
            )
    for row in rows:
        for each in row.series:
            means = {n: each.mean(n) for n in names if each.values(n)}
            deviations = {f"{n}_sd": each.deviation(n) for n in means}
            commits = {s["commit"] for run in each.runs for s in run.manifest["starts"]}
            found.append(
                {
                    "pair": row.pair,
                    "source": "ours",
                    "text": row.manifest["text"],
                    "official_text": row.official,
                    "model": each.model,
                    "seeds": len(each.runs),
                    **{n: round(value, 5) for n, value in means.items()},
                    **{n: round(v, 5) for n, v in deviations.items() if v is not None},
                    "departures": "; ".join(each.departures),
                    "commits": " ".join(sorted(filter(None, commits))),
                }
            )
    return csv_text(found, fields)
