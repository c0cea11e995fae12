"""The report on a few runs: a page and a picture."""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from reprt_lab import paper
from reprt_lab.pages import pictures
from reprt_lab.pages.cost import cost_section
from reprt_lab.pages.frame import (
    FORCED,
    PREFIX,
    Group,
    cells,
    corpus,
    epochs,
    gap,
    group_of_paper,
    groups_table,
    label,
    mean,
    parameters,
    runs_table,
    scores_of,
)
from reprt_lab.pages.runs import running
from reprt_lab.pages.tables import markdown, plain
from reprt_lab.recipe import Look
from reprt_lab.records import Run

COLUMNS = {
    "parameters": parameters,
    "epochs": epochs,
    "training loss": mean("train_loss", 3),
    "validation loss": mean("val_loss", 3),
    "training − paper": gap("train_loss", 2),
    "validation − paper": gap("val_loss", 2),
    "prefix loss, validation": mean("val_prefix_loss", 3),
    "seconds an epoch": mean("seconds_an_epoch", 1),
    **scores_of("report"),
}
PAPER_COLUMNS = {
    "epochs": epochs,
    "training loss": mean("train_loss", 2),
    "validation loss": mean("val_loss", 2),
    "seconds an epoch": mean("seconds_an_epoch", 0),
}
MEANS_OF_TOKENS = {
    "model": label,
    "run": lambda group: f"`{group.run.name}`",
    "preset, and what departs": lambda group: group.settings,
    "training loss": mean("train_loss_per_token", 3),
    "validation loss": mean(FORCED, 3),
    "prefix loss, validation": mean(PREFIX, 3),
}


def page_values(runs, settings, out):
    groups, values = values_of_runs(runs, out / "report.png")
    averaged = []
    for run in runs:
        if run.metrics and run.metrics.averaged_models:
            averaged.append(run)
    return {
        **values,
        **runs[0].manifest.sentence_pairs,
        "results": _results(groups),
        "runs": groups_table(groups, MEANS_OF_TOKENS, words=3),
        "averaged": _labels(averaged),
    }


def values_of_runs(
    runs: Sequence[Run],
    picture: Path,
) -> tuple[list[Group], dict[str, str]]:
    """Draws the curves of runs; returns a group of each, and what pages say of all."""
    runs = _with_unique_labels(runs)
    groups = [Group(run.label, runs_table([run])) for run in runs]
    colours = pictures.colours(groups)
    _draw_losses(runs, colours, picture)
    stepped = [run for run in runs if run.steps and run.label in colours]
    if stepped:
        _draw_steps(stepped, colours, picture.with_name("steps.png"))
    return groups, {
        "running": running(runs),
        "sha256": runs[0].manifest.text_sha256[:16],
        "steps": "steps.png" if stepped else "",
        "best": _best_models(runs),
        "leaking": _labels(run for run in runs if run.looks_ahead),
        "cost": cost_section(groups),
        "translations": _examples(runs),
    }


def _labels(runs: Iterable[Run]) -> str:
    return ", ".join(plain(run.label) for run in runs)


def _best_models(runs: Sequence[Run]) -> str:
    """Names the models that were chosen by validation, each with its step."""
    models = []
    for run in runs:
        if run.metrics and run.metrics.best_step is not None:
            early = ", stopped early" * run.metrics.stopped_early
            step = f"step {run.metrics.best_step:,}{early}"
            models.append(f"{plain(run.label)} ({step})")
    return ", ".join(models)


def _with_unique_labels(runs: Sequence[Run]) -> Sequence[Run]:
    """Gives runs of one label labels of their own, by names and settings."""
    if len({run.label for run in runs}) == len(runs):
        return runs
    labelled = []
    for run in runs:
        name = ", ".join([run.label, run.name, *run.departures])
        labelled.append(run.changed(look=Look(label=name)))
    return labelled


def _results(groups: Sequence[Group]) -> str:
    """The runs, and below them what the paper has of their models."""
    run = groups[0].run
    rows = []
    for group in groups:
        row = {
            "model": label(group),
            "whose": f"ours, {corpus(group)}",
        }
        comparable = run.manifest.official_text and group.run.finished
        reference = None
        if comparable and not group.run.departures:
            reference = group_of_paper(run.pair, group.run.settings.preset)
        rows.append(row | cells(group, COLUMNS, reference))
    for group in groups:
        model = group.run.name
        paper_group = group_of_paper(run.pair, model)
        if paper_group is not None:
            row = {
                "model": label(group),
                "whose": f"paper, TED-HRLR {run.pair}",
                "parameters": f"{paper.PARAMETERS[model]:,} (on pt_to_en)",
            }
            rows.append(row | cells(paper_group, PAPER_COLUMNS))
    return markdown(rows, 2)


def _examples(runs: Sequence[Run]) -> str:
    """A section on how the first sentences of the test split were translated."""
    results = {}
    for run in runs:
        if run.metrics and run.metrics.examples:
            results[plain(run.label)] = run.metrics
    if not results:
        return ""
    lines = [f"## Translations of the test split, {plain(runs[0].text)}", ""]
    first, *_ = results.values()
    for number, example in enumerate(first.examples):
        lines.append(f"- {plain(example['source'])}")
        lines.append(f"  - reference: {plain(example['reference'])}")
        for name, metrics in results.items():
            translation = metrics.examples[number]["translation"]
            lines.append(f"  - {name}: {plain(translation)}")
    signature = f"Sacrebleu's signature is `{first.test_bleu_signature}`."
    return "\n".join([*lines, "", f"Greedy search. {signature}"])


def _draw_steps(runs, colours, path):
    """Draws the losses, and any BLEU, that were measured between epochs."""
    panels = {
        "loss_per_token": "Loss, nats per token: validation, and training dashed"
    }
    rows = itertools.chain.from_iterable(run.steps for run in runs)
    if any("val_bleu" in row for row in rows):
        panels["bleu"] = "BLEU, greedy, of their first sentences"
    size = (1 + 4 * len(panels), 4)
    figure, axes = pictures.new_figure(
        runs[0].text, 1, len(panels), size, squeeze=False
    )
    labels = {}
    for axis, (name, title) in zip(axes[0], panels.items()):
        for run in runs:
            labels[run.label] = colours[run.label]
            table = pd.DataFrame(run.steps).set_index("step")
            for split, style in (("train", ".--"), ("val", ".-")):
                column = f"{split}_{name}"
                if column in table:
                    points = table[column].dropna()
                    axis.plot(points, style, color=colours[run.label])
        pictures.finish_axis(axis, title, "step")
    pictures.add_legend(figure, labels)
    pictures.save_figure(figure, path)


def _draw_losses(runs, colours, path):
    """Draws the losses of each epoch, and the last prefix loss."""
    figure, axis = pictures.new_figure(runs[0].text, 1, 1, (6, 4.5))
    labels = {}
    for run in runs:
        if run.label in colours and run.log:
            look = {"color": colours[run.label]}
            labels[run.label] = colours[run.label]
            log = pd.DataFrame(run.log).set_index("epoch")
            axis.plot(log["train_loss"], ".--", **look)
            axis.plot(log["val_loss"], ".-", **look)
            if "val_prefix_loss" in run.numbers:
                loss = run.numbers["val_prefix_loss"]
                axis.plot(len(run.log), loss, "*", markersize=12, **look)
    axis.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    axis.set_ylabel("nats per token")
    title = (
        "Teacher-forced losses: validation, and training dashed;\n"
        "star: the prefix loss, which counts in a translation"
    )
    pictures.finish_axis(axis, title, "epoch")
    pictures.add_legend(figure, labels)
    pictures.save_figure(figure, path)
