"""Systems of several families at equal size: loss and BLEU beside what they cost."""

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from reprt.files import write_text
from reprt.reports.cost import cost_section, power
from reprt.reports.escaping import in_markdown
from reprt.reports.files import label_points, new_figure, notes, save_figure
from reprt.reports.provenance import left_out_lines, out_of_time_lines, starts_lines
from reprt.reports.runs import Run, read_texts
from reprt.reports.series import (
    NOT_RUN,
    Series,
    by_schedule,
    drawn,
    rate_names,
    with_spread,
)
from reprt.reports.tables import markdown
from reprt.runs.records import RunFolderError

CHOSEN_BY = "val_prefix_loss_per_token"
LOSS, BLEU = "test_prefix_loss_per_token", "test_bleu"
NEEDED = {CHOSEN_BY, LOSS, "train_flops"}
TERA = 1e12
PRODUCTS = "operations of the training's products, in 10¹²"
HEAD = (
    "model | looks ahead | seeds | prefix loss, test | − reference's | BLEU | "
    "− reference's | chrF | FLOPs | seconds of training | peak memory, GiB"
).split(" | ")


def write_families(folder: Path, out: Path | None = None) -> Path:
    """Writes `families.md` and `families.png` from trials on one text or several.

    A model that was trained at several rates counts with one of them: the one with the
    lowest prefix loss on the validation split, over the seeds that all its rates have.
    The losses and translations of the page are those of the test split.

    A file `notes.md` in the folder becomes part of the page. A heading in its first
    line becomes the page's title. The picture shows the models with a colour.

    Args:
        folder: a folder with runs, or with a folder of them for each text.
        out: where the files go; None for the same folder.

    Returns:
        The path of the page.

    Raises:
        RunFolderError: if there is no run.
    """
    texts, out = read_texts(folder), out or folder
    title, said = "# Systems of several families, at equal size", notes(folder)
    if said and said[0].startswith("# "):
        title, _, said[0] = said[0].partition("\n\n")
    lines = [
        title,
        "",
        "The *prefix loss* is the cross-entropy, in nats per token, of a decoder that "
        "gets only the tokens before each position, as in a translation. Models were "
        "trained at several rates, and the validation split chose among them. Losses, "
        "BLEU and chrF here are of the test split, with greedy search. A number with ± "
        "is a mean over seeds and its standard deviation. Differences are paired by "
        "seed. A bold one is larger than twice its standard deviation.",
        "",
        "![Validation loss by epoch, and BLEU and prefix loss beside the cost of the "
        "training](families.png)",
        "",
        *said,
    ]
    pictures = []
    for runs in texts:
        finished = [run for run in runs if NEEDED <= run.numbers.keys()]
        chosen = choose(finished)
        pictures.append((runs[0].manifest["text"], chosen))
        lines += _section(runs, finished, chosen)
    write_text(out / "families.md", "\n".join(lines))
    _draw([each for each in pictures if each[1]], out / "families.png")
    return out / "families.md"


def by_rate(runs: Sequence[Run]) -> dict[str, list[Series]]:
    """Returns of each model a series for each of its rates."""
    found: dict[str, list[Series]] = {}
    for each in by_schedule(runs):
        found.setdefault(each.model, []).append(each)
    return found


def choose(runs: Sequence[Run]) -> list[Series]:
    """Returns each model at its best rate, the lowest loss on the test split first.

    Args:
        runs: finished runs on one text.

    Raises:
        RunFolderError: if the rates of a model have no seed in common.
    """
    best = []
    for model, rates in by_rate(runs).items():
        seeds = {each.schedule: {run.seed for run in each.runs} for each in rates}
        common = set.intersection(*seeds.values())
        if not common:
            raise RunFolderError(
                f"Expected the rates of {model} to have a seed in common, by which one "
                f"is chosen. Received: {seeds}. Run another, or remove one."
            )
        best.append(min(rates, key=lambda each: _loss_of_seeds(each, common)))
    return sorted(best, key=lambda each: each.mean(LOSS))


def _loss_of_seeds(series: Series, seeds) -> float:
    return statistics.mean(
        run.numbers[CHOSEN_BY] for run in series.runs if run.seed in seeds
    )


def _section(runs, finished, chosen) -> list[str]:
    manifest = runs[0].manifest
    others = [run for run in runs if run not in finished]
    measured = [run for run in others if run.results]
    unfinished = [run for run in others if not run.results]
    pairs = manifest["sentence_pairs"]
    return [
        f"## {in_markdown(manifest['text'])}",
        "",
        f"{pairs['train']:,} training, {pairs['dev']:,} validation and "
        f"{pairs['test']:,} test pairs"
        + ("." if manifest["official_text"] else ", not of TED-HRLR."),
        "",
        *([*_table(chosen), *_rates(finished, chosen)] if chosen else []),
        *out_of_time_lines(finished),
        *left_out_lines("Not finished", unfinished),
        *left_out_lines("Without these numbers", measured),
        *cost_section([(each.label, each.cost) for each in chosen]),
        "### How it was run",
        "",
        *starts_lines(finished),
    ]


def _table(chosen) -> list[str]:
    reference = next((each for each in chosen if each.reference), None)
    rows = []
    for each in chosen:
        seconds = [sum(run.seconds) for run in each.runs]
        memory = each.values("peak_memory_bytes")
        rows.append(
            [
                each.label,
                "**yes**" if each.looks_ahead else "no",
                str(len(each.runs)),
                each.cell(LOSS, 3),
                _difference(each, reference, LOSS, 3),
                each.cell(BLEU, 1),
                _difference(each, reference, BLEU, 1),
                each.cell("test_chrf", 1),
                power(each.mean("train_flops")),
                f"{statistics.median(seconds):,.0f}",
                f"{max(memory) / 2**30:.2f}" if memory else NOT_RUN,
            ]
        )
    said = []
    if reference:
        said = [f"The reference is {in_markdown(reference.label)}.", ""]
    return [*said, *markdown(HEAD, "ll" + "r" * 9, rows), ""]


def _difference(series, reference, name, digits) -> str:
    """The mean over seeds, bold if it is larger than twice its standard deviation."""
    alone = reference is None or series is reference
    differences = [] if alone else series.differences(reference, name)
    if not differences:
        return "–"
    cell = with_spread(differences, digits, "+")
    spread = statistics.stdev(differences) if differences[1:] else math.inf
    return f"**{cell}**" if abs(statistics.mean(differences)) > 2 * spread else cell


def _rates(finished, chosen) -> list[str]:
    """Which rates were tried, and what the validation split said of them."""
    tried = by_schedule(finished)
    names = rate_names(tried)
    peaks = sorted(set(names.values()))
    best = {(each.model, each.schedule) for each in chosen}
    cells = {}
    for each in tried:
        key, cell = (each.model, each.schedule), each.cell(CHOSEN_BY, 3)
        cells[each.model, names[key]] = f"**{cell}**" if key in best else cell
    rows = [
        [each.label, *(cells.get((each.model, peak), NOT_RUN) for peak in peaks)]
        for each in chosen
    ]
    head = ["prefix loss, validation", *peaks]
    return [*markdown(head, "l" + "r" * len(peaks), rows), ""]


def _draw(texts, path: Path):
    """A row a text: its curves, and BLEU and loss against the training's products."""
    if not texts:
        return
    from matplotlib.ticker import LogLocator, MaxNLocator

    figure, rows = new_figure(
        len(texts), 3, figsize=(13.5, 4.2 * len(texts)), squeeze=False
    )
    for (text, chosen), (curves, translations, losses) in zip(texts, rows):
        colours = drawn(chosen)
        shown = [each for each in chosen if each.model in colours]
        for each in shown:
            _draw_curves(curves, each, colours[each.model])
        _draw_points(translations, shown, colours, BLEU)
        label_points(losses, _draw_points(losses, shown, colours, LOSS))
        for axis in (curves, losses):
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_formatter("")
        curves.xaxis.set_major_locator(MaxNLocator(integer=True))
        for axis, title, below in (
            (curves, f"{text}\nValidation loss; dashed: looks ahead", "epoch"),
            (translations, "BLEU: higher is better", PRODUCTS),
            (losses, "Prefix loss: lower is better", PRODUCTS),
        ):
            axis.set_title(title, loc="left", fontsize=10)
            axis.set_xlabel(below)
            axis.grid(alpha=0.3, which="both")
    save_figure(figure, path)


def _draw_curves(axis, series, colour):
    """A line a run: the teacher-forced loss, in general the prefix loss."""
    for run in series.runs:
        axis.plot(
            [row["epoch"] for row in run.log],
            [row["val_loss_per_token"] for row in run.log],
            "--" if series.looks_ahead else "-",
            marker=".",
            color=colour,
            alpha=0.7,
        )


def _draw_points(axis, shown, colours, name):
    """A dot a run; returns for each model the place of its label."""
    points = []
    for each in shown:
        runs = [run for run in each.runs if name in run.numbers]
        if not runs:
            continue
        colour = colours[each.model]
        axis.plot(
            [run.numbers["train_flops"] / TERA for run in runs],
            [run.numbers[name] for run in runs],
            "o",
            color=colour,
            alpha=0.7,
        )
        place = each.mean("train_flops") / TERA, each.mean(name)
        points.append((*place, each.label, colour))
    return points
