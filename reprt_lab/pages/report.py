"""The report on a few runs: a page and a picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from reprt.analysis.scores import shown_on
from reprt.data.tokenizers.registry import VOCABULARIES
from reprt_lab import paper
from reprt_lab.pages import pictures
from reprt_lab.pages.cost import cost_section
from reprt_lab.pages.frame import runs_table
from reprt_lab.pages.tables import by_epoch, markdown, plain
from reprt_lab.recipe import Look
from reprt_lab.records import Run

HEAD = (
    "model |  | parameters | epochs | training loss | validation loss | prefix loss, "
    "validation | seconds an epoch | baseline's seconds ÷ its"
).split(" | ")
METRICS = shown_on("report")
HEAD += [f"{metric.name}, test" for metric in METRICS]
LOSSES = {"train_loss": "training", "val_loss": "validation"}
PREFIX, SECONDS = "val_prefix_loss", "seconds_an_epoch"


def page_values(runs: Sequence[Run], settings, out: Path) -> dict[str, object]:
    if len({run.label for run in runs}) < len(
        runs
    ):  # trials have names of their own
        labels = [f"{run.label}, {run.name}" for run in runs]
        if len({*labels}) < len(runs):  # and so have runs of several --out
            labels = [
                ", ".join([run.label, run.name, *run.departures])
                for run in runs
            ]
        runs = [
            run.changed(look=Look(label=each))
            for run, each in zip(runs, labels)
        ]
    manifest, pair, name = runs[0].manifest, runs[0].pair, plain(runs[0].text)
    official = manifest.official_text
    shown = pictures.colours(runs)
    _draw(runs, shown, out / "report.png")
    stepped = [run for run in runs if run.steps and run.label in shown]
    if stepped:
        _draw_steps(stepped, shown, out / "steps.png")
    return {
        "official": name if official else "",
        "published": pair if pair in paper.TABLE_1 else "",
        "unpublished": "" if pair in paper.TABLE_1 else pair,
        **manifest.sentence_pairs,
        "sha256": manifest.text_sha256[:16],
        "beside": "Beside the paper"
        if official
        else f"The {name} beside the paper's",
        "results": _results(runs),
        "steps": "steps.png" if stepped else "",
        "averaged": ", ".join(
            f"{plain(run.label)} (of {len(run.metrics.averaged_models)})"
            for run in runs
            if run.metrics and run.metrics.averaged_models
        ),
        "leaking": ", ".join(
            plain(run.label) for run in runs if run.looks_ahead
        ),
        "cost": cost_section({run.label: runs_table([run]) for run in runs}),
        "epochs": _epochs(runs),
        "tokens": "; ".join(
            f"{plain(run.label)} {run.log[-1]['train_loss_per_token']:.3f} / "
            f"{run.cell('val_loss_per_token', 3)} / "
            f"{run.cell('val_prefix_loss_per_token', 3)}"
            for run in runs
            if run.log
        )
        or "none yet",
        "translations": _translations(runs),
        "runs": "\n".join(map(_how, runs)),
    }


def _results(runs: Sequence[Run]) -> str:
    """The runs, each below what the paper has of its model."""
    official, pair, rows = runs[0].manifest.official_text, runs[0].pair, []
    ours = "ours" if official else f"ours, {plain(runs[0].text)}"
    theirs = "paper" if official else f"paper, TED-HRLR {pair} (not comparable)"
    published = paper.TABLE_1.get(pair, {})
    baseline = [
        r for r in runs if r.settings.preset == r.name == "baseline" and r.log
    ]
    for run in runs:
        preset, label = run.settings.preset, plain(run.label)
        # On another text, also what is only named after one of the paper's models.
        same = not official and run.name == preset or not run.departures
        result = published.get(preset) if same else None
        if result:
            ratio = published["baseline"][SECONDS] / result[SECONDS]
            cells = [
                f"{paper.PARAMETERS[preset]:,} (on pt_to_en)",
                f"{result['epochs']}",
                *(f"{result[loss]:.2f}" for loss in LOSSES),
                "–",
                f"{result[SECONDS]:,.0f}",
                f"{ratio:.2f}",
            ]
            rows.append([label, theirs, *cells])
        rows.append([label, ours, *_cells(run, baseline)])
        if result and official and run.finished:
            gaps = [
                f"{run.numbers[loss] - result[loss]:+.2f}" for loss in LOSSES
            ]
            rows.append([label, "ours − paper", "", "", *gaps])
    return markdown([dict(zip(HEAD, row)) for row in rows], "ll")


def _cells(run: Run, baseline: Sequence[Run]) -> list[str]:
    state, ratio = "" if run.metrics else " so far", "–"
    times = [row["train_seconds"] for row in run.whole_epochs]
    seconds = run.cell(SECONDS, 1)
    if times[1:]:
        seconds += f" ({min(times):.1f} to {max(times):.1f})"
    if times and baseline:
        ratio = f"{baseline[0].numbers[SECONDS] / run.numbers[SECONDS]:.2f}"
    return [
        run.cell("parameters", 0) if run.metrics else "–",
        f"{len(run.log)}{state}",
        *(run.cell(loss, 3) for loss in (*LOSSES, PREFIX)),
        seconds,
        ratio,
        *(run.cell(metric.key, metric.pages["report"]) for metric in METRICS),
    ]


def _epochs(runs: Sequence[Run]) -> str:
    official = runs[0].manifest.official_text
    ours = "ours" if official else plain(runs[0].text)
    theirs = "paper" if official else "paper, TED-HRLR (not comparable)"
    rows = []
    for run in runs:
        for key, label in LOSSES.items():
            losses = [f"{row[key]:.2f}" for row in run.log]
            rows.append(
                by_epoch(f"{plain(run.label)}, {ours}, {label}", losses)
            )
    for model, means in (
        paper.FIGURE_3A.items() if runs[0].pair == "pt_to_en" else ()
    ):
        for key, label in LOSSES.items():
            losses = [f"{mean:.2f}" for mean in means[key]]
            rows.append(
                by_epoch(f"{paper.LABELS[model]}, {theirs}, {label}", losses)
            )
    return markdown(rows)


def _translations(runs: Sequence[Run]) -> str:
    found = {
        r.label: r.metrics for r in runs if r.metrics and r.metrics.examples
    }
    if not found:
        return ""
    lines = [f"## Translations of the test split, {plain(runs[0].text)}", ""]
    for examples in zip(*(metrics.examples for metrics in found.values())):
        lines.append(f"- {plain(examples[0]['source'])}")
        lines.append(f"  - reference: {plain(examples[0]['reference'])}")
        for label, example in zip(found, examples):
            lines.append(f"  - {plain(label)}: {plain(example['translation'])}")
    signatures = sorted(
        {f"`{each.test_bleu_signature}`" for each in found.values()}
    )
    units = {kind().name: kind.tokenizer.unit for kind in VOCABULARIES}
    unit = units.get(runs[0].settings.vocabulary.name, "corpus tokens")
    signed = f"sacrebleu signature {', '.join(signatures)}"
    return "\n".join([*lines, "", f"Greedy search. BLEU on {unit}, {signed}."])


def _how(run: Run) -> str:
    departures = f" with {', '.join(run.departures)}" if run.departures else ""
    minutes = run.numbers.get("train_seconds", 0) / 60
    return (
        f"- **{plain(run.label)}**: run `{run.name}`, preset `{run.settings.preset}`"
        f"{departures}, seed {run.seed}; {minutes:.0f} minutes of training."
    )


def _draw_steps(runs: Sequence[Run], shown: Mapping[str, str], path: Path):
    figure, (losses, bleu) = pictures.new_figure(runs[0].text, 1, 2, (9, 4))
    for run in runs:
        table = pd.DataFrame(run.steps).set_index("step")
        for split, style in (("train", ".--"), ("val", ".-")):
            for axis, what in ((losses, "loss_per_token"), (bleu, "bleu")):
                points = table.get(
                    f"{split}_{what}", pd.Series(dtype=float)
                ).dropna()
                axis.plot(points.index, points, style, color=shown[run.label])
    title = "Loss, nats per token: validation, and training dashed"
    pictures.finish_axis(losses, title, "step")
    pictures.finish_axis(bleu, "BLEU, greedy, of their first sentences", "step")
    pictures.add_legend(figure, {run.label: shown[run.label] for run in runs})
    pictures.save_figure(figure, path)


def _draw(runs: Sequence[Run], shown: Mapping[str, str], path: Path):
    manifest, pair = runs[0].manifest, runs[0].pair
    begun = [run for run in runs if run.log and run.label in shown]
    figure, (curves, bars) = pictures.new_figure(
        manifest.text, 1, 2, (9, 4), width_ratios=(3, 2)
    )
    title = (
        "Teacher-forced losses: validation, and training dashed;\n"
        "star: the prefix loss, which counts in a translation"
    )
    for run in begun:
        for loss, style in (("train_loss", ".--"), ("val_loss", ".-")):
            pictures.draw_log(curves, run, loss, style, color=shown[run.label])
        if PREFIX in run.numbers:
            last = len(run.log), run.numbers[PREFIX]
            curves.plot(*last, "*", color=shown[run.label], markersize=12)
    if manifest.official_text and pair in paper.TABLE_1:
        title += ";\nhollow, the paper's: validation square, training round"
        label_of = {run.model: run.label for run in runs}
        for model, result in paper.TABLE_1[pair].items():
            colour = shown.get(label_of.get(model, ""), "grey")
            look = {"color": colour, "fillstyle": "none"}
            curves.plot(result["epochs"], result["train_loss"], "o", **look)
            curves.plot(result["epochs"], result["val_loss"], "s", **look)
    curves.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    curves.set_ylabel("nats per token")
    pictures.finish_axis(curves, title, "epoch")
    labels = {run.label: shown[run.label] for run in begun}
    seconds = [run.numbers[SECONDS] for run in begun]
    bars.barh(
        range(len(begun), 0, -1), seconds, color=[*labels.values()], alpha=0.7
    )
    bars.set_yticks([])
    hardware = manifest.starts[-1].hardware if manifest.starts else ""
    pictures.finish_axis(
        bars, f"Seconds an epoch, median\n{hardware}", "seconds"
    )
    pictures.add_legend(figure, labels)
    pictures.save_figure(figure, path)
