"""The report on a few runs: a page and a picture."""

from collections.abc import Sequence
from pathlib import Path

from reprt import paper
from reprt.files import write_text
from reprt.reports.cost import cost_section
from reprt.reports.escaping import code, in_markdown
from reprt.reports.files import label_points, new_figure, notes, save_figure
from reprt.reports.provenance import provenance_lines
from reprt.reports.runs import Run, read_runs
from reprt.reports.series import NOT_RUN, Series, drawn
from reprt.reports.tables import epochs_table, markdown
from reprt.runs.run_settings import table_settings

HEAD = (
    "model |  | parameters | epochs | training loss | validation loss | seconds an "
    "epoch | baseline's seconds ÷ its | BLEU, test"
).split(" | ")


def write_report(folder: Path, out: Path | None = None) -> Path:
    """Writes `report.md` and `report.png` on the runs in a folder.

    A file `notes.md` in the folder becomes part of the page, so that what a person
    has to say survives the next writing.

    Args:
        folder: a folder with runs on one text.
        out: where the files go; None for the same folder.

    Returns:
        The path of the page.

    Raises:
        RunFolderError: as `read_runs`.
    """
    runs, out = read_runs(folder), out or folder
    _draw(runs, out / "report.png")
    page = out / "report.md"
    write_text(page, _page(runs, notes(folder)))
    return page


def _page(runs: Sequence[Run], notes: Sequence[str]) -> str:
    manifest, text = runs[0].manifest, runs[0].settings["text"]
    official, name = manifest["official_text"], in_markdown(manifest["text"])
    pair = text["pair"]
    pairs = manifest["sentence_pairs"]
    theirs = f"the paper has none on {pair}."
    if pair in paper.TABLE_1:
        theirs = (
            f"the paper's are on TED-HRLR {pair} and stand here for orientation alone."
        )
    warning = [] if official else [
        f"> **Not comparable with the paper.** Every number of ours on this page is on "
        f"the {name}; {theirs}",
        "",
    ]
    title = f"# RePE and its baseline on the {name}" if not official else (
        f"# RePE and its baseline on {name}"
    )
    return "\n".join(
        [
            title + ("" if official else ", not comparable with the paper"),
            "",
            *warning,
            f"{pairs['train']:,} training, {pairs['dev']:,} validation and "
            f"{pairs['test']:,} test pairs (sha256 `{manifest['text_sha256'][:16]}`). "
            "Losses are teacher-forced, in nats per token: the model gets the right "
            "words before each position.",
            "",
            "![Learning curves and seconds an epoch](report.png)",
            "",
            "## Beside the paper" if official else f"## The {name} beside the paper's",
            "",
            *_comparison(runs, official, name, pair),
            "",
            *_averaged(runs),
            *_leak(runs),
            *cost_section([(run.label, run.cost) for run in runs]),
            *notes,
            "## Epoch by epoch",
            "",
            *_epochs(runs, official, name, pair),
            *_examples(runs, name),
            "## How it was run",
            "",
            *_provenance(runs),
        ]
    )


def _comparison(runs, official, name, pair) -> list[str]:
    ours = "ours" if official else f"ours, {name}"
    theirs = "paper" if official else f"paper, TED-HRLR {pair} (not comparable)"
    rows: list[list[str]] = []
    baseline = next((run for run in runs if run.preset == run.name == "baseline"), None)
    published = paper.TABLE_1.get(pair, {})
    for run in runs:
        result = run.paper
        if result or not official and run.name == run.preset in published:
            result = published[run.preset]
            rows.append(
                [
                    run.label,
                    theirs,
                    f"{paper.PARAMETERS[run.preset]:,} (on pt_to_en)",
                    f"{result.epochs}",
                    f"{result.train_loss:.2f}",
                    f"{result.val_loss:.2f}",
                    f"{result.seconds:,.0f}",
                    f"{published['baseline'].seconds / result.seconds:.2f}",
                    "–",
                ]
            )
        rows.append([run.label, ours, *_our_cells(run, baseline)])
        if result and official and run.metrics and run.log:
            last = run.last
            differences = [
                f"{last['train_loss'] - result.train_loss:+.2f}",
                f"{last['val_loss'] - result.val_loss:+.2f}",
            ]
            rows.append([run.label, "ours − paper", "", "", *differences, "", "", ""])
    return markdown(HEAD, "llrrrrrrr", rows)


def _averaged(runs) -> list[str]:
    """Says which results are of no epoch's model."""
    found = [
        f"{run.label} (of {len(run.results['averaged_models'])})"
        for run in runs
        if run.results.get("averaged_models")
    ]
    if not found:
        return []
    return [
        f"The model of {', '.join(found)} is a mean of the last models that were kept. "
        "The tables have its validation losses and BLEU. The curves and the losses "
        "epoch by epoch are those of the models as they were trained.",
        "",
    ]


def _our_cells(run, baseline) -> list[str]:
    metrics = run.metrics or {}
    parameters = f"{metrics['parameters']:,}" if run.metrics else "–"
    epochs = f"{len(run.log)}" if run.metrics else f"{len(run.log)} so far"
    if not run.log:
        return [parameters, epochs, *[NOT_RUN] * 3, "–", NOT_RUN]
    last, seconds = run.last, run.seconds_an_epoch
    ratio = "–"
    if baseline is not None and baseline.log:
        ratio = f"{baseline.seconds_an_epoch / seconds:.2f}"
    fastest, slowest = min(run.seconds), max(run.seconds)
    spread = f" ({fastest:.1f} to {slowest:.1f})" if run.log[1:] else ""
    bleu = f"{metrics['test_bleu']:.1f}" if "test_bleu" in metrics else NOT_RUN
    return [
        parameters,
        epochs,
        f"{last['train_loss']:.3f}",
        f"{last['val_loss']:.3f}",
        f"{seconds:.1f}{spread}",
        ratio,
        bleu,
    ]


def _leak(runs) -> list[str]:
    """The warning without which a reader would take these losses at face value."""
    leaking = [run.label for run in runs if run.looks_ahead]
    warning = [
        f"**Read the losses of {', '.join(leaking)} with care.** The published decoder "
        "normalises its embeddings over the whole target sentence. So each position "
        "sees the mean and the variance of words that it has yet to predict. Training "
        "and validation losses profit from this. A translation cannot, because it does "
        "not have those words yet.",
        "",
    ]
    measured = [run for run in runs if "val_prefix_loss_per_token" in run.results]
    head = [
        "validation loss, nats per token",
        "teacher-forced",
        "prefix: given only the words before, as in a translation",
    ]
    rows = [
        [
            run.label,
            f"{run.last['val_loss_per_token']:.3f}",
            f"{run.results['val_prefix_loss_per_token']:.3f}",
        ]
        for run in measured
    ]
    prefix = [*markdown(head, "lrr", rows), ""]
    return [*(warning if leaking else []), *(prefix if measured else [])]


def _epochs(runs, official, name, pair) -> list[str]:
    ours = "ours" if official else name
    losses = (("train_loss", "training"), ("val_loss", "validation"))
    series: list[tuple[str, Sequence[float]]] = [
        (f"{run.label}, {ours}, {label}", [row[key] for row in run.log])
        for run in runs
        for key, label in losses
    ]
    if pair == "pt_to_en":
        theirs = "paper" if official else "paper, TED-HRLR (not comparable)"
        series += [
            (f"{paper.LABELS[model]}, {theirs}, {label}", paper.FIGURE_3A[model][key])
            for model in paper.FIGURE_3A
            for key, label in losses
        ]
    lines = epochs_table(
        [[label, *(f"{value:.2f}" for value in values)] for label, values in series]
    )
    tokens = [
        f"{run.label} {run.log[-1]['train_loss_per_token']:.3f} / "
        f"{run.log[-1]['val_loss_per_token']:.3f}"
        for run in runs
        if run.log
    ]
    return [
        *lines,
        "",
        "These are losses as Keras reports them: the mean over batches of each batch's "
        "mean over its tokens. The last epoch's training / validation losses on the "
        f"{name} as means over tokens are: {'; '.join(tokens) or 'none yet'}. The "
        "training loss is the mean over the epoch, with dropout. The validation loss "
        "is that of the epoch's end, without dropout.",
        "",
    ]


def _examples(runs, name) -> list[str]:
    translated = [run for run in runs if run.metrics and "examples" in run.metrics]
    if not translated:
        return []
    lines = [f"## Translations of the test split, {name}", ""]
    first = translated[0].metrics["examples"]
    for number, example in enumerate(first):
        lines += [
            f"- {in_markdown(example['source'])}",
            f"  - reference: {in_markdown(example['reference'])}",
        ]
        lines += [
            f"  - {run.label}: "
            + in_markdown(run.metrics["examples"][number]["translation"])
            for run in translated
        ]
    signatures = sorted({run.metrics["test_bleu_signature"] for run in translated})
    vocabulary = table_settings("vocabulary", translated[0].settings["vocabulary"])
    return [
        *lines,
        "",
        f"Greedy search. BLEU on {vocabulary.tokenizer.unit}, sacrebleu signature "
        f"{', '.join(map(code, signatures))}.",
        "",
    ]


def _provenance(runs) -> list[str]:
    lines = []
    for run in runs:
        lines.append(
            f"- **{run.label}**: run {code(run.name)}, preset `{run.preset}`"
            + (f" with {', '.join(run.departures)}" if run.departures else "")
            + f", seed {run.settings['training']['seed']}; "
            + f"{sum(run.seconds) / 60:.0f} minutes of training."
        )
        lines += [f"  - {line}" for line in provenance_lines(run)]
    return [
        *lines,
        "",
        "Models that one command trained on one machine took turns, an epoch each. The "
        "seconds of other starts do not compare. The files of the runs have every "
        "setting and every epoch.",
        "",
    ]


def _draw(runs: Sequence[Run], path: Path):
    manifest, pair = runs[0].manifest, runs[0].settings["text"]["pair"]
    begun = [run for run in runs if run.log]
    colours = drawn([Series([run]) for run in runs])
    begun = [run for run in begun if run.model in colours]
    figure, (curves, bars) = new_figure(1, 2, figsize=(11, 4), width_ratios=(2, 1))
    for run in begun:
        for key, style in (("train_loss", "--"), ("val_loss", "-")):
            losses = [row[key] for row in run.log]
            epochs = range(1, len(losses) + 1)
            curves.plot(epochs, losses, style, color=colours[run.model], marker=".")
    title = "Teacher-forced losses: validation, and training dashed"
    if manifest["official_text"] and pair in paper.TABLE_1:
        title += ";\nhollow, the paper's: validation square, training round"
        _draw_the_papers(curves, pair, colours)
    curves.set_title(title, loc="left", fontsize=9)
    curves.set_xlabel("epoch")
    curves.xaxis.get_major_locator().set_params(integer=True)
    curves.set_ylabel("nats per token")
    label_points(
        curves,
        [
            (len(run.log), run.log[-1]["val_loss"], run.label, colours[run.model])
            for run in begun
        ],
    )
    places = range(len(begun), 0, -1)
    seconds = [run.seconds_an_epoch for run in begun]
    bars.barh(places, seconds, color=[colours[run.model] for run in begun], alpha=0.7)
    bars.set_yticks(places, [run.label for run in begun], fontsize=8)
    hardware = manifest["starts"][-1]["hardware"] if manifest["starts"] else ""
    bars.set_title(f"Seconds an epoch, median\n{hardware}", loc="left", fontsize=9)
    for axis in (curves, bars):
        axis.grid(alpha=0.3)
    figure.suptitle(manifest["text"], fontsize=10)
    save_figure(figure, path)


def _draw_the_papers(axis, pair, colours):
    for model, result in paper.TABLE_1[pair].items():
        for key, marker in (("train_loss", "o"), ("val_loss", "s")):
            if pair == "pt_to_en":
                points = dict(enumerate(paper.FIGURE_3A[model][key], start=1))
            else:
                points = {result.epochs: getattr(result, key)}
            axis.plot(
                list(points),
                list(points.values()),
                marker,
                color=colours.get(model, "grey"),
                fillstyle="none",
                alpha=0.6,
            )
