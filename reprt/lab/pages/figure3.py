"""The paper's Figure 3: the curves of all trials and the seconds of an epoch."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from reprt.files import write_text
from reprt.lab import paper
from reprt.lab.pages.frame import NOT_RUN, by_settings, run_of, runs_table, spread
from reprt.lab.pages.pictures import new_figure, save_figure
from reprt.lab.pages.provenance import starts_of
from reprt.lab.pages.runs import Run, read_runs
from reprt.lab.pages.tables import (
    epochs_table,
    markdown,
    notes,
    plain,
    write_markdown,
)
from reprt.lab.recipe import PageSettings

MODELS = {
    "baseline": (paper.LABELS["baseline"], "#000000"),
    "repe": (paper.LABELS["repe"], "#d55e00"),
}
LOSSES = {"train_loss": ("training", "--", "o"), "val_loss": ("validation", "-", "s")}
CONFIDENCE = 0.95
RESAMPLES = 10_000
Trials = Mapping[str, Sequence[Run]]  # by model


def write_figure3(folder: Path, settings: PageSettings, out: Path) -> Path:
    """Writes `figure3.md`, `.png`, `.svg` and `.csv` from the trials in a folder.

    Of several settings of a model those count that are the paper's, or come nearest to
    them.

    Args:
        folder: a folder with the runs of one text.
        settings: those of the page.
        out: where the files go.

    Returns:
        The path of the page.

    Raises:
        RunFolderError: if there is no run.
    """
    runs = read_runs(folder)
    manifest, text = runs[0].manifest, plain(runs[0].manifest.text)
    like_the_papers = manifest.official_text and runs[0].pair == "pt_to_en"
    trials: dict[str, Sequence[Run]] = {model: [] for model in MODELS}
    groups = by_settings(runs_table(run for run in runs if run.log))
    for group in reversed(groups):  # the paper's own settings last
        if run_of(group).model in MODELS:
            trials[run_of(group).model] = list(group["run"])
    write_text(out / "figure3.csv", _csv(trials, manifest.text))
    title = manifest.text + ("" if like_the_papers else ": not comparable with the paper")
    for ending in ("png", "svg"):
        _draw(trials, title, like_the_papers, out / f"figure3.{ending}")
    counts = [f"{MODELS[m][0]}: {len(trials[m]) or NOT_RUN}" for m in MODELS]
    lines = []
    for run in (run for own in trials.values() for run in own):
        departures = ", ".join(run.settings.departures)
        how = f" with {departures}" if departures else ""
        state = "" if run.finished else ", under way"
        lines.append(f"- **{plain(run.label)}**{how}, seed {run.seed}{state}")
        lines += starts_of(run)
    return write_markdown(
        out / "figure3.md",
        f"# Figure 3 on {text}",
        ""
        if like_the_papers
        else f"> **Not comparable with the paper.** Ours are on {text}. The paper's are "
        "on TED-HRLR pt_to_en and stand here for orientation alone.",
        f"Trials differ by their seeds: {', '.join(counts)}. Losses are "
        "teacher-forced, as Keras reports them. Thin lines are trials, and thick lines "
        "are their mean. Bands are the mean's 95 % interval by bootstrap, from two "
        "trials on. Marks are the paper's means over those of its 10 trials that got "
        "so far.",
        "![Figure 3](figure3.png)",
        notes(folder),
        _losses(trials, "ours" if manifest.official_text else f"ours, {text}"),
        _seconds(trials),
        "## How it was run",
        "\n".join(lines),
    )


def curve(runs: Sequence[Run], loss: str) -> pd.DataFrame:
    """Returns of each epoch the mean over the trials that reached it.

    The columns are `epoch`, `trials`, `mean`, and `low` and `high` of the mean's
    confidence interval; a single trial tells nothing of the spread.
    """
    rows = [row for run in runs for row in run.log]
    points = []
    for epoch, losses in pd.DataFrame(rows, columns=["epoch", loss]).groupby("epoch"):
        low, high = bootstrap_interval(losses[loss]) if len(losses) > 1 else (None, None)
        points.append((int(epoch), len(losses), losses[loss].mean(), low, high))
    columns = ["epoch", "trials", "mean", "low", "high"]
    return pd.DataFrame(points, columns=columns).astype({"low": float, "high": float})


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


def _times(runs: Sequence[Run]) -> list[float]:
    return [run.numbers["seconds_an_epoch"] for run in runs]


def _losses(trials: Trials, ours: str) -> str:
    rows: list[list[str]] = []
    for model, (name, _) in MODELS.items():
        for loss, (label, *_) in LOSSES.items():
            cells = [
                f"{point.mean:.2f}"
                + (f" ({point.low:.2f}–{point.high:.2f})" if point.trials > 1 else "")
                for point in curve(trials[model], loss).itertuples()
            ]
            rows.append([f"{name}, {label}, {ours}", *(cells or [NOT_RUN])])
            theirs = [f"{value:.2f}" for value in paper.FIGURE_3A[model][loss]]
            rows.append([f"{name}, {label}, paper, TED-HRLR pt_to_en", *theirs])
    return epochs_table(rows)


def _seconds(trials: Trials) -> str:
    rows = []
    for model, (name, _) in MODELS.items():
        mean, deviation = paper.FIGURE_3B[model]
        theirs = f"{mean:,.1f} ± {deviation:,.1f}"
        rows.append([name, spread(_times(trials[model]), 1), theirs])
    return markdown(["seconds an epoch", "ours", "paper, two A100 GPUs"], rows)


def _csv(trials: Trials, text: str) -> str:
    parts = []
    for model in MODELS:
        for loss in LOSSES:
            about = {"model": model, "loss": loss}
            ours = curve(trials[model], loss).assign(text=text, source="ours", **about)
            means = paper.FIGURE_3A[model][loss]
            theirs = pd.DataFrame({"epoch": range(1, 11), "mean": means}).assign(
                text="TED-HRLR pt_to_en", source="paper", trials="up to 10", **about
            )
            ours[["mean", "low", "high"]] = ours[["mean", "low", "high"]].round(5)
            parts += [ours, theirs]
    columns = "text source model loss epoch trials mean low high".split()
    return pd.concat(parts)[columns].to_csv(index=False, lineterminator="\n")


def _draw(trials: Trials, title: str, like_the_papers: bool, path: Path):
    figure, (curves, ours, theirs) = new_figure(
        1, 3, (10, 5.5), width_ratios=(3.2, 1.2, 1.2)
    )
    other = "" if like_the_papers else " (TED-HRLR)"
    for model, (name, colour) in MODELS.items():
        for loss, (label, _, mark) in LOSSES.items():
            _draw_curve(curves, trials[model], model, loss)
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
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, handlelength=4)
    curves.grid(alpha=0.3)
    starts = [start for runs in trials.values() for run in runs for start in run.manifest.starts]
    times = {model: pd.Series(_times(runs)) for model, runs in trials.items() if runs}
    measured = {model: (each.mean(), each.std()) for model, each in times.items()}
    for axis, bars, about in (
        (ours, measured, f"b  ours\n{starts[-1].hardware if starts else 'unknown'}"),
        (theirs, paper.FIGURE_3B, "b  paper\ntwo A100 GPUs"),
    ):
        for place, (model, (name, colour)) in enumerate(MODELS.items()):
            if model in bars:
                mean, deviation = bars[model]
                error = None if np.isnan(deviation) else deviation
                axis.bar(place, mean, yerr=error, color=colour, capsize=4)
            else:
                axis.text(place, 0, NOT_RUN, ha="center", va="bottom")
        names = [name.replace(" as", "\nas") for name, _ in MODELS.values()]
        axis.set_xticks(range(len(MODELS)), names, fontsize=8)
        axis.set_title(about, loc="left", fontsize=9)
        axis.set_ylabel("seconds an epoch, mean and sd of trials")
    figure.suptitle(title)
    save_figure(figure, path)


def _draw_curve(axis, runs: Sequence[Run], model: str, loss: str):
    (name, colour), (label, style, _) = MODELS[model], LOSSES[loss]
    if not runs:
        axis.plot([], [], style, color=colour, label=f"{name}, {label}: {NOT_RUN}")
        return
    for run in runs:
        losses = [row[loss] for row in run.log]
        epochs = range(1, len(losses) + 1)
        axis.plot(epochs, losses, style, color=colour, linewidth=0.6, alpha=0.5)
    departs = any(run.settings.departures for run in runs)
    mark = ", not the paper's settings" if departs else ""
    points = curve(runs, loss)
    axis.plot(
        points["epoch"],
        points["mean"],
        style,
        color=colour,
        linewidth=1.8,
        label=f"{name}, {label}, ours{mark} (trials: {len(runs)})",
    )
    banded = points[points["trials"] > 1]
    axis.fill_between(
        banded["epoch"],
        banded["low"],
        banded["high"],
        color=colour,
        alpha=0.2,
        linewidth=0,
    )
