"""Trials of many models: what is left of a gain when the decoder cannot look ahead."""

from collections.abc import Sequence
from pathlib import Path

from reprt.files import write_text
from reprt_lab.pages import pictures
from reprt_lab.pages.cost import cost_section
from reprt_lab.pages.frame import (
    Group,
    as_csv,
    by_schedule,
    difference,
    groups_table,
    mean,
    runs_table,
    scores_of,
    spread,
)
from reprt_lab.records import Run

FORCED, PREFIX, BLEU = (
    "val_loss_per_token",
    "val_prefix_loss_per_token",
    "test_bleu",
)
PAIRED = "Differences from the baseline's are paired by seed."


def _ahead(group: Group, reference: Group | None) -> str:
    """How much the loss rises when the decoder cannot look ahead."""
    return spread([(group.table[PREFIX] - group.table[FORCED]).mean()], 3, "+")


BESIDE = "prefix − baseline's"
COLUMNS = {
    "parameters": mean("parameters", 0),
    "teacher-forced": mean(FORCED, 3),
    "prefix": mean(PREFIX, 3),
    "prefix − teacher-forced": _ahead,
    BESIDE: difference(PREFIX, 3),
    **scores_of("comparison", "{}, test"),
    "seconds an epoch": mean("seconds_an_epoch", 1),
}


def page_values(runs: Sequence[Run], settings, out: Path) -> dict[str, str]:
    table = runs_table(run for run in runs if run.finished)
    groups = by_schedule(table)
    groups.sort(key=order)
    write_text(out / "comparison.csv", as_csv(table))
    if groups:
        _draw(groups, out / "comparison.png")
    return {
        "count": str(len(table)),
        "paired": PAIRED if _baseline(groups) else "",
        "picture": "comparison.png" if groups else "",
        "sections": "\n\n".join(
            _section(*section) for section in _sections(groups)
        ),
        "cost": cost_section({_name(group): group.table for group in groups}),
    }


def order(group: Group):
    """The best comes first; what has no prefix loss comes last."""
    missing = group.table[PREFIX].isna().all()
    return missing, group.table[FORCED if missing else PREFIX].mean()


def _name(group: Group) -> str:
    return f"{group.run.label}, {group.rate}"


def _sections(groups: Sequence[Group]) -> list[tuple[str, list[Group]]]:
    """Groups that can be set side by side: those of each schedule, with a title."""
    sections: list[tuple[str, list[Group]]] = []
    for name in sorted({group.run.schedule for group in groups}, reverse=True):
        section = [group for group in groups if group.run.schedule == name]
        title, (first, *others) = "Each on its own schedule", section
        settings = [group.run.settings for group in section]
        if all(_schedule(each) == _schedule(first) for each in others):
            title = f"All on one schedule, {first.rate}"
            # A model whose own schedule is the common one was trained only once.
            section = [
                each for each in groups if _schedule(each) == _schedule(first)
            ]
        elif all(s.schedule_dim == s.model.embedding_dim for s in settings):
            title += ", m = the width of its embedding"
        names = {group.run.name for group in section}
        known = [{group.run.name for group in each} for _, each in sections]
        if not any(names <= others for others in known):
            sections.append((title, section))
    return sections


def _schedule(group: Group):
    return group.run.settings.identity.schedule


def _baseline(groups: Sequence[Group]) -> Group | None:
    return next(
        (group for group in groups if group.run.model == "baseline"), None
    )


def _section(title: str, groups: Sequence[Group]) -> str:
    columns, baseline = dict(COLUMNS), _baseline(groups)
    if baseline is None:
        del columns[BESIDE]
    return f"## {title}\n\n{groups_table(groups, columns, baseline)}"


def _draw(groups: Sequence[Group], path: Path):
    """The models with a colour, a row for each of their schedules."""
    shown = pictures.colours([group.run for group in groups])
    groups = [group for group in groups if group.run.label in shown]
    title, (first, *_) = groups[0].run.text, groups
    names = [_name(group) for group in groups]
    if {group.rate for group in groups} == {first.rate}:
        names = [group.run.label for group in groups]
        title += f", {first.rate}"
    figure, (losses, bleu) = pictures.new_figure(
        title,
        1,
        2,
        (8.5, 1.8 + 0.26 * len(groups)),
        width_ratios=(3, 2),
        sharey=True,
    )
    places = range(len(groups), 0, -1)
    for place, (run, table) in zip(places, groups):
        colour, rows = shown[run.label], [place] * len(table)
        ends = table[[FORCED, PREFIX]].mean().dropna()
        losses.plot(
            ends, [place] * len(ends), color=colour, alpha=0.5, linewidth=3
        )
        losses.plot(table[FORCED], rows, "o", color=colour, fillstyle="none")
        losses.plot(table[PREFIX], rows, "o", color=colour)
        bleu.barh(place, table[BLEU].mean(), color=colour, alpha=0.5)
        bleu.plot(table[BLEU], rows, ".", color=colour)
    losses.set_yticks(list(places), names, fontsize=9)
    losses.set_ylim(0.4, len(groups) + 0.6)
    pictures.finish_axis(
        losses,
        "Loss: lower is better\n"
        "○ with the whole translation in sight\n"
        "● with only the words before, as in use",
        "nats per token, validation split; a dot a seed",
    )
    pictures.finish_axis(
        bleu, "BLEU: higher is better", "test split, greedy search"
    )
    bleu.set_visible(any(table[BLEU].notna().any() for _, table in groups))
    pictures.save_figure(figure, path)
