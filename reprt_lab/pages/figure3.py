"""The paper's Figure 3: the curves of all trials and the seconds of an epoch."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from reprt_lab import paper
from reprt_lab.pages import pictures
from reprt_lab.pages.frame import by_settings, nearest, runs_table, spread
from reprt_lab.pages.tables import by_epoch, markdown, plain
from reprt_lab.records import Run

MODELS = paper.LABELS
COLOURS = {"baseline": "#000000", "repe": "#d55e00"}
LOSSES = {
    "train_loss": ("training", "--", "o"),
    "val_loss": ("validation", "-", "s"),
}
COLUMNS = "source model loss epoch mean low high".split()
PAPERS = "TED-HRLR pt_to_en"
RESAMPLES = 10_000
NONE = (np.nan, np.nan)  # of a single trial, which tells nothing of the spread
Trials = Mapping[str, pd.DataFrame]  # by model, a run a row


def page_values(runs: Sequence[Run], settings, out: Path) -> dict[str, str]:
    """Where a model has several settings, those nearest to the paper's count."""
    manifest, name = runs[0].manifest, plain(runs[0].text)
    like_the_papers = manifest.official_text and runs[0].pair == "pt_to_en"
    found = nearest(by_settings(run for run in runs if run.log))
    none = runs_table([])
    trials = {m: found[m].table if m in found else none for m in MODELS}
    points = _points(trials)
    title = manifest.text + ": not comparable with the paper" * (
        not like_the_papers
    )
    _draw(trials, points, title, out / "figure3.png")
    ours = "ours" if manifest.official_text else f"ours, {name}"
    return {
        "foreign": "" if like_the_papers else name,
        "counts": ", ".join(
            _count(MODELS[m], table) for m, table in trials.items()
        ),
        "losses": _losses(points, ours),
        "seconds": _seconds(trials),
    }


def bootstrap_interval(values: Sequence[float]) -> tuple[float, float]:
    """Returns the 95 % interval of a mean, by the percentile bootstrap."""
    random = np.random.default_rng(0)  # the same picture from the same files
    samples = random.choice(np.asarray(values), (RESAMPLES, len(values)))
    low, high = np.quantile(samples.mean(1), (0.025, 0.975))
    return float(low), float(high)


def _points(trials: Trials) -> pd.DataFrame:
    """The mean of each epoch over the trials that reached it; ours and the paper's."""
    points: list[tuple] = []
    for model in MODELS:
        rows = [row for run in trials[model]["run"] for row in run.log]
        logs = pd.DataFrame(rows, columns=["epoch", *LOSSES])
        for loss in LOSSES:
            for epoch, values in logs.groupby("epoch")[loss]:
                band = bootstrap_interval(values) if len(values) > 1 else NONE
                points.append(
                    ("ours", model, loss, int(epoch), values.mean(), *band)
                )
            for epoch, mean in enumerate(paper.FIGURE_3A[model][loss], start=1):
                points.append(("paper", model, loss, epoch, mean, *NONE))
    return pd.DataFrame(points, columns=COLUMNS)


def _curve(points: pd.DataFrame, *of: str) -> pd.DataFrame:
    return points[(points[["source", "model", "loss"]] == of).all(axis=1)]


def _losses(points: pd.DataFrame, ours: str) -> str:
    rows, called = [], {"ours": ours, "paper": f"paper, {PAPERS}"}
    for model, loss, source in itertools.product(MODELS, LOSSES, called):
        curve = _curve(points, source, model, loss)[["mean", "low", "high"]]
        cells = [
            f"{mean:.2f}"
            + (f" ({low:.2f}–{high:.2f})" if pd.notna(low) else "")
            for mean, low, high in curve.values
        ]
        line = f"{MODELS[model]}, {LOSSES[loss][0]}, {called[source]}"
        rows.append(by_epoch(line, cells or ["not run"]))
    return markdown(rows)


def _times(trials: pd.DataFrame) -> pd.Series:
    """The mean seconds of an epoch, as the paper has them, of each trial."""
    return (trials["train_seconds"] / trials["epochs"]).astype(float)


def _seconds(trials: Trials) -> str:
    rows = [
        {
            "seconds an epoch": name,
            "ours": spread(_times(trials[model]), 1),
            "ours, medians": spread(trials[model]["seconds_an_epoch"], 1),
            "paper, two A100 GPUs": "{:,.1f} ± {:,.1f}".format(
                *paper.FIGURE_3B[model]
            ),
        }
        for model, name in MODELS.items()
    ]
    return markdown(rows)


def _count(label: str, trials: pd.DataFrame) -> str:
    """How many trials of a model there are, and how they depart from the paper's."""
    departures = "".join(
        f" with {each}" for each in {*trials["departures"]} if each
    )
    return f"{label}: {len(trials) or 'not run'}{departures}"


def _draw(trials: Trials, points: pd.DataFrame, title: str, path: Path):
    figure, (curves, ours, theirs) = pictures.new_figure(
        title, 1, 3, (10, 5.5), width_ratios=(3.2, 1.2, 1.2)
    )
    for model, name in MODELS.items():
        for loss, (label, style, mark) in LOSSES.items():
            runs, look = trials[model]["run"], {"color": COLOURS[model]}
            for run in runs:
                pictures.draw_log(
                    curves, run, loss, style, linewidth=0.6, alpha=0.5, **look
                )
            said = f"trials: {len(runs)}" if len(runs) else "not run"
            if any(run.departures for run in runs):
                said += ", not the paper's settings"
            mean = _curve(points, "ours", model, loss)
            band = mean.dropna()[["epoch", "low", "high"]]
            curves.fill_between(
                *band.to_numpy(float).T, alpha=0.2, linewidth=0, **look
            )
            look["label"] = f"{name}, {label}, ours ({said})"
            curves.plot(
                mean["epoch"], mean["mean"], style, linewidth=1.8, **look
            )
            mean = _curve(points, "paper", model, loss)
            look["label"] = f"{name}, {label}, paper ({PAPERS})"
            curves.plot(
                mean["epoch"], mean["mean"], mark, fillstyle="none", **look
            )
    curves.set_ylabel("loss, nats per token")
    pictures.finish_axis(curves, "a  teacher-forced losses", "epoch")
    figure.legend(
        loc="outside lower center", ncols=2, fontsize=8, handlelength=4
    )
    runs = pd.concat([table["run"] for table in trials.values()])
    starts = [start.hardware for run in runs for start in run.manifest.starts]
    medians = {
        model: table["seconds_an_epoch"] for model, table in trials.items()
    }
    bars = {model: (each.mean(), each.std()) for model, each in medians.items()}
    _draw_bars(ours, bars, "\n".join(["b  ours", *starts[-1:]]))
    _draw_bars(theirs, paper.FIGURE_3B, "b  paper\ntwo A100 GPUs")
    pictures.save_figure(figure, path)


def _draw_bars(axis, bars: Mapping[str, tuple[float, float]], title: str):
    means, deviations = zip(*(bars[model] for model in MODELS))
    whiskers = {
        "yerr": deviations,
        "capsize": 4,
        "ecolor": "grey",
    }  # seen on black
    axis.bar([*MODELS.values()], means, color=[*COLOURS.values()], **whiskers)
    axis.set_ylabel("seconds an epoch, mean and sd of trials")
    axis.tick_params("x", labelsize=8)
    axis.set_title(title, loc="left", fontsize=9)
