"""Systems of several families at equal size: loss and BLEU beside what they cost."""

import itertools
from collections.abc import Iterable, Sequence

import pandas as pd

from reprt_lab.pages import pictures
from reprt_lab.pages.cost import cost_section
from reprt_lab.pages.frame import (
    BLEU,
    LOSS,
    PREFIX,
    TRIALS,
    Group,
    difference,
    group_of,
    group_runs,
    groups_table,
    label,
    mean,
    rate,
    runs_table,
    scores_of,
    seeds,
)
from reprt_lab.pages.runs import left_out
from reprt_lab.pages.tables import fill, plain
from reprt_lab.records import Run

NEEDED = {PREFIX, LOSS, "train_flops"}
TERA = 1e12
PRODUCTS = "operations of the training's\nproducts, in 10¹²"


COLUMNS = {
    **TRIALS,
    "rate": rate,
    "prefix loss, validation": mean(PREFIX, 3),
    "prefix loss, test": mean(LOSS, 3),
    "loss − reference's": difference(LOSS, 3, bold=True),
    **scores_of("families"),
    "BLEU − reference's": difference(BLEU, 1, bold=True),
}
RATES = {
    "model": label,
    "rate": rate,
    "seeds": seeds,
    "prefix loss, validation": mean(PREFIX, 3),
}


def page_values(texts, settings, out):
    values, chosen = compare_models(texts, settings.reference)
    if chosen:
        _draw(chosen, out / "families.png")
    return {
        **values,
        "picture": "families.png" if chosen else "",
    }


def compare_models(
    texts: Iterable[Sequence[Run]],
    reference: str | None,
) -> tuple[dict[str, str], list[list[Group]]]:
    """Returns what the page says of texts, and each text's models at their best rates.

    A text without a run that has all numbers has a section, and no models.
    """
    chosen, sections = [], []
    unmeasured: list[Run] = []
    for runs in texts:
        unmeasured += [run for run in runs if not has_results(run)]
        table = runs_table(filter(has_results, runs))
        groups = choose(table)
        sections.append(_section(runs[0], table, groups, reference))
        if groups:
            chosen.append(groups)
    left_out_note = left_out(
        "Not finished, or without these numbers", unmeasured
    )
    return {
        "sections": "\n\n".join(sections),
        "unfinished": left_out_note,
    }, chosen


def has_results(run: Run) -> bool:
    return NEEDED <= run.numbers.keys()


def choose(table: pd.DataFrame) -> list[Group]:
    """Returns each model at its best rate, the lowest loss on the test split first.

    The best rate has the lowest prefix loss on the validation split, over the seeds
    that all the model's rates have. The table's runs are on one text.
    """
    chosen = []
    for model, rows in table.groupby("model"):
        losses = rows.pivot(
            index="seed",
            columns="settings",
            values=PREFIX,
        )
        mean_losses = losses.dropna().mean()
        if mean_losses.isna().any():
            seeds_by_rate = rows.groupby("rate")["seed"].agg(list).to_dict()
            raise ValueError(
                f"Expected the rates of {model} to have a seed in common, by which one "
                f"is chosen. Received: {seeds_by_rate}. Run another, or remove one."
            )
        chosen += group_runs(rows[rows["settings"] == mean_losses.idxmin()])
    return sorted(chosen, key=lambda group: group.mean(LOSS))


def _section(
    run: Run,
    table: pd.DataFrame,
    chosen: Sequence[Group],
    reference: str | None,
) -> str:
    reference_group = group_of(reference, chosen)
    rates = group_runs(table)
    several_rates = len(rates) > len(chosen)
    return fill(
        "families_text",
        text=plain(run.text),
        **run.manifest.sentence_pairs,
        reference=plain(reference_group.label) if reference_group else "",
        results=groups_table(chosen, COLUMNS, reference_group),
        rates=groups_table(rates, RATES) if several_rates else "",
        cost=cost_section(chosen),
    )


def _draw(texts, path):
    """A row a text: BLEU and loss against the products of the training."""
    colours = pictures.colours(itertools.chain(*texts))
    size = 8, 3.4 * len(texts)
    figure, rows = pictures.new_figure("", len(texts), 2, size, squeeze=False)
    for groups, (bleu, losses) in zip(texts, rows):
        for group in groups:
            if group.label in colours:
                look = {
                    "color": colours[group.label],
                    "alpha": 0.7,
                }
                products = group.table["train_flops"] / TERA
                bleu.plot(products, group.table[BLEU], "o", **look)
                losses.plot(products, group.table[LOSS], "o", **look)
        title = f"{groups[0].run.text}\nBLEU: higher is better"
        pictures.finish_axis(bleu, title, PRODUCTS)
        pictures.finish_axis(losses, "Prefix loss: lower is better", PRODUCTS)
    pictures.add_legend(figure, colours)
    pictures.save_figure(figure, path)
