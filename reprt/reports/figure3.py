"""The paper's Figure 3: the curves of all trials and the seconds of an epoch."""

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reprt import paper
from reprt.files import write_text
from reprt.reports.escaping import in_markdown
from reprt.reports.files import new_figure, notes, save_figure
from reprt.reports.provenance import provenance_lines
from reprt.reports.runs import Run, read_runs
from reprt.reports.series import NOT_RUN, by_settings
from reprt.reports.tables import csv_text, epochs_table, markdown

MODELS = {
    "baseline": (paper.LABELS["baseline"], "#000000"),
    "repe": (paper.LABELS["repe"], "#d55e00"),
}
LOSSES = {"train_loss": ("training", "--", "o"), "val_loss": ("validation", "-", "s")}
COLUMNS = "text source model loss epoch trials mean low high".split()
CONFIDENCE = 0.95
RESAMPLES = 10_000


@dataclasses.dataclass(frozen=True)
class Point:
    """One epoch of one curve, over those trials that reached it.

    Attributes:
        epoch: counted from 1.
        trials: how many there are.
        mean: over them.
        low, high: of the mean's confidence interval, by bootstrap; None for a single
            trial, which tells nothing of the spread.
    """

    epoch: int
    trials: int
    mean: float
    low: float | None
    high: float | None


@dataclasses.dataclass(frozen=True)
class Trials:
    """The trials on one text.

    Attributes:
        pair: the pair of languages.
        manifest: of one of them, which names the text.
        runs: by model, those that have had an epoch; of several settings those that
            are the paper's, or come nearest to them.
    """

    pair: str
    manifest: Mapping[str, Any]
    runs: Mapping[str, Sequence[Run]]

    @property
    def official(self) -> bool:
        return self.manifest["official_text"]

    @property
    def like_the_papers(self) -> bool:
        """Whether the paper has a Figure 3 of this text."""
        return self.official and self.pair == "pt_to_en"

    def curve(self, model: str, loss: str) -> list[Point]:
        """Returns the mean over the trials, epoch by epoch."""
        logs = [[row[loss] for row in run.log] for run in self.runs[model]]
        longest = max(map(len, logs), default=0)
        return [
            _point(epoch + 1, [log[epoch] for log in logs if len(log) > epoch])
            for epoch in range(longest)
        ]

    def seconds(self, model: str) -> list[float]:
        """Returns the median time of an epoch in each trial."""
        return [run.seconds_an_epoch for run in self.runs[model]]


def bootstrap_interval(values: Sequence[float]) -> tuple[float, float]:
    """Returns the 95 % interval of a mean, by the percentile bootstrap.

    Args:
        values: at least two.

    Example:

    >>> bootstrap_interval([1.0, 1.0, 1.0])
    (1.0, 1.0)
    """
    random = np.random.default_rng(0)  # the same picture from the same files
    samples = random.choice(np.asarray(values), (RESAMPLES, len(values)))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(samples.mean(1), (tail, 1 - tail))
    return float(low), float(high)


def write_figure3(folder: Path, out: Path | None = None) -> Path:
    """Writes `figure3.md`, `.png`, `.svg` and `.csv` from the trials in a folder.

    Args:
        folder: a folder with the runs of one text, named MODEL.SEED or, for a single
            trial, MODEL. A file `notes.md` in it becomes part of the page.
        out: where the files go; None for the same folder.

    Returns:
        The path of the page.

    Raises:
        RunFolderError: if there is no run.
    """
    runs, out = read_runs(folder), out or folder
    series = by_settings([run for run in runs if run.log])
    chosen: dict[str, Sequence[Run]] = {model: [] for model in MODELS}
    for each in reversed(series):  # the paper's own settings last
        if each.model in MODELS:
            chosen[each.model] = each.runs
    pair = runs[0].settings["text"]["pair"]
    trials = Trials(pair, runs[0].manifest, chosen)
    write_text(out / "figure3.csv", _csv(trials))
    for ending in ("png", "svg"):
        _draw(trials, out / f"figure3.{ending}")
    page = out / "figure3.md"
    write_text(page, _page(trials, notes(folder)))
    return page


def _point(epoch, values) -> Point:
    low, high = bootstrap_interval(values) if values[1:] else (None, None)
    return Point(epoch, len(values), statistics.mean(values), low, high)


def _counts(trials: Trials) -> list[str]:
    return [
        f"{name}: {len(trials.runs[model]) or NOT_RUN}"
        for model, (name, _) in MODELS.items()
    ]


def _page(trials: Trials, notes: Sequence[str]) -> str:
    text = in_markdown(trials.manifest["text"])
    warning = [] if trials.like_the_papers else [
        f"> **Not comparable with the paper.** Ours are on {text}. The paper's are on "
        "TED-HRLR pt_to_en and stand here for orientation alone.",
        "",
    ]
    lines = [
        f"# Figure 3 on {text}",
        "",
        *warning,
        f"Trials differ by their seeds: {', '.join(_counts(trials))}. Losses are "
        "teacher-forced, as Keras reports them. Thin lines are trials, and thick lines "
        "are their mean. Bands are the mean's 95 % interval by bootstrap, from two "
        "trials on. Marks are the paper's means over those of its 10 trials that got "
        "so far.",
        "",
        "![Figure 3](figure3.png)",
        "",
        *notes,
        *_curves_table(trials),
        *_seconds_table(trials),
        "## How it was run",
        "",
    ]
    for model, runs in trials.runs.items():
        for run in runs:
            departures = f" with {', '.join(run.departures)}" if run.departures else ""
            state = "" if run.metrics else ", under way"
            lines.append(f"- **{run.label}**{departures}, seed {run.seed}{state}")
            lines += [f"  - {line}" for line in provenance_lines(run)]
    return "\n".join([*lines, ""])


def _curves_table(trials: Trials) -> list[str]:
    text = in_markdown(trials.manifest["text"])
    ours = "ours" if trials.official else f"ours, {text}"
    rows: list[list[str]] = []
    for model, (name, _) in MODELS.items():
        for loss, (label, *_) in LOSSES.items():
            cells = [
                f"{point.mean:.2f}"
                + (f" ({point.low:.2f}–{point.high:.2f})" if point.trials > 1 else "")
                for point in trials.curve(model, loss)
            ]
            rows.append([f"{name}, {label}, {ours}", *(cells or [NOT_RUN])])
            theirs = [f"{value:.2f}" for value in paper.FIGURE_3A[model][loss]]
            rows.append([f"{name}, {label}, paper, TED-HRLR pt_to_en", *theirs])
    return [*epochs_table(rows), ""]


def _seconds_table(trials: Trials) -> list[str]:
    rows = []
    for model, (name, _) in MODELS.items():
        seconds = trials.seconds(model)
        cell = f"{statistics.mean(seconds):,.1f}" if seconds else NOT_RUN
        if seconds[1:]:
            cell += f" ± {statistics.stdev(seconds):,.1f}"
        mean, deviation = paper.FIGURE_3B[model]
        rows.append([name, cell, f"{mean:,.1f} ± {deviation:,.1f}"])
    head = ["seconds an epoch", "ours", "paper, two A100 GPUs"]
    return [*markdown(head, "lrr", rows), ""]


def _csv(trials: Trials) -> str:
    rows: list[tuple] = []
    for model in MODELS:
        for loss in LOSSES:
            for point in trials.curve(model, loss):
                numbers = (point.mean, point.low, point.high)
                rows.append(
                    (
                        trials.manifest["text"],
                        "ours",
                        model,
                        loss,
                        point.epoch,
                        point.trials,
                        *("" if n is None else f"{n:.5f}" for n in numbers),
                    )
                )
            theirs = ("TED-HRLR pt_to_en", "paper", model, loss)
            for epoch, mean in enumerate(paper.FIGURE_3A[model][loss], start=1):
                rows.append((*theirs, epoch, "up to 10", mean))
    return csv_text([dict(zip(COLUMNS, row)) for row in rows], COLUMNS)


def _draw(trials: Trials, path: Path):
    figure, (curves, ours, theirs) = new_figure(
        1, 3, figsize=(13, 5), width_ratios=(3.2, 1, 1)
    )
    other = "" if trials.like_the_papers else " (TED-HRLR)"
    for model, (name, colour) in MODELS.items():
        for loss, (label, style, mark) in LOSSES.items():
            _draw_curve(curves, trials, model, loss)
            curves.plot(
                range(1, 11),
                paper.FIGURE_3A[model][loss],
                mark,
                color=colour,
                fillstyle="none",
                label=f"{name}, {label}, paper{other}",
            )
    curves.set_xlabel("epoch")
    curves.set_ylabel("loss, nats per token")
    curves.set_title("a  teacher-forced losses", loc="left", fontsize=10)
    curves.legend(fontsize=7, handlelength=4)
    curves.grid(alpha=0.3)
    measured = {
        model: (
            statistics.mean(seconds),
            statistics.stdev(seconds) if seconds[1:] else 0.0,
        )
        for model in MODELS
        if (seconds := trials.seconds(model))
    }
    starts = trials.manifest["starts"]
    hardware = starts[-1]["hardware"] if starts else "unknown"
    for axis, times, title in (
        (ours, measured, f"b  ours\n{hardware}"),
        (theirs, paper.FIGURE_3B, "b  paper\ntwo A100 GPUs"),
    ):
        for place, (model, (name, colour)) in enumerate(MODELS.items()):
            if model in times:
                mean, deviation = times[model]
                axis.bar(place, mean, yerr=deviation or None, color=colour, capsize=4)
            else:
                axis.text(place, 0, NOT_RUN, ha="center", va="bottom")
        names = [name for name, _ in MODELS.values()]
        axis.set_xticks(range(len(MODELS)), names, fontsize=7)
        axis.set_title(title, loc="left", fontsize=9)
        axis.set_ylabel("seconds an epoch, mean and sd of trials")
    figure.suptitle(
        trials.manifest["text"]
        + ("" if trials.like_the_papers else ": not comparable with the paper")
    )
    save_figure(figure, path)


def _draw_curve(axis, trials: Trials, model: str, loss: str):
    (name, colour), (label, style, _) = MODELS[model], LOSSES[loss]
    points = trials.curve(model, loss)
    departs = any(run.departures for run in trials.runs[model])
    mark = ", not the paper's settings" if departs else ""
    if not points:
        axis.plot([], [], style, color=colour, label=f"{name}, {label}: {NOT_RUN}")
        return
    for run in trials.runs[model]:
        losses = [row[loss] for row in run.log]
        axis.plot(
            range(1, len(losses) + 1),
            losses,
            style,
            color=colour,
            linewidth=0.6,
            alpha=0.5,
        )
    axis.plot(
        [point.epoch for point in points],
        [point.mean for point in points],
        style,
        color=colour,
        linewidth=1.8,
        label=f"{name}, {label}, ours{mark} (trials: {len(trials.runs[model])})",
    )
    banded = [point for point in points if point.trials > 1]
    axis.fill_between(
        [point.epoch for point in banded],
        [point.low for point in banded],
        [point.high for point in banded],
        color=colour,
        alpha=0.2,
        linewidth=0,
    )
