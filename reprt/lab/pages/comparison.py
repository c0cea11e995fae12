"""Trials of many models: what is left of a gain when the decoder cannot see ahead."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from reprt.analysis.cost import COUNTED
from reprt.files import write_text
from reprt.lab.pages.cost import cost_section
from reprt.lab.pages.frame import (
    NONE,
    NOT_RUN,
    by_schedule,
    cell,
    differences,
    run_of,
    runs_table,
    spread,
)
from reprt.lab.pages.pictures import colours, new_figure, save_figure
from reprt.lab.pages.provenance import left_out, out_of_time, ways
from reprt.lab.pages.runs import read_runs
from reprt.lab.pages.tables import markdown, notes, plain, write_markdown
from reprt.lab.recipe import PageSettings

HEAD = (
    "model | looks ahead | seeds | parameters | teacher-forced | prefix | prefix − "
    "teacher-forced | prefix − baseline's | BLEU, test | seconds an epoch"
).split(" | ")
COLUMNS = (
    "run",
    "model",
    "schedule",
    "schedule_dim",
    "seed",
    "looks_ahead",
    "parameters",
    "epochs",
    "train_loss_per_token",
    "val_loss_per_token",
    "val_prefix_loss_per_token",
    "test_bleu",
    "seconds_an_epoch",
    "commit",
    "finished",
)
COSTS = (*COUNTED[1:], "train_seconds")  # of runs whose results tell
FORCED, PREFIX = "val_loss_per_token", "val_prefix_loss_per_token"


def write_comparison(folder: Path, settings: PageSettings, out: Path) -> Path:
    """Writes `comparison.md`, `.csv` and `.png` on the trials in a folder.

    Args:
        folder: a folder with the runs of a recipe with `[trials]`.
        settings: those of the page.
        out: where the files go.

    Returns:
        The path of the page.

    Raises:
        RunFolderError: as `reprt.lab.pages.runs.read_runs`.
    """
    runs = read_runs(folder)
    manifest = runs[0].manifest
    table = runs_table(run for run in runs if run.finished and run.log)
    groups = by_schedule(table)
    # The best comes first; what has no such loss comes last.
    groups.sort(key=lambda group: (group[PREFIX].isna().all(), group[PREFIX].mean()))
    write_text(out / "comparison.csv", _csv(table))
    if groups:
        _draw(groups, manifest.text, out / "comparison.png")
    name = plain(manifest.text)
    return write_markdown(
        out / "comparison.md",
        f"# What the gain is made of: {name}",
        ""
        if manifest.official_text
        else f"> Every number on this page is on the {name}, none on TED-HRLR.",
        f"The page has {len(table)} runs. Each row below gives mean ± standard "
        "deviation over its seeds. Losses are in nats per token, on the validation "
        "split after the last epoch. The *teacher-forced* loss gives the decoder "
        "the whole right target at once. The *prefix* loss gives it only the "
        "tokens before each position, as search does. Their difference is what "
        "looking ahead is worth. Differences from the baseline's are paired by "
        "seed. BLEU is that of greedy search on the test split.",
        "![Both losses and BLEU](comparison.png)",
        notes(folder),
        *(_section(*section) for section in _sections(groups)),
        out_of_time(table["run"]),
        left_out("Not finished", (r for r in runs if not (r.finished and r.log))),
        cost_section({_name(group): group for group in groups}),
        "## How it was run",
        "Each run is a row of [comparison.csv](./comparison.csv). Seconds an epoch "
        "are the median of a run's epochs. The machine may have had other work to "
        "do. These commands started the runs, each so many times:",
        ways(table["run"]),
    )


def _name(group: pd.DataFrame) -> str:
    return f"{group['label'].iloc[0]}, {group['rate'].iloc[0]}"


def _sections(groups: Sequence[pd.DataFrame]) -> list[tuple[str, list[pd.DataFrame]]]:
    """Groups that can be set side by side: those of each schedule, with a title."""
    sections: list[tuple[str, list[pd.DataFrame]]] = []
    # With the paper's m, also where it is the model's own.
    schedules = {id(group): run_of(group).settings.identity.schedule for group in groups}
    for name in sorted({run_of(group).schedule for group in groups}, reverse=True):
        own = [group for group in groups if run_of(group).schedule == name]
        first = schedules[id(own[0])]
        common = all(schedules[id(group)] == first for group in own)
        # A model whose own schedule is the common one was trained only once.
        section = [
            group
            for group in groups
            if run_of(group).schedule == name or common and schedules[id(group)] == first
        ]
        known = [{*map(id, others)} for _, others in sections]
        if any({*map(id, section)} <= others for others in known):
            continue
        title = "Each on its own schedule"
        if common:
            title = f"All on one schedule, {own[0]['rate'].iloc[0]}"
        elif all(run_of(group).settings.schedule_dim for group in own):
            title += ", m = the width of its embedding"
        sections.append((title, section))
    return sections


def _section(title: str, groups: Sequence[pd.DataFrame]) -> str:
    baselines = [group for group in groups if run_of(group).model == "baseline"]
    rows = []
    for group in groups:
        gaps = spread([(group[PREFIX] - group[FORCED]).mean()], 3, "+")
        behind = NONE
        if baselines and group is not baselines[0]:
            behind = spread(differences(group, baselines[0], PREFIX), 3, "+")
        rows.append(
            [
                plain(run_of(group).label),
                "**yes**" if group["looks_ahead"].iloc[0] else "no",
                str(len(group)),
                cell(group, "parameters", 0),
                cell(group, FORCED, 3),
                cell(group, PREFIX, 3),
                gaps.replace(NOT_RUN, NONE),
                behind.replace(NOT_RUN, NONE),
                cell(group, "test_bleu", 2),
                cell(group, "seconds_an_epoch", 1),
            ]
        )
    return f"## {title}\n\n{markdown(HEAD, rows, names=2)}"


def _csv(table: pd.DataFrame) -> str:
    found = table.drop(columns="run").rename(columns={"name": "run"})
    runs = list(table["run"])
    found["schedule_dim"] = [run.settings.schedule_dim for run in runs]
    found["commit"] = [run.manifest.starts[-1].commit for run in runs]
    found["finished"] = [run.metrics.finished for run in runs]
    costs = COSTS if table[[*COSTS]].notna().all(axis=1).any() else ()
    found = found[[*COLUMNS, *costs]].convert_dtypes()
    return found.to_csv(index=False, float_format="%.5f", lineterminator="\n")


def _draw(groups: Sequence[pd.DataFrame], text: str, path: Path):
    """The models with a colour, a row for each of their schedules."""
    shown = colours([run_of(group) for group in groups])
    groups = [group for group in groups if run_of(group).model in shown]
    figure, (losses, bleu) = new_figure(
        1, 2, (10, 1.6 + 0.26 * len(groups)), width_ratios=(2, 1), sharey=True
    )
    places = range(len(groups), 0, -1)
    for place, group in zip(places, groups):
        colour = shown[run_of(group).model]
        ends = group[[FORCED, PREFIX]].mean().dropna()
        losses.plot(
            ends, [place] * len(ends), "-", color=colour, alpha=0.5, linewidth=3
        )
        rows = [place] * len(group)
        losses.plot(group[FORCED], rows, "o", color=colour, fillstyle="none")
        losses.plot(group[PREFIX], rows, "o", color=colour)
        bleu.barh(place, group["test_bleu"].mean(), color=colour, alpha=0.5)
        bleu.plot(group["test_bleu"], rows, ".", color=colour)
    names, rates = [_name(group) for group in groups], {g["rate"].iloc[0] for g in groups}
    if len(rates) == 1:
        names, text = [run_of(group).label for group in groups], f"{text}, {rates.pop()}"
    losses.set_yticks(list(places), names, fontsize=8)
    losses.set_ylim(0.4, len(groups) + 0.6)
    losses.set_xlabel("validation loss, nats per token; one dot a seed")
    losses.set_title(
        "What looking ahead is worth: hollow with the whole\n"
        "target given, filled with the words before alone",
        loc="left",
        fontsize=9,
    )
    bleu.set_xlabel("BLEU, test split, greedy search")
    bleu.set_title("What search makes of it", loc="left", fontsize=9)
    for axis in (losses, bleu):
        axis.grid(alpha=0.3)
    figure.suptitle(text, fontsize=10)
    save_figure(figure, path)
