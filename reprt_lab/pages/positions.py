"""Position methods: each model's loss, a dot a seed, and its losses by length."""

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from reprt_lab.pages import families, pictures
from reprt_lab.pages.frame import Group, runs_table, spread
from reprt_lab.pages.runs import ways
from reprt_lab.pages.tables import markdown, plain
from reprt_lab.records import OfLength, Run


def page_values(
    texts: Sequence[Sequence[Run]], settings, out: Path
) -> dict[str, str]:
    """Runs that were trained on short sentences only stand by themselves."""
    whole = [[run for run in runs if not _short(run)] for runs in texts]
    chosen, sections = families.compared(
        filter(None, whole), settings.reference
    )
    if any(chosen):
        _draw([groups for groups in chosen if groups], out / "positions.png")
    short = [
        run
        for runs in texts
        for run in runs
        if _short(run) and families.measured(run)
    ]
    if len(kinds := {f"{run.text}, {_short(run)} tokens" for run in short}) > 1:
        raise ValueError(
            "Expected the runs on short sentences to be on one text, of one "
            f"'train_tokens'. Received: {'; '.join(sorted(kinds))}."
        )
    groups = families.choose(runs_table(short))
    short = [run for group in groups for run in group.table["run"]]
    if short:
        _draw_lengths(short, settings.reference, out / "lengths.png")
    return {
        "picture": "positions.png" if any(chosen) else "",
        "sections": "\n\n".join(sections),
        "trained": str(_short(short[0])) if short else "",
        "on": plain(short[0].text) if short else "",
        "lengths": markdown(list(map(_by_length, groups))),
        "commands": ways(short),
    }


def _short(run: Run) -> int | None:
    return run.settings.text.train_tokens


def _lengths(run: Run) -> dict[str, OfLength]:
    """What came out on the test split's sentences of each range of tokens."""
    found, shortest = {}, 1
    for each in run.metrics.test_by_length if run.metrics else ():
        tokens = (
            f"{shortest} to {each.longest}"
            if each.longest
            else f"from {shortest}"
        )
        found[tokens], shortest = each, 1 + (each.longest or 0)
    return found


def _by_length(group: Group) -> dict[str, str]:
    runs = list(map(_lengths, group.table["run"]))
    row = {"model": plain(group.run.label)}
    for tokens in runs[0]:
        found = [each[tokens] for each in runs]
        losses = [each.prefix_loss_per_token for each in found]
        row[f"loss, {tokens} tokens"] = spread(losses, 3)
        if bleus := [each.bleu for each in found if each.bleu is not None]:
            row[f"BLEU, {tokens}"] = spread(bleus, 1)
    return row


def _of_states(run: Run) -> bool:
    """Whether attention weighs states and not tokens."""
    return getattr(run.settings.model, "value", "states") == "states"


def _draw(texts: Sequence[Sequence[Group]], path: Path):
    """A panel a text, two side by side; a line a model."""
    groups = [group for text in texts for group in text]
    labels = list(dict.fromkeys(group.run.label for group in groups))[::-1]
    shown = pictures.colours([group.run for group in groups])
    columns = min(2, len(texts))
    rows = math.ceil(len(texts) / columns)
    size = 2 + 2.6 * columns, rows * (1 + 0.25 * len(labels))
    figure, axes = pictures.new_figure(
        "", rows, columns, size, sharey=True, squeeze=False
    )
    for axis in axes.flat[len(texts) :]:
        axis.remove()
    for text, axis in zip(texts, axes.flat):
        for run, table in text:
            filling = "none" if _of_states(run) else "full"
            look = {"color": shown.get(run.label, "grey"), "fillstyle": filling}
            places = [labels.index(run.label)] * len(table)
            axis.plot(table[families.LOSS], places, "o", **look)
        title = textwrap.fill(text[0].run.text, 34)
        pictures.finish_axis(axis, title, "prefix loss, test split")
    axes[0, 0].set_yticks(range(len(labels)), labels, fontsize=9)
    pictures.save_figure(figure, path)


def _draw_lengths(runs: Sequence[Run], reference: str | None, path: Path):
    """Losses, or how far they are above the reference's, by the values' kind."""
    shown, title = pictures.colours(runs), f"{runs[0].text}: prefix loss"
    found = [
        (tokens, run.model, each.prefix_loss_per_token)
        for run in runs
        for tokens, each in _lengths(run).items()
    ]
    table = pd.DataFrame(found, columns=["tokens", "model", "loss"])
    losses = table.pivot_table(
        "loss", "tokens", "model", sort=False
    )  # means of seeds
    if usual := {run.model: run.label for run in runs}.get(reference or ""):
        losses, title = (
            losses.sub(losses[reference], axis=0),
            f"{title} − {usual}'s",
        )
    figure, axes = pictures.new_figure(title, 1, 2, (10, 6), sharey=True)
    for run in {run.model: run for run in runs if run.label in shown}.values():
        look = {"color": shown[run.label], "label": run.label}
        axes[int(_of_states(run))].plot(losses[run.model], "o-", **look)
    for axis, value in zip(axes, ("tokens", "states")):
        pictures.finish_axis(
            axis, f"Values: {value}", "tokens of the longer side of a test pair"
        )
        if axis.lines:
            axis.legend(
                loc="upper center",
                bbox_to_anchor=(0.5, -0.15),
                fontsize=8,
                ncols=2,
            )
    pictures.save_figure(figure, path)
