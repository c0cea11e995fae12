"""The paper's Figure 3: the curves of all trials and the seconds of an epoch."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from reprt_lab import paper
from reprt_lab.pages import pictures
from reprt_lab.pages.frame import Group, nearest_to_paper, runs_table, spread
from reprt_lab.pages.tables import markdown, plain

COLOURS = {
    "baseline": "#000000",
    "repe": "#d55e00",
}
# How each loss is called and drawn, ours as a line and the paper's as marks.
CURVES = {
    "train_loss": ("training", "--", "o"),
    "val_loss": ("validation", "-", "s"),
}
PAPERS_TEXT = "TED-HRLR pt_to_en"
RESAMPLES = 10_000


def page_values(runs, settings, out):
    """Where a model has several settings, those nearest to the paper's count."""
    manifest, text = runs[0].manifest, plain(runs[0].text)
    like_the_papers = manifest.official_text and runs[0].pair == "pt_to_en"
    our_groups = nearest_to_paper(run for run in runs if run.log)
    groups = {}
    for model, name in paper.LABELS.items():
        table = (
            our_groups[model].table if model in our_groups else runs_table([])
        )
        groups[model] = Group(name, table)
    _draw(groups, manifest.text, out / "figure3.png")
    return {
        "foreign": "" if like_the_papers else text,
        "losses": _losses(groups, text),
        "seconds": _seconds(groups),
    }


def bootstrap_interval(values: Sequence[float]) -> tuple[float, float]:
    """Returns the 95 % interval of a mean, by the percentile bootstrap."""
    # The same files give the same picture.
    random = np.random.default_rng(0)
    samples = random.choice(np.asarray(values), (RESAMPLES, len(values)))
    low, high = np.quantile(samples.mean(1), (0.025, 0.975))
    return float(low), float(high)


def _curve(group: Group, loss: str) -> pd.DataFrame:
    """Each epoch's mean over the trials that reached it, with its interval."""
    losses: dict[int, list[float]] = {}
    for run in group.table["run"]:
        for row in run.log:
            losses.setdefault(int(row["epoch"]), []).append(row[loss])
    points = []
    for epoch, values in losses.items():
        points.append((epoch, np.mean(values), *bootstrap_interval(values)))
    columns = ["epoch", "mean", "low", "high"]
    return pd.DataFrame(points, columns=columns, dtype=float)


def _losses(groups: Mapping[str, Group], text: str) -> str:
    rows = []
    for model, group in groups.items():
        for loss, (kind, *_) in CURVES.items():
            our_row = {"loss": f"{group.label}, {kind}, ours, {text}"}
            for point in _curve(group, loss).itertuples():
                cell = f"{point.mean:.2f}"
                # A single trial tells nothing of the spread.
                if point.high > point.low:
                    cell += f" ({point.low:.2f}–{point.high:.2f})"
                our_row[f"{point.epoch:.0f}"] = cell
            paper_row = {"loss": f"{group.label}, {kind}, paper, {PAPERS_TEXT}"}
            for epoch, mean in enumerate(paper.FIGURE_3A[model][loss], 1):
                paper_row[str(epoch)] = f"{mean:.2f}"
            rows += [our_row, paper_row]
    return markdown(rows)


def _seconds(groups: Mapping[str, Group]) -> str:
    rows = []
    for model, group in groups.items():
        means = group.table["train_seconds"] / group.table["epochs"]
        seconds, deviation = paper.FIGURE_3B[model]
        row = {
            "seconds an epoch": group.label,
            "settings": ", ".join(group.table["settings"].unique()),
            "trials": str(len(group.table)),
            "ours": spread(means, 1),
            "ours, medians": group.cell("seconds_an_epoch", 1),
            "paper, two A100 GPUs": f"{seconds:,.1f} ± {deviation:,.1f}",
        }
        rows.append(row)
    return markdown(rows, 2)


def _draw(groups, title, path):
    figure, (curves, our_axis, paper_axis) = pictures.new_figure(
        title,
        1,
        3,
        (10, 5.5),
        width_ratios=(3.2, 1.2, 1.2),
    )
    for model, group in groups.items():
        for loss in CURVES:
            _draw_loss(curves, model, group, loss)
        look = {"color": COLOURS[model], "capsize": 4}
        medians = group.table["seconds_an_epoch"].astype(float)
        our_axis.bar(group.label, medians.mean(), yerr=medians.std(), **look)
        seconds, deviation = paper.FIGURE_3B[model]
        paper_axis.bar(group.label, seconds, yerr=deviation, **look)
    title = "a  teacher-forced losses, nats per token"
    pictures.finish_axis(curves, title, "epoch")
    pictures.finish_axis(our_axis, "b  seconds an epoch, ours", "mean and sd")
    pictures.finish_axis(paper_axis, "b  the paper's", "two A100 GPUs")
    figure.legend(
        loc="outside lower center",
        ncols=2,
        fontsize=8,
        handlelength=4,
    )
    pictures.save_figure(figure, path)


def _draw_loss(axis, model, group, loss):
    """A loss of all trials of a model, their mean and its interval, and the paper's."""
    kind, style, mark = CURVES[loss]
    look = {"color": COLOURS[model]}
    curve = _curve(group, loss).set_index("epoch")
    axis.fill_between(
        curve.index,
        curve["low"],
        curve["high"],
        alpha=0.2,
        linewidth=0,
        **look,
    )
    name = f"{group.label}, {kind}, ours (trials: {len(group.table)})"
    axis.plot(
        curve["mean"],
        style,
        linewidth=1.8,
        label=name,
        **look,
    )
    paper_losses = pd.Series([np.nan, *paper.FIGURE_3A[model][loss]])
    name = f"{group.label}, {kind}, paper ({PAPERS_TEXT})"
    axis.plot(
        paper_losses,
        mark,
        fillstyle="none",
        label=name,
        **look,
    )
