"""Position methods: each model's loss, a dot a seed, and its losses by length."""

import itertools
import textwrap
from collections.abc import Sequence

import pandas as pd

from reprt_lab.pages import families, pictures
from reprt_lab.pages.frame import (
    Column,
    Group,
    groups_table,
    label,
    mean,
    runs_table,
)
from reprt_lab.pages.tables import plain
from reprt_lab.records import Run

LOSS, BLEU = "loss, ", "BLEU, "


def page_values(texts, settings, out):
    """Runs that were trained on short sentences only stand by themselves."""
    whole, short = [], []
    for runs in texts:
        longer = [run for run in runs if longest(run) is None]
        if longer:
            whole.append(longer)
        for run in runs:
            if longest(run) and families.measured(run):
                short.append(run)
    values, chosen = families.compared(whole, settings.reference)
    values |= {"picture": "", "trained": "", "on": "", "lengths": ""}
    if chosen:
        values["picture"] = "positions.png"
        _draw(chosen, out / "positions.png")
    if short:
        values["trained"] = str(longest(short[0]))
        values["on"] = plain(short[0].text)
        groups = families.choose(_with_lengths(runs_table(short)))
        values["lengths"] = _lengths(groups)
        _draw_lengths(groups, settings.reference, out / "lengths.png")
    return values


def longest(run: Run) -> int | None:
    """Returns how many tokens its training pairs have at most, or None."""
    return run.settings.text.train_tokens


def _with_lengths(table: pd.DataFrame) -> pd.DataFrame:
    """Adds what came out on the test split's sentences of each range of tokens."""
    rows = []
    for run in table["run"]:
        row, shortest = {}, 1
        for part in run.metrics.test_by_length:
            tokens = f"from {shortest} tokens"
            if part.longest:
                tokens = f"{shortest} to {part.longest} tokens"
                shortest = part.longest + 1
            row[LOSS + tokens] = part.prefix_loss_per_token
            row[BLEU + tokens] = part.bleu
        rows.append(row)
    return table.join(pd.DataFrame(rows, index=table.index))


def _lengths(groups: Sequence[Group]) -> str:
    columns: dict[str, Column] = {"model": label}
    for name in groups[0].table:
        if name.startswith(LOSS):
            columns[name] = mean(name, 3)
        if name.startswith(BLEU):
            columns[name] = mean(name, 1)
    return groups_table(groups, columns, words=1)


def _of_states(group: Group) -> bool:
    """Whether attention weighs states and not tokens."""
    return getattr(group.run.settings.model, "value", "states") == "states"


def _draw(texts, path):
    """A panel a text; a line a model, its dots hollow where states are the values."""
    groups = list(itertools.chain(*texts))
    colours = pictures.colours(groups)
    labels = list(dict.fromkeys(group.label for group in groups))[::-1]
    size = 2 + 2.6 * len(texts), 1 + 0.25 * len(labels)
    figure, axes = pictures.new_figure(
        "", 1, len(texts), size, sharey=True, squeeze=False
    )
    for text, axis in zip(texts, axes[0]):
        for group in text:
            losses = group.table[families.LOSS]
            place = labels.index(group.label)
            axis.plot(
                losses,
                [place] * len(losses),
                "o",
                color=colours.get(group.label, "grey"),
                fillstyle="none" if _of_states(group) else "full",
            )
        title = textwrap.fill(text[0].run.text, 34)
        pictures.finish_axis(axis, title, "prefix loss, test split")
    axes[0, 0].set_yticks(range(len(labels)), labels, fontsize=9)
    pictures.save_figure(figure, path)


def _draw_lengths(groups, reference, path):
    """Losses, or how far above the reference's; dashed where states are the values."""
    losses = pd.DataFrame()
    for group in groups:
        losses[group.run.model] = group.table.filter(regex=f"^{LOSS}").mean()
    losses.index = losses.index.str.removeprefix(LOSS)
    title = "prefix loss; dashed: states are the values"
    if reference in losses:
        losses = losses.sub(losses[reference], axis=0)
        title = f"{title}; above the reference's"
    figure, axis = pictures.new_figure("", 1, 1, (8, 7))
    colours = pictures.colours(groups)
    for group in groups:
        if group.label in colours:
            style = "o--" if _of_states(group) else "o-"
            look = {"color": colours[group.label], "label": group.label}
            axis.plot(losses[group.run.model], style, **look)
    below = "tokens of the longer side of a test pair"
    pictures.finish_axis(axis, f"{groups[0].run.text}: {title}", below)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8)
    pictures.save_figure(figure, path)
