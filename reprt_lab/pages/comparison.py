"""Trials of many models: what is left of a gain when the decoder cannot look ahead."""

from reprt_lab.pages import pictures
from reprt_lab.pages.cost import cost_section
from reprt_lab.pages.frame import (
    BLEU,
    FORCED,
    PREFIX,
    TRIALS,
    Group,
    difference,
    group_of,
    group_runs,
    groups_table,
    mean,
    parameters,
    rate,
    runs_table,
    scores_of,
)

COLUMNS = {
    **TRIALS,
    "parameters": parameters,
    "teacher-forced": mean(FORCED, 3),
    "prefix": mean(PREFIX, 3),
    "prefix − baseline's": difference(PREFIX, 3),
    **scores_of("comparison"),
    "seconds an epoch": mean("seconds_an_epoch", 1),
}


def page_values(runs, settings, out):
    table = runs_table(run for run in runs if run.finished)
    groups = sorted(group_runs(table), key=order)
    if groups:
        _draw(groups, out / "comparison.png")
    sections = []
    for name in sorted(table["rate"].unique()):
        alike = [group for group in groups if rate(group) == name]
        rows = groups_table(alike, COLUMNS, group_of("baseline", alike))
        sections.append(f"## {name}\n\n{rows}")
    return {
        "count": str(len(table)),
        "picture": "comparison.png" if groups else "",
        "sections": "\n\n".join(sections),
        "cost": cost_section(groups),
    }


def order(group: Group):
    """The best comes first; what has no prefix loss comes last."""
    missing = group.table[PREFIX].isna().all()
    return missing, group.mean(FORCED if missing else PREFIX)


def _draw(groups, path):
    """The models with a colour, a row for each of their schedules."""
    colours = pictures.colours(groups)
    groups = [group for group in groups if group.label in colours]
    figure, (losses, bleu) = pictures.new_figure(
        groups[0].run.text,
        1,
        2,
        (9.5, 1.8 + 0.26 * len(groups)),
        sharey=True,
    )
    for group in groups:
        name, colour = f"{group.label}, {rate(group)}", colours[group.label]
        pictures.dots(losses, name, group.table[FORCED], colour, "none")
        pictures.dots(losses, name, group.table[PREFIX], colour)
        pictures.dots(bleu, name, group.table[BLEU], colour)
    losses.invert_yaxis()
    title = (
        "Loss: lower is better\n"
        "○ with the whole translation in sight\n"
        "● with only the words before, as in use"
    )
    below = "nats per token, validation; a dot a seed"
    pictures.finish_axis(losses, title, below)
    title = "BLEU: higher is better"
    pictures.finish_axis(bleu, title, "test split, greedy search")
    pictures.save_figure(figure, path)
