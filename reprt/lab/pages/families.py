"""Systems of several families at equal size: loss and BLEU beside what they cost."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.ticker import LogLocator, MaxNLocator

from reprt.lab.pages.cost import cost_section, power
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
from reprt.lab.pages.pictures import add_legend, colours, new_figure, save_figure
from reprt.lab.pages.provenance import left_out, out_of_time, ways
from reprt.lab.pages.runs import Run, read_texts
from reprt.lab.pages.tables import markdown, notes, plain, write_markdown
from reprt.lab.recipe import PageSettings
from reprt.lab.records import RunFolderError

CHOSEN_BY = "val_prefix_loss_per_token"
LOSS, BLEU = "test_prefix_loss_per_token", "test_bleu"
NEEDED = {CHOSEN_BY, LOSS, "train_flops"}
TERA = 1e12
PRODUCTS = "operations of the training's\nproducts, in 10¹²"
HEAD = (
    "model | looks ahead | seeds | prefix loss, test | − reference's | BLEU | "
    "− reference's | chrF | FLOPs | seconds of training | peak memory, GiB"
).split(" | ")


def write_families(folder: Path, settings: PageSettings, out: Path) -> Path:
    """Writes `families.md` and `families.png` from trials on one text or several.

    A model that was trained at several rates counts with one of them: the one with the
    lowest prefix loss on the validation split, over the seeds that all its rates have.
    The losses and translations of the page are those of the test split.

    A file `notes.md` in the folder becomes part of the page. A heading in its first
    line becomes the page's title. The picture shows the models with a colour.

    Args:
        folder: a folder with runs, or with a folder of them for each text.
        settings: those of the page; differences are from its `reference`.
        out: where the files go.

    Returns:
        The path of the page.

    Raises:
        RunFolderError: if there is no run, or no rate of a model can be chosen.
    """
    texts = read_texts(folder)
    tables = [runs_table(run for run in runs if measured(run)) for runs in texts]
    chosen = [choose(table) for table in tables]
    if any(chosen):
        _draw([groups for groups in chosen if groups], out / "families.png")
    title, said = "# Systems of several families, at equal size", notes(folder)
    if said.startswith("# "):
        title, _, said = said.partition("\n\n")
    return write_markdown(
        out / "families.md",
        title,
        "The *prefix loss* is the cross-entropy, in nats per token, of a decoder that "
        "gets only the tokens before each position, as in a translation. Models were "
        "trained at several rates, and the validation split chose among them. Losses, "
        "BLEU and chrF here are of the test split, with greedy search. A number with ± "
        "is a mean over seeds and its standard deviation. Differences are paired by "
        "seed. A bold one is larger than twice its standard deviation.",
        "![Validation loss by epoch, and BLEU and prefix loss beside the cost of the "
        "training](families.png)",
        said,
        *(
            block
            for runs, table, groups in zip(texts, tables, chosen)
            for block in _section(runs, table, groups, settings.reference)
        ),
    )


def measured(run: Run) -> bool:
    """Returns whether a run has what the page is about."""
    return NEEDED <= run.numbers.keys()


def choose(table: pd.DataFrame) -> list[pd.DataFrame]:
    """Returns each model's group at its best rate, the lowest loss on the test first.

    Args:
        table: finished runs on one text.

    Raises:
        RunFolderError: if the rates of a model have no seed in common.
    """
    best = {}
    for model, runs in table.groupby("model"):
        losses = runs.pivot(index="seed", columns="schedule", values=CHOSEN_BY)
        common = losses.dropna()
        if common.empty:
            seeds = {rate: {*losses[rate].dropna().index} for rate in losses}
            raise RunFolderError(
                f"Expected the rates of {model} to have a seed in common, by which one "
                f"is chosen. Received: {seeds}. Run another, or remove one."
            )
        best[model] = common.mean().idxmin()
    groups = [g for g in by_schedule(table) if best[run_of(g).model] == run_of(g).schedule]
    return sorted(groups, key=lambda group: group[LOSS].mean())


def _section(
    runs: Sequence[Run],
    table: pd.DataFrame,
    chosen: Sequence[pd.DataFrame],
    reference: str | None,
) -> list[str]:
    manifest, others = runs[0].manifest, [run for run in runs if not measured(run)]
    pairs = manifest.sentence_pairs
    return [
        f"## {plain(manifest.text)}",
        f"{pairs.train:,} training, {pairs.dev:,} validation and {pairs.test:,} test "
        "pairs" + ("." if manifest.official_text else ", not of TED-HRLR."),
        *([*_results(chosen, reference), _rates(table, chosen)] if chosen else []),
        out_of_time(table["run"]),
        left_out("Not finished", (run for run in others if not run.finished)),
        left_out("Without these numbers", (run for run in others if run.finished)),
        cost_section({run_of(group).label: group for group in chosen}),
        "### How it was run",
        ways(table["run"]),
    ]


def _results(chosen: Sequence[pd.DataFrame], reference: str | None) -> list[str]:
    usual = next((group for group in chosen if run_of(group).model == reference), None)
    rows = []
    for group in chosen:
        memory = group["peak_memory_bytes"].max() / 2**30
        rows.append(
            [
                plain(run_of(group).label),
                "**yes**" if group["looks_ahead"].iloc[0] else "no",
                str(len(group)),
                cell(group, LOSS, 3),
                _difference(group, usual, LOSS, 3),
                cell(group, BLEU, 1),
                _difference(group, usual, BLEU, 1),
                cell(group, "test_chrf", 1),
                power(group["train_flops"].mean()),
                f"{group['train_seconds'].median():,.0f}",
                NOT_RUN if pd.isna(memory) else f"{memory:.2f}",
            ]
        )
    said = "" if usual is None else f"The reference is {plain(run_of(usual).label)}."
    return [said, markdown(HEAD, rows, names=2)]


def _difference(group, reference, name, digits) -> str:
    """The mean over seeds, bold if it is larger than twice its standard deviation."""
    if reference is None or group is reference:
        return NONE
    found = differences(group, reference, name)
    text = spread(found, digits, "+").replace(NOT_RUN, NONE)
    return f"**{text}**" if abs(found.mean()) > 2 * found.std() else text


def _rates(table: pd.DataFrame, chosen: Sequence[pd.DataFrame]) -> str:
    """Which rates were tried, and what the validation split said of them."""
    best = {(run_of(group).model, run_of(group).schedule) for group in chosen}
    cells = {}
    for group in by_schedule(table):
        run, text = run_of(group), cell(group, CHOSEN_BY, 3)
        text = f"**{text}**" if (run.model, run.schedule) in best else text
        cells[run.model, group["rate"].iloc[0]] = text
    rates = sorted({*table["rate"]})
    rows = [
        [plain(run.label), *(cells.get((run.model, rate), NOT_RUN) for rate in rates)]
        for run in map(run_of, chosen)
    ]
    return markdown(["prefix loss, validation", *rates], rows)


def _draw(texts: Sequence[Sequence[pd.DataFrame]], path: Path):
    """A row a text: its curves, and BLEU and loss against the training's products."""
    runs = [run_of(group) for groups in texts for group in groups]
    shown = colours(runs)
    figure, rows = new_figure(len(texts), 3, (10.5, 3.6 * len(texts)), squeeze=False)
    for groups, (curves, translations, losses) in zip(texts, rows):
        for group in groups:
            if colour := shown.get(run_of(group).model):
                _draw_curves(curves, group, colour)
                for axis, name in ((translations, BLEU), (losses, LOSS)):
                    products = group["train_flops"] / TERA
                    axis.plot(products, group[name], "o", color=colour, alpha=0.7)
        for axis in (curves, losses):
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_formatter("")
        curves.xaxis.set_major_locator(MaxNLocator(integer=True))
        text = run_of(groups[0]).manifest.text
        for axis, title, below in (
            (curves, f"{text}\nValidation loss; dashed: looks ahead", "epoch"),
            (translations, "BLEU: higher is better", PRODUCTS),
            (losses, "Prefix loss: lower is better", PRODUCTS),
        ):
            axis.set_title(title, loc="left", fontsize=10)
            axis.set_xlabel(below)
            axis.grid(alpha=0.3, which="both")
    labels = {run.label: shown[run.model] for run in runs if run.model in shown}
    add_legend(figure, labels)
    save_figure(figure, path)


def _draw_curves(axis, group: pd.DataFrame, colour: str):
    """A line a run: the teacher-forced loss, in general the prefix loss."""
    for run in group["run"]:
        axis.plot(
            [row["epoch"] for row in run.log],
            [row["val_loss_per_token"] for row in run.log],
            "--" if run.manifest.looks_ahead else "-",
            marker=".",
            color=colour,
            alpha=0.7,
        )
