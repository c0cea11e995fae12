"""The report on a few runs: a page and a picture."""

from collections.abc import Sequence
from pathlib import Path

from reprt.lab import paper
from reprt.lab.pages.cost import cost_section
from reprt.lab.pages.frame import NONE, NOT_RUN, runs_table
from reprt.lab.pages.pictures import add_legend, colours, new_figure, save_figure
from reprt.lab.pages.provenance import starts_of
from reprt.lab.pages.runs import Run, read_runs
from reprt.lab.pages.tables import (
    epochs_table,
    markdown,
    notes,
    plain,
    write_markdown,
)
from reprt.lab.recipe import PageSettings

HEAD = (
    "model |  | parameters | epochs | training loss | validation loss | seconds an "
    "epoch | baseline's seconds ÷ its | BLEU, test"
).split(" | ")
LOSSES = {"train_loss": "training", "val_loss": "validation"}


def write_report(folder: Path, settings: PageSettings, out: Path) -> Path:
    """Writes `report.md` and `report.png` on the runs in a folder.

    A file `notes.md` in the folder becomes part of the page, so that what a person
    has to say survives the next writing.

    Args:
        folder: a folder with runs on one text.
        settings: those of the page.
        out: where the files go.

    Returns:
        The path of the page.

    Raises:
        RunFolderError: as `read_runs`.
    """
    runs = read_runs(folder)
    _draw(runs, out / "report.png")
    manifest, pair = runs[0].manifest, runs[0].pair
    pairs, name = manifest.sentence_pairs, plain(manifest.text)
    if manifest.official_text:
        title, warning = f"on {name}", ""
        beside = "Beside the paper"
    else:
        title = f"on the {name}, not comparable with the paper"
        theirs = f"the paper has none on {pair}."
        if pair in paper.TABLE_1:
            theirs = (
                f"the paper's are on TED-HRLR {pair} and stand here for orientation "
                "alone."
            )
        warning = (
            "> **Not comparable with the paper.** Every number of ours on this page is "
            f"on the {name}; {theirs}"
        )
        beside = f"The {name} beside the paper's"
    return write_markdown(
        out / "report.md",
        f"# RePE and its baseline {title}",
        warning,
        f"{pairs.train:,} training, {pairs.dev:,} validation and {pairs.test:,} test "
        f"pairs (sha256 `{manifest.text_sha256[:16]}`). Losses are teacher-forced, in "
        "nats per token: the model gets the right words before each position.",
        "![Learning curves and seconds an epoch](report.png)",
        f"## {beside}",
        _results(runs),
        _averaged(runs),
        *_leak(runs),
        cost_section({run.label: runs_table([run]) for run in runs}),
        notes(folder),
        "## Epoch by epoch",
        *_epochs(runs),
        *_examples(runs),
        "## How it was run",
        _provenance(runs),
        "Models that one command trained on one machine took turns, an epoch each. The "
        "seconds of other starts do not compare. The files of the runs have every "
        "setting and every epoch.",
    )


def _results(runs: Sequence[Run]) -> str:
    """The runs, each below what the paper has of its model."""
    official, pair = runs[0].manifest.official_text, runs[0].pair
    ours = "ours" if official else f"ours, {plain(runs[0].manifest.text)}"
    theirs = "paper" if official else f"paper, TED-HRLR {pair} (not comparable)"
    published, rows = paper.TABLE_1.get(pair, {}), []
    baseline = next((r for r in runs if r.settings.preset == r.name == "baseline"), None)
    for run in runs:
        label, preset, result = plain(run.label), run.settings.preset, run.paper
        if not official and run.name == preset:
            result = published.get(preset)
        if result:
            cells = [
                f"{paper.PARAMETERS[preset]:,} (on pt_to_en)",
                f"{result.epochs}",
                f"{result.train_loss:.2f}",
                f"{result.val_loss:.2f}",
                f"{result.seconds:,.0f}",
                f"{published['baseline'].seconds / result.seconds:.2f}",
                NONE,
            ]
            rows.append([label, theirs, *cells])
        rows.append([label, ours, *_our_cells(run, baseline)])
        if result and official and run.finished and run.log:
            gaps = [f"{run.last[n] - getattr(result, n):+.2f}" for n in LOSSES]
            rows.append([label, "ours − paper", "", "", *gaps, "", "", ""])
    return markdown(HEAD, rows, names=2)


def _our_cells(run: Run, baseline: Run | None) -> list[str]:
    numbers = run.numbers
    parameters = f"{numbers['parameters']:,}" if run.metrics else NONE
    epochs = f"{len(run.log)}" + ("" if run.metrics else " so far")
    if not run.log:
        return [parameters, epochs, *[NOT_RUN] * 3, NONE, NOT_RUN]
    seconds, ratio = numbers["seconds_an_epoch"], NONE
    if baseline is not None and baseline.log:
        ratio = f"{baseline.numbers['seconds_an_epoch'] / seconds:.2f}"
    range_ = f" ({min(run.seconds):.1f} to {max(run.seconds):.1f})" if run.log[1:] else ""
    return [
        parameters,
        epochs,
        *(f"{numbers[name]:.3f}" for name in LOSSES),
        f"{seconds:.1f}{range_}",
        ratio,
        f"{numbers['test_bleu']:.1f}" if "test_bleu" in numbers else NOT_RUN,
    ]


def _averaged(runs: Sequence[Run]) -> str:
    """Says which results are of no epoch's model."""
    found = [
        f"{plain(run.label)} (of {len(run.metrics.averaged_models)})"
        for run in runs
        if run.metrics and run.metrics.averaged_models
    ]
    if not found:
        return ""
    return (
        f"The model of {', '.join(found)} is a mean of the last models that were kept. "
        "The tables have its validation losses and BLEU. The curves and the losses "
        "epoch by epoch are those of the models as they were trained."
    )


def _leak(runs: Sequence[Run]) -> list[str]:
    """The warning without which a reader would take these losses at face value."""
    leaking = [plain(run.label) for run in runs if run.manifest.looks_ahead]
    warning = (
        f"**Read the losses of {', '.join(leaking)} with care.** The published decoder "
        "normalises its embeddings over the whole target sentence. So each position "
        "sees the mean and the variance of words that it has yet to predict. Training "
        "and validation losses profit from this. A translation cannot, because it does "
        "not have those words yet."
    )
    head = [
        "validation loss, nats per token",
        "teacher-forced",
        "prefix: given only the words before, as in a translation",
    ]
    names = ("val_loss_per_token", "val_prefix_loss_per_token")
    rows = [
        [plain(run.label), *(f"{run.numbers[name]:.3f}" for name in names)]
        for run in runs
        if names[1] in run.numbers
    ]
    return [warning if leaking else "", markdown(head, rows) if rows else ""]


def _epochs(runs: Sequence[Run]) -> list[str]:
    official, name = runs[0].manifest.official_text, plain(runs[0].manifest.text)
    rows = [
        [
            f"{plain(run.label)}, {'ours' if official else name}, {label}",
            *(f"{row[key]:.2f}" for row in run.log),
        ]
        for run in runs
        for key, label in LOSSES.items()
    ]
    if runs[0].pair == "pt_to_en":
        theirs = "paper" if official else "paper, TED-HRLR (not comparable)"
        rows += [
            [f"{paper.LABELS[model]}, {theirs}, {label}", *map("{:.2f}".format, means[key])]
            for model, means in paper.FIGURE_3A.items()
            for key, label in LOSSES.items()
        ]
    tokens = [
        f"{plain(run.label)} {run.log[-1]['train_loss_per_token']:.3f} / "
        f"{run.log[-1]['val_loss_per_token']:.3f}"
        for run in runs
        if run.log
    ]
    return [
        epochs_table(rows),
        "These are losses as Keras reports them: the mean over batches of each batch's "
        "mean over its tokens. The last epoch's training / validation losses on the "
        f"{name} as means over tokens are: {'; '.join(tokens) or 'none yet'}. The "
        "training loss is the mean over the epoch, with dropout. The validation loss "
        "is that of the epoch's end, without dropout.",
    ]


def _examples(runs: Sequence[Run]) -> list[str]:
    translated = [run for run in runs if run.metrics and run.metrics.examples]
    if not translated:
        return []
    lines = []
    for examples in zip(*(run.metrics.examples for run in translated)):
        lines += [
            f"- {plain(examples[0]['source'])}",
            f"  - reference: {plain(examples[0]['reference'])}",
        ]
        lines += [
            f"  - {plain(run.label)}: {plain(example['translation'])}"
            for run, example in zip(translated, examples)
        ]
    signatures = sorted({f"`{run.metrics.test_bleu_signature}`" for run in translated})
    unit = runs[0].settings.vocabulary.tokenizer.unit
    return [
        f"## Translations of the test split, {plain(runs[0].manifest.text)}",
        "\n".join(lines),
        f"Greedy search. BLEU on {unit}, sacrebleu signature {', '.join(signatures)}.",
    ]


def _provenance(runs: Sequence[Run]) -> str:
    lines = []
    for run in runs:
        departures = ", ".join(run.settings.departures)
        lines.append(
            f"- **{plain(run.label)}**: run `{run.name}`, preset `{run.settings.preset}`"
            + (f" with {departures}" if departures else "")
            + f", seed {run.seed}; {sum(run.seconds) / 60:.0f} minutes of training."
        )
        lines += starts_of(run)
    return "\n".join(lines)


def _draw(runs: Sequence[Run], path: Path):
    manifest, pair, shown = runs[0].manifest, runs[0].pair, colours(runs)
    begun = [run for run in runs if run.log and run.model in shown]
    figure, (curves, bars) = new_figure(1, 2, (9, 4), width_ratios=(3, 2))
    for run in begun:
        for key, style in (("train_loss", "--"), ("val_loss", "-")):
            losses = [row[key] for row in run.log]
            epochs = range(1, len(losses) + 1)
            curves.plot(epochs, losses, style, color=shown[run.model], marker=".")
    title = "Teacher-forced losses: validation, and training dashed"
    if manifest.official_text and pair in paper.TABLE_1:
        title += ";\nhollow, the paper's: validation square, training round"
        _draw_the_papers(curves, pair, shown)
    curves.set_title(title, loc="left", fontsize=9)
    curves.set_xlabel("epoch")
    curves.xaxis.get_major_locator().set_params(integer=True)
    curves.set_ylabel("nats per token")
    labels = {run.label: shown[run.model] for run in begun}
    bars.barh(
        range(len(begun), 0, -1),
        [run.numbers["seconds_an_epoch"] for run in begun],
        color=labels.values(),
        alpha=0.7,
    )
    bars.set_yticks([])
    hardware = manifest.starts[-1].hardware if manifest.starts else ""
    bars.set_title(f"Seconds an epoch, median\n{hardware}", loc="left", fontsize=9)
    for axis in (curves, bars):
        axis.grid(alpha=0.3)
    add_legend(figure, labels)
    figure.suptitle(manifest.text, fontsize=10)
    save_figure(figure, path)


def _draw_the_papers(axis, pair: str, shown: dict[str, str]):
    for model, result in paper.TABLE_1[pair].items():
        for key, marker in (("train_loss", "o"), ("val_loss", "s")):
            points = {result.epochs: getattr(result, key)}
            if pair == "pt_to_en":
                points = dict(enumerate(paper.FIGURE_3A[model][key], start=1))
            axis.plot(
                list(points),
                list(points.values()),
                marker,
                color=shown.get(model, "grey"),
                fillstyle="none",
                alpha=0.6,
            )
