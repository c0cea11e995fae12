"""The report: a page and a picture, from the files of the runs alone."""

import dataclasses
import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reprt import paper
from reprt.config import PRESETS, preset
from reprt.training.recipe import TextSettings, TrainingSettings
from reprt.training.run_folder import UNFINISHED, RunFolder, RunFolderError, flat

NOTES = "notes.md"
# Settings that are no departure from the paper, whatever they are.
INDIFFERENT = {
    "text.pair",
    "text.source",
    "training.bleu",
    "training.checkpoint_minutes",
    "training.deterministic",
    # Of runs made before sentences were packed: parts of a batch, with the same sums.
    "training.micro_batches",
    "training.seed",
    "training.tensorboard",
}
COLOURS = ("tab:blue", "tab:brown", "tab:green", "tab:purple", "tab:red", "tab:olive")


@dataclasses.dataclass(frozen=True)
class Run:
    """What the files of one run say.

    Attributes:
        name: the run's name.
        settings: its settings, as tables.
        manifest: where and with what it was run.
        log: a row for each finished epoch.
        metrics: its results, or None while it is unfinished.
    """

    name: str
    settings: Mapping[str, Any]
    manifest: Mapping[str, Any]
    log: Sequence[Mapping[str, float]]
    metrics: Mapping[str, Any] | None

    @property
    def results(self) -> Mapping[str, Any]:
        """Its metrics; empty while it is unfinished."""
        return self.metrics or {}

    @property
    def preset(self) -> str:
        return self.settings["preset"]

    @property
    def paper(self) -> paper.Result | None:
        """The paper's result for this model and pair; None for a variant of it."""
        if self.departures:
            return None
        return paper.TABLE_1[self.settings["text"]["pair"]][self.preset]

    @property
    def departures(self) -> list[str]:
        """The settings that are not the paper's."""
        published = {
            "model": dataclasses.asdict(preset(self.preset)),
            "text": dataclasses.asdict(TextSettings()),
            "training": dataclasses.asdict(TrainingSettings()),
        }
        usual, here = flat(published), flat(self.settings)
        return [
            f"{name} = {here[name]}"
            for name in here
            if name.startswith(("model.", "text.", "training."))
            and name not in INDIFFERENT
            and here[name] != usual.get(name)
        ]

    @property
    def text_hashes(self) -> list[str]:
        return [value for name, value in self.manifest.items() if "sha256" in name]

    @property
    def seconds(self) -> list[float]:
        return [row["train_seconds"] for row in self.log]


def write_report(folder: Path) -> Path:
    """Writes `report.md` and `report.png` on the runs in a folder.

    A file `notes.md` in the folder becomes part of the page, so that what a person
    has to say survives the next writing.

    Args:
        folder: a folder with run folders in it.

    Returns:
        The path of the page.

    Raises:
        RunFolderError: as `read_runs`.
    """
    runs = read_runs(folder)
    _draw(runs, folder / "report.png")
    page = folder / "report.md"
    notes = folder / NOTES
    text = _page(runs, notes.read_text(encoding="utf-8") if notes.exists() else "")
    temporary = folder / "report.md.tmp"
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, page)
    return page


def read_runs(folder: Path) -> list[Run]:
    """Reads every run folder in a folder, the paper's models first.

    Raises:
        RunFolderError: if there is none, or their texts or vocabularies differ, for
            then their losses cannot be compared.
    """
    runs = []
    for config in sorted(folder.glob("*/config.toml")):
        files = RunFolder(config.parent)
        if files.path.suffix == UNFINISHED:
            continue
        settings = files.settings()
        runs.append(
            Run(
                settings["name"],
                settings,
                files.manifest(),
                files.log(),
                files.metrics(),
            )
        )
    if not runs:
        raise RunFolderError(
            f"Expected a folder with run folders in it. Received: {folder}, without "
            "any."
        )
    for run in runs[1:]:
        if run.text_hashes != runs[0].text_hashes:
            raise RunFolderError(
                f"Expected the runs in {folder} to be on the same text, with the same "
                f"vocabularies. Those of {runs[0].name} and {run.name} differ."
            )
    presets = list(PRESETS)
    return sorted(
        runs, key=lambda run: (-presets.index(run.preset), run.name != run.preset)
    )


def _page(runs: Sequence[Run], notes: str) -> str:
    manifest, text = runs[0].manifest, runs[0].settings["text"]
    official, name, pair = manifest["official_text"], manifest["text"], text["pair"]
    pairs = manifest["sentence_pairs"]
    warning = [] if official else [
        f"> **Not comparable with the paper.** Every number of ours on this page is on "
        f"the {name}; the paper's are on TED-HRLR {pair} and stand here for "
        "orientation alone.",
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
            "Losses are teacher-forced, in nats per token: at each position the model "
            "is given the right words before it.",
            "",
            "![Learning curves and seconds an epoch](report.png)",
            "",
            "## Beside the paper" if official else f"## The {name} beside the paper's",
            "",
            *_comparison(runs, official, name, pair),
            "",
            *_leak(runs),
            *([notes.strip(), ""] if notes.strip() else []),
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
    lines = [
        "| model | | parameters | epochs | training loss | validation loss | "
        "seconds an epoch | baseline's seconds ÷ its | BLEU, test |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    baseline = next((run for run in runs if run.preset == run.name == "baseline"), None)
    published = paper.TABLE_1[pair]
    for run in runs:
        result = run.paper
        if result or not official and run.name in published:
            result = published[run.preset]
            lines.append(
                f"| {run.name} | {theirs} | {paper.PARAMETERS[run.preset]:,} (on "
                f"pt_to_en) | {result.epochs} | {result.train_loss:.2f} | "
                f"{result.val_loss:.2f} | {result.seconds:,.0f} | "
                f"{published['baseline'].seconds / result.seconds:.2f} | – |"
            )
        lines.append(f"| {run.name} | {ours} | {_our_cells(run, baseline)} |")
        if result and official and run.metrics and run.log:
            last = run.log[-1]
            lines.append(
                f"| {run.name} | ours − paper | | | "
                f"{last['train_loss'] - result.train_loss:+.2f} | "
                f"{last['val_loss'] - result.val_loss:+.2f} | | | |"
            )
    return lines


def _our_cells(run, baseline) -> str:
    metrics = run.metrics or {}
    parameters = f"{metrics['parameters']:,}" if run.metrics else "–"
    epochs = f"{len(run.log)}" if run.metrics else f"{len(run.log)} so far"
    if not run.log:
        return f"{parameters} | {epochs} | not run | not run | not run | – | not run"
    last, seconds = run.log[-1], statistics.mean(run.seconds)
    ratio = "–"
    if baseline is not None and baseline.log:
        ratio = f"{statistics.mean(baseline.seconds) / seconds:.2f}"
    spread = f" ± {statistics.stdev(run.seconds):.1f}" if run.log[1:] else ""
    bleu = f"{metrics['test_bleu']:.1f}" if "test_bleu" in metrics else "not run"
    return (
        f"{parameters} | {epochs} | {last['train_loss']:.3f} | "
        f"{last['val_loss']:.3f} | {seconds:.1f}{spread} | {ratio} | {bleu}"
    )


def _leak(runs) -> list[str]:
    """The warning without which a reader would take these losses at face value."""
    leaking = [
        run.name
        for run in runs
        if run.settings["model"]["normalize"]
        and run.settings["model"]["decoder_statistics"] == "sequence"
    ]
    warning = [
        f"**Read the losses of {', '.join(leaking)} with care.** As published, the "
        "decoder's embeddings are normalised over the whole target sentence, so that "
        "each position sees the mean and the variance of words that it has yet to "
        "predict. Training and validation losses profit from this; a translation, for "
        "which those words do not exist yet, cannot.",
        "",
    ]
    measured = [run for run in runs if "val_prefix_loss_per_token" in run.results]
    prefix = [
        "| validation loss, nats per token | teacher-forced | prefix: given only the "
        "words before, as in a translation |",
        "|---|--:|--:|",
        *(
            f"| {run.name} | {run.log[-1]['val_loss_per_token']:.3f} | "
            f"{run.results['val_prefix_loss_per_token']:.3f} |"
            for run in measured
        ),
        "",
    ]
    return [*(warning if leaking else []), *(prefix if measured else [])]


def _epochs(runs, official, name, pair) -> list[str]:
    ours = "ours" if official else name
    losses = (("train_loss", "training"), ("val_loss", "validation"))
    series: list[tuple[str, Sequence[float]]] = [
        (f"{run.name}, {ours}, {label}", [row[key] for row in run.log])
        for run in runs
        for key, label in losses
    ]
    if pair == "pt_to_en":
        theirs = "paper" if official else "paper, TED-HRLR (not comparable)"
        series += [
            (f"{model}, {theirs}, {label}", paper.FIGURE_3A[model][key])
            for model in paper.FIGURE_3A
            for key, label in losses
        ]
    length = max(1, *(len(values) for _, values in series))
    lines = [
        "| loss | " + " | ".join(str(n) for n in range(1, length + 1)) + " |",
        "|---|" + "--:|" * length,
    ]
    for label, values in series:
        cells = [f"{value:.2f}" for value in values] + ["–"] * (length - len(values))
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    tokens = [
        f"{run.name} {run.log[-1]['train_loss_per_token']:.3f} / "
        f"{run.log[-1]['val_loss_per_token']:.3f}"
        for run in runs
        if run.log
    ]
    return [
        *lines,
        "",
        "These are losses as Keras reports them: the mean over batches of each batch's "
        "mean over its tokens. Weighted by tokens instead, the last epoch's training / "
        f"validation losses on the {name} are: {'; '.join(tokens) or 'none yet'}. The "
        "training loss is the mean over the epoch, with dropout; the validation loss "
        "is taken at its end, without.",
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
            f"- {example['source']}",
            f"  - reference: {example['reference']}",
        ]
        lines += [
            f"  - {run.name}: {run.metrics['examples'][number]['translation']}"
            for run in translated
        ]
    signatures = sorted({run.metrics["test_bleu_signature"] for run in translated})
    return [
        *lines,
        "",
        "Greedy search. BLEU on lower-cased words "
        "as WordPiece splits them, sacrebleu signature " + ", ".join(
            f"`{signature}`" for signature in signatures
        ) + ".",
        "",
    ]


def _provenance(runs) -> list[str]:
    lines = []
    for run in runs:
        lines.append(
            f"- **{run.name}**: preset `{run.preset}`"
            + (f" with {', '.join(run.departures)}" if run.departures else "")
            + f", seed {run.settings['training']['seed']}; "
            + f"{sum(run.seconds) / 60:.0f} minutes of training."
        )
        lines += [f"  - {line}" for line in provenance_lines(run)]
    return [
        *lines,
        "",
        "The models took turns, an epoch each, on the same machine. Every setting is "
        "in `config.toml` in each run's folder, every epoch in its `log.csv`.",
        "",
    ]


def provenance_lines(run: Run, with_time: bool = True) -> list[str]:
    """Says of each start of a run how, with what and on what it was made."""
    lines = []
    for start in run.manifest["starts"]:
        versions = ", ".join(
            f"{package} {version}"
            for package, version in start["versions"].items()
            if version
        )
        time = f"{start['time']}: " if with_time else ""
        lines.append(
            f"{time}`{start['command']}`, commit `{start['commit'] or 'unknown'}`, "
            f"{start['hardware']}, {len(start['devices'])} replica(s), Python "
            f"{start['python']}, {versions}"
        )
    return lines


def evaluation_table(result: Mapping[str, Any]) -> str:
    """Returns what `reprt evaluate` found as a table."""
    search, seconds = result["search"], result["seconds"]
    forced, prefix = result["teacher_forced"], result["prefix"]
    how = "greedy search" if search["beam_size"] == 1 else (
        f"beam search, {search['beam_size']} hypotheses, length penalty "
        f"{search['length_penalty']}"
    )
    lines = [
        f"{result['run']} on the {result['split']} split of the {result['text']}: "
        f"{result['sentences']:,} sentences, {forced['tokens']:,} tokens.",
        "",
        "| measure | value | seconds |",
        "|---|--:|--:|",
        "| teacher-forced loss, nats per token | "
        f"{forced['per_token']:.4f} | {seconds['teacher_forced']:.1f} |",
        f"| the same as Keras reports it | {forced['mean_of_batches']:.4f} | |",
        "| prefix loss, nats per token: given only the tokens before | "
        f"{prefix['per_token']:.4f} | {seconds['prefix']:.1f} |",
        "| prefix − teacher-forced: what looking ahead is worth | "
        f"{prefix['per_token'] - forced['per_token']:+.4f} | |",
    ]
    for number, score in enumerate(result["scores"]):
        time = f"{seconds['translation']:.1f}" if number == 0 else ""
        lines.append(
            f"| {score['metric']}, {score['text']}, {how} | {score['value']:.2f} | "
            f"{time} |"
        )
    signatures = [
        f"- {score['metric']}, {score['text']}: `{score['signature']}`"
        for score in result["scores"]
    ]
    return "\n".join([*lines, "", *signatures])


def _draw(runs: Sequence[Run], path: Path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    manifest, pair = runs[0].manifest, runs[0].settings["text"]["pair"]
    official = manifest["official_text"]
    figure, (curves, bars, theirs) = plt.subplots(
        1, 3, figsize=(13, 4.8), width_ratios=(3, 1.2, 1.2), layout="constrained"
    )
    colours = dict(zip((run.name for run in runs), COLOURS * len(runs)))
    _draw_curves(curves, runs, colours, pair, official)

    names = [run.name for run in runs if run.log]
    seconds = [run.seconds for run in runs if run.log]
    bars.bar(
        names,
        [statistics.mean(each) for each in seconds],
        yerr=[statistics.stdev(each) if each[1:] else 0 for each in seconds],
        color=[colours[name] for name in names],
        capsize=4,
    )
    hardware = manifest["starts"][-1]["hardware"] if manifest["starts"] else ""
    bars.set_title(f"b  ours: {hardware}", loc="left", fontsize=10)
    bars.set_ylabel("seconds an epoch (mean and sd over epochs)")

    models = list(paper.FIGURE_3B)
    if pair == "pt_to_en":
        timed = paper.FIGURE_3B
        what = "mean and sd over 10 trials"
    else:
        timed = {model: (paper.TABLE_1[pair][model].seconds, 0.0) for model in models}
        what = "Table 1, one trial"
    theirs.bar(
        models,
        [timed[model][0] for model in models],
        yerr=[timed[model][1] for model in models],
        color=[colours.get(model, "grey") for model in models],
        alpha=0.6,
        capsize=4,
    )
    theirs.set_title("b  paper: two A100", loc="left", fontsize=10)
    theirs.set_ylabel(f"seconds an epoch ({what})")
    for axis in (bars, theirs):
        axis.tick_params(axis="x", rotation=30)
    figure.suptitle(
        manifest["text"] + ("" if official else ": not comparable with the paper")
    )
    temporary = path.with_suffix(".tmp.png")
    figure.savefig(temporary, dpi=120)
    plt.close(figure)
    os.replace(temporary, path)


def _draw_curves(axis, runs, colours, pair, official):
    for run in runs:
        epochs = range(1, len(run.log) + 1)
        for key, style, label in (
            ("train_loss", "--", "training"),
            ("val_loss", "-", "validation"),
        ):
            axis.plot(
                epochs,
                [row[key] for row in run.log],
                style,
                color=colours[run.name],
                marker=".",
                label=f"{run.name}, {label}",
            )
    other = "" if official else " (TED-HRLR, not comparable)"
    for model in paper.FIGURE_3A:
        for key, marker in (("train_loss", "o"), ("val_loss", "s")):
            if pair == "pt_to_en":
                points = dict(enumerate(paper.FIGURE_3A[model][key], start=1))
            else:
                result = paper.TABLE_1[pair][model]
                points = {result.epochs: getattr(result, key)}
            axis.plot(
                list(points),
                list(points.values()),
                marker,
                color=colours.get(model, "grey"),
                fillstyle="none",
                alpha=0.6,
                label=f"{model}, paper's {key.split('_')[0]}"
                f"{'ing' if key == 'train_loss' else 'idation'}{other}",
            )
    axis.set_xlabel("epoch")
    axis.set_ylabel("loss, nats per token")
    axis.set_title("a  teacher-forced losses", loc="left", fontsize=10)
    axis.legend(fontsize=7, handlelength=4)
    axis.grid(alpha=0.3)
