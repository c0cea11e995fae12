"""Position methods: each model's loss, a dot a seed, and its losses by length."""

import itertools
import textwrap
from collections.abc import Sequence

import pandas as pd

from reprt_lab.pages import pictures
from reprt_lab.pages.families import choose, compare_models, has_results
from reprt_lab.pages.frame import (
    LOSS,
    Column,
    Group,
    groups_table,
    label,
    mean,
    runs_table,
)
from reprt_lab.pages.tables import plain
from reprt_lab.records import Run

# The heads of columns begin with these, before a range of lengths.
OF_LENGTH, BLEU_OF_LENGTH = "loss, ", "BLEU, "


def page_values(texts, settings, out):
    """Runs that were trained on short sentences only stand by themselves."""
    whole: list[list[Run]] = []
    short: list[Run] = []
    for runs in texts:
        longer = [run for run in runs if longest(run) is None]
        if longer:
            whole.append(longer)
        short_here = [run for run in runs if longest(run) and has_results(run)]
        if short and short_here:
            raise ValueError(
                "Expected runs that were trained on short sentences on one text. "
                f"Received: {short[0].text} and {short_here[0].text}. Give each a "
                "folder of its own."
            )
        short += short_here
    values, chosen = compare_models(whole, settings.reference)
    values |= {
        "picture": "",
        "trained": "",
        "on": "",
        "lengths": "",
    }
    if chosen:
        values["picture"] = "positions.png"
        _draw(chosen, out / "positions.png")
    if short:
        groups = choose(_with_lengths(runs_table(short)))
        values["trained"] = str(longest(short[0]))
        values["on"] = plain(short[0].text)
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
            row[OF_LENGTH + tokens] = part.prefix_loss_per_token
            row[BLEU_OF_LENGTH + tokens] = part.bleu
        rows.append(row)
    return table.join(pd.DataFrame(rows, index=table.index))


def _lengths(groups: Sequence[Group]) -> str:
    columns: dict[str, Column] = {"model": label}
    for name in groups[0].table:
        if name.startswith(OF_LENGTH):
            columns[name] = mean(name, 3)
        if name.startswith(BLEU_OF_LENGTH):
            columns[name] = mean(name, 1)
    return groups_table(groups, columns, words=1)


def _of_states(group: Group) -> bool:
    """Whether attention weighs states and not tokens."""
    return getattr(group.run.settings.model, "value", "states") == "states"


def _draw(texts, path):
    """A panel a text; a line a model, its dots hollow where states are the values."""
    colours = pictures.colours(itertools.chain(*texts))
    models = max(map(len, texts))
    size = 2 + 1.8 * len(texts), 1 + 0.25 * models
    figure, axes = pictures.new_figure(
        "",
        1,
        len(texts),
        size,
        sharey=True,
        squeeze=False,
    )
    for text, axis in zip(texts, axes[0]):
        for group in text:
            losses = group.table[LOSS]
            colour = colours.get(group.label, "grey")
            filling = "none" if _of_states(group) else "full"
            pictures.dots(axis, group.label, losses, colour, filling)
        title = textwrap.fill(text[0].run.text, 24)
        pictures.finish_axis(axis, title, "prefix loss, test split")
    axes[0, 0].invert_yaxis()
    pictures.save_figure(figure, path)


def _draw_lengths(groups, reference, path):
    """Losses, or how far above the reference's; dashed where states are the values."""
    losses = pd.DataFrame()
    for group in groups:
        losses[group.run.model] = group.table.filter(
            regex=f"^{OF_LENGTH}"
        ).mean()
    losses.index = losses.index.str.removeprefix(OF_LENGTH)
    title = "prefix loss; dashed: states are the values"
    if reference in losses:
        losses = losses.sub(losses[reference], axis=0)
        title = f"{title}; above the reference's"
    figure, axis = pictures.new_figure("", 1, 1, (8, 7))
    colours = pictures.colours(groups)
    for group in groups:
        if group.label in colours:
            style = "o--" if _of_states(group) else "o-"
            look = {
                "color": colours[group.label],
                "label": group.label,
            }
            axis.plot(losses[group.run.model], style, **look)
    below = "tokens of the longer side of a test pair"
    pictures.finish_axis(axis, f"{groups[0].run.text}\n{title}", below)
    figure.legend(
        loc="outside lower center",
        ncols=3,
        fontsize=8,
    )
    pictures.save_figure(figure, path)
