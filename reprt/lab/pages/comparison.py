"""Trials of many models: what is left of a gain when the decoder cannot see ahead."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from reprt.analysis.cost import COUNTED
from reprt.files import write_text
from reprt.lab.pages import pictures
from reprt.lab.pages.cost import cost_section
from reprt.lab.pages.frame import Group, by_schedule, runs_table, spread
from reprt.lab.pages.provenance import left_out, out_of_time, ways
from reprt.lab.pages.runs import read_runs, titled
from reprt.lab.pages.tables import markdown, plain, write_filled
from reprt.lab.recipe import PageSettings

HEAD = (
    "model | looks ahead | seeds | parameters | teacher-forced | prefix | prefix − "
    "teacher-forced | prefix − baseline's | BLEU, test | seconds an epoch"
).split(" | ")
FORCED, PREFIX, BLEU = "val_loss_per_token", "val_prefix_loss_per_token", "test_bleu"
COLUMNS = (
    *("run", "model", "schedule", "schedule_dim", "seed", "looks_ahead", "parameters"),
    *("epochs", "train_loss_per_token", FORCED, PREFIX, BLEU, "seconds_an_epoch"),
    *("commit", "finished"),
)
COSTS = [*COUNTED[1:], "train_seconds"]  # of runs whose results tell


def write_comparison(folder: Path, settings: PageSettings, out: Path) -> Path:
    """Writes `comparison.md`, `.csv` and `.png` on trials on one text."""
    runs = read_runs(folder)
    manifest, name = runs[0].manifest, plain(runs[0].text)
    finished = [run for run in runs if run.metrics and run.log]
    table = runs_table(finished)
    groups = by_schedule(table)
    # The best comes first; what has no such loss comes last.
    groups.sort(key=lambda g: (g.table[PREFIX].isna().all(), g.table[PREFIX].mean()))
    write_text(out / "comparison.csv", _csv(table))
    if groups:
        _draw(groups, out / "comparison.png")
    title, said = titled(folder, f"# What the gain is made of: {name}")
    return write_filled(
        out / "comparison.md",
        title=title,
        foreign="" if manifest.official_text else name,
        count=len(table),
        notes=said,
        sections="\n\n".join(_section(*section) for section in _sections(groups)),
        out_of_time=out_of_time(table["run"]),
        unfinished=left_out("Not finished", (r for r in runs if r not in finished)),
        cost=cost_section({_name(group): group.table for group in groups}),
        ways=ways(table["run"]),
    )


def _name(group: Group) -> str:
    return f"{group.run.label}, {group.rate}"


def _sections(groups: Sequence[Group]) -> list[tuple[str, list[Group]]]:
    """Groups that can be set side by side: those of each schedule, with a title."""
    sections: list[tuple[str, list[Group]]] = []
    for name in sorted({group.run.schedule for group in groups}, reverse=True):
        section = [group for group in groups if group.run.schedule == name]
        title, (first, *others) = "Each on its own schedule", section
        if all(_schedule(each) == _schedule(first) for each in others):
            title = f"All on one schedule, {first.rate}"
            # A model whose own schedule is the common one was trained only once.
            section = [
                group
                for group in groups
                if group.run.schedule == name or _schedule(group) == _schedule(first)
            ]
        elif all(group.run.settings.schedule_dim for group in section):
            title += ", m = the width of its embedding"
        names = {group.run.name for group in section}
        known = [{group.run.name for group in each} for _, each in sections]
        if not any(names <= others for others in known):
            sections.append((title, section))
    return sections


def _schedule(group: Group):
    return group.run.settings.identity.schedule


def _section(title: str, groups: Sequence[Group]) -> str:
    baseline = next((group for group in groups if group.run.model == "baseline"), None)
    rows = []
    for group in groups:
        worth = (group.table[PREFIX] - group.table[FORCED]).mean()
        behind = pd.Series()
        if baseline and group is not baseline:
            behind = group.differences(baseline, PREFIX)
        rows.append(
            [
                plain(group.run.label),
                group.ahead,
                str(len(group.table)),
                group.cell("parameters", 0),
                group.cell(FORCED, 3),
                group.cell(PREFIX, 3),
                spread([worth], 3, "+"),
                spread(behind, 3, "+"),
                group.cell(BLEU, 2),
                group.cell("seconds_an_epoch", 1),
            ]
        )
    return f"## {title}\n\n{markdown(HEAD, rows, 'll')}"


def _csv(table: pd.DataFrame) -> str:
    found = table.assign(
        run=table["name"],
        schedule_dim=[run.settings.schedule_dim for run in table["run"]],
        commit=[run.manifest.starts[-1].commit for run in table["run"]],
        finished=[run.metrics.finished for run in table["run"]],
    )
    costs = COSTS if table[COSTS].notna().all(axis=1).any() else []
    found = found[[*COLUMNS, *costs]].convert_dtypes()
    return found.to_csv(index=False, float_format="%.5f", lineterminator="\n")


def _draw(groups: Sequence[Group], path: Path):
    """The models with a colour, a row for each of their schedules."""
    shown = pictures.colours([group.run for group in groups])
    groups = [group for group in groups if group.run.model in shown]
    figure, (losses, bleu) = pictures.new_figure(
        1, 2, (8.5, 1.8 + 0.26 * len(groups)), width_ratios=(3, 2), sharey=True
    )
    places = range(len(groups), 0, -1)
    for place, (run, table) in zip(places, groups):
        colour, rows = shown[run.model], [place] * len(table)
        ends = table[[FORCED, PREFIX]].mean().dropna()
        losses.plot(ends, [place] * len(ends), color=colour, alpha=0.5, linewidth=3)
        losses.plot(table[FORCED], rows, "o", color=colour, fillstyle="none")
        losses.plot(table[PREFIX], rows, "o", color=colour)
        bleu.barh(place, table[BLEU].mean(), color=colour, alpha=0.5)
        bleu.plot(table[BLEU], rows, ".", color=colour)
    one_rate = len({group.rate for group in groups}) == 1
    names = [group.run.label if one_rate else _name(group) for group in groups]
    losses.set_yticks(list(places), names, fontsize=9)
    losses.set_ylim(0.4, len(groups) + 0.6)
    pictures.finish_axis(
        losses,
        "Loss: lower is better\n"
        "○ with the whole translation in sight\n"
        "● with only the words before, as in use",
        "nats per token, validation split; a dot a seed",
    )
    pictures.finish_axis(bleu, "BLEU: higher is better", "test split, greedy search")
    figure.suptitle(groups[0].run.text, fontsize=10)
    pictures.save_figure(figure, path)
