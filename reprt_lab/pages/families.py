"""Systems of several families at equal size: loss and BLEU beside what they cost."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd
from matplotlib.ticker import LogLocator

from reprt.analysis.cost import scientific
from reprt_lab.pages import pictures
from reprt_lab.pages.cost import cost_section
from reprt_lab.pages.frame import (
    Group,
    by_schedule,
    difference,
    groups_table,
    mean,
    runs_table,
    scores_of,
    spread,
)
from reprt_lab.pages.runs import left_out, out_of_time, ways
from reprt_lab.pages.tables import fill, markdown, plain
from reprt_lab.records import Run

CHOSEN_BY = "val_prefix_loss_per_token"
LOSS, BLEU = "test_prefix_loss_per_token", "test_bleu"
NEEDED = {CHOSEN_BY, LOSS, "train_flops"}
TERA = 1e12
PRODUCTS = "operations of the training's\nproducts, in 10¹²"


def _flops(group: Group, reference: Group | None) -> str:
    return scientific(group.table["train_flops"].mean())


def _seconds(group: Group, reference: Group | None) -> str:
    return f"{group.table['train_seconds'].median():,.0f}"


def _memory(group: Group, reference: Group | None) -> str:
    return spread([group.table["peak_memory_bytes"].max() / 2**30], 2)


SCORES = scores_of("families")
COLUMNS = {
    "prefix loss, test": mean(LOSS, 3),
    "loss − reference's": difference(LOSS, 3, bold=True),
    "BLEU": mean(BLEU, 1),
    "BLEU − reference's": difference(BLEU, 1, bold=True),
    **SCORES,
    "FLOPs": _flops,
    "seconds of training": _seconds,
    "peak memory, GiB": _memory,
}


def page_values(
    texts: Sequence[Sequence[Run]], settings, out: Path
) -> dict[str, str]:
    chosen, sections = compared(texts, settings.reference)
    if any(chosen):
        _draw([groups for groups in chosen if groups], out / "families.png")
    picture = "families.png" if any(chosen) else ""
    return {"picture": picture, "sections": "\n\n".join(sections)}


def compared(
    texts: Iterable[Sequence[Run]], reference: str | None
) -> tuple[list[list[Group]], list[str]]:
    """Returns each text's models at their best rates, and the page's sections."""
    chosen, sections = [], []
    for runs in texts:
        table = runs_table(filter(measured, runs))
        chosen.append(choose(table))
        sections.append(_section(runs, table, chosen[-1], reference))
    return chosen, sections


def measured(run: Run) -> bool:
    return NEEDED <= run.numbers.keys()


def choose(table: pd.DataFrame) -> list[Group]:
    """Returns each model at its best rate, the lowest loss on the test split first.

    The best rate has the lowest prefix loss on the validation split, over the seeds
    that all the model's rates have. The table's runs are on one text.
    """
    best, groups = {}, by_schedule(table)
    for model, rows in table.groupby("model"):
        losses = rows.pivot(index="seed", columns="schedule", values=CHOSEN_BY)
        if losses.dropna().empty:
            seeds = {rate: {*losses[rate].dropna().index} for rate in losses}
            raise ValueError(
                f"Expected the rates of {model} to have a seed in common, by which one "
                f"is chosen. Received: {seeds}. Run another, or remove one."
            )
        best[model] = losses.dropna().mean().idxmin()
    chosen = [
        group for group in groups if group.run.schedule == best[group.run.model]
    ]
    return sorted(chosen, key=lambda group: group.table[LOSS].mean())


def _section(
    runs: Sequence[Run],
    table: pd.DataFrame,
    chosen: Sequence[Group],
    reference: str | None,
) -> str:
    manifest, others = (
        runs[0].manifest,
        [run for run in runs if not measured(run)],
    )
    usual = next(
        (group for group in chosen if group.run.model == reference), None
    )
    return fill(
        "families_text",
        text=plain(manifest.text),
        **manifest.sentence_pairs,
        origin="." if manifest.official_text else ", not of TED-HRLR.",
        reference=plain(usual.run.label) if usual else "",
        results=groups_table(chosen, COLUMNS, usual),
        rates=_rates(table, chosen),
        out_of_time=out_of_time(table["run"]),
        unfinished=left_out(
            "Not finished", (r for r in others if not r.metrics)
        ),
        unmeasured=left_out(
            "Without these numbers", (r for r in others if r.metrics)
        ),
        cost=cost_section({group.run.label: group.table for group in chosen}),
        ways=ways(table["run"]),
    )


def _rates(table: pd.DataFrame, chosen: Sequence[Group]) -> str:
    """Which rates were tried, and what the validation split said of them."""
    best = {group.run.name for group in chosen}
    rows: dict[str, dict[str, str]] = {}
    rates = dict.fromkeys(sorted({*table["rate"]}), "not run")
    for run, _ in chosen:
        rows[run.model] = {"prefix loss, validation": plain(run.label), **rates}
    for group in by_schedule(table):
        text = group.cell(CHOSEN_BY, 3)
        text = f"**{text}**" if group.run.name in best else text
        rows[group.run.model][group.rate] = text
    return markdown([*rows.values()])


def _draw(texts: Sequence[Sequence[Group]], path: Path):
    """A row a text: its losses by epoch, BLEU and loss against the products."""
    runs = [group.run for groups in texts for group in groups]
    shown = pictures.colours(runs)
    figure, rows = pictures.new_figure(
        "", len(texts), 3, (10.5, 3.6 * len(texts)), squeeze=False
    )
    for groups, (curves, translations, losses) in zip(texts, rows):
        for run, table in (
            group for group in groups if group.run.label in shown
        ):
            look = {"color": shown[run.label], "alpha": 0.7}
            style = "--" if run.looks_ahead else "-"
            for each in table["run"]:
                # Teacher-forced losses: of a model that does not look ahead, the
                # validation loss is its prefix loss.
                log = pd.DataFrame(each.log)
                losses_by_epoch = (
                    log["train_loss_per_token"],
                    log["val_loss_per_token"],
                )
                curves.plot(*losses_by_epoch, style, marker=".", **look)
            for axis, name in ((translations, BLEU), (losses, LOSS)):
                axis.plot(table["train_flops"] / TERA, table[name], "o", **look)
        curves.set_xscale("log")
        for axis in (curves, losses):
            axis.set_yscale("log")
        for axis in (curves.xaxis, curves.yaxis, losses.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter("")
        text = groups[0].run.text
        title = f"{text}\nValidation loss by training loss; dashed: looks ahead"
        pictures.finish_axis(curves, title, "training loss, a point an epoch")
        pictures.finish_axis(translations, "BLEU: higher is better", PRODUCTS)
        pictures.finish_axis(losses, "Prefix loss: lower is better", PRODUCTS)
    labels = {run.label: shown[run.label] for run in runs if run.label in shown}
    pictures.add_legend(figure, labels)
    pictures.save_figure(figure, path)
