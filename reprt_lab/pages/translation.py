"""The page on translators that were trained on a text of the user's own."""

import shlex
from collections.abc import Sequence

from reprt.progress import printable
from reprt_lab.pages.frame import (
    FORCED,
    LOSS,
    PREFIX,
    Group,
    epochs,
    groups_table,
    label,
    mean,
    parameters,
    scores_of,
    spread,
)
from reprt_lab.pages.language_model import perplexity
from reprt_lab.pages.report import values_of_runs
from reprt_lab.pages.tables import NONE, fill, markdown, plain
from reprt_lab.records import Manifest, Run


def minutes(group: Group) -> str:
    return spread(group.table["train_seconds"] / 60, 1)


RESULTS = {
    "model": label,
    "parameters": parameters,
    "epochs": epochs,
    "minutes of training": minutes,
    "training loss": mean("train_loss_per_token", 3),
    "validation loss": mean(FORCED, 3),
    "prefix loss, validation": mean(PREFIX, 3),
    "prefix loss, test": mean(LOSS, 3),
    "perplexity, test": perplexity(LOSS),
    **scores_of("translation"),
}


def page_values(runs, settings, out):
    groups, values = values_of_runs(runs, out / "losses.png")
    runs = [group.run for group in groups]
    manifest = runs[0].manifest
    return {
        **values,
        "origin": plain(manifest.origin or ""),
        "splits": _splits(manifest),
        "settings": _settings(runs),
        "results": groups_table(groups, RESULTS, words=1),
        "scores": _scores(runs),
        "use": _use(runs),
    }


def _splits(manifest: Manifest) -> str:
    """The size of each split, and what of it the model cannot see."""
    tokens, unknown = manifest.tokens or {}, manifest.unknown or {}
    rows = []
    for split, pairs in manifest.sentence_pairs.items():
        row = {"split": split, "pairs": f"{pairs:,}"}
        for side, number in tokens.get(split, {}).items():
            row[f"mean tokens, {side}"] = f"{number:.1f}"
        if manifest.cut:
            row["pairs cut"] = f"{manifest.cut[split]:.2%}"
        for side, share in unknown.get(split, {}).items():
            row[f"unknown, {side}"] = f"{share:.2%}"
        rows.append(row)
    return markdown(rows)


def _settings(runs: Sequence[Run]) -> str:
    """The settings that matter most, a row each and a column for each model."""
    rows: dict[str, dict[str, str]] = {}
    for run in runs:
        tables = run.settings
        training, vocabulary = tables.training, tables.vocabulary
        pieces = run.manifest.pieces or {}
        sizes = " and ".join(f"{size:,}" for size in pieces.values())
        length = f"{training.epochs} epochs"
        if training.steps:
            length = f"{training.steps:,} steps"
        values = {
            "preset": tables.preset,
            "dropout": getattr(tables.model, "dropout", NONE),
            "vocabulary": f"{vocabulary.name}, {sizes or vocabulary.size} pieces",
            "longest input": f"{tables.text.max_tokens} tokens",
            "batch": f"{tables.batching.size:,} {tables.batching.name}",
            "learning rate": run.rate,
            "warm-up": f"{tables.schedule.warmup_steps:,} steps",
            "length of training": length,
            "seed": run.seed,
        }
        for name, value in values.items():
            row = rows.setdefault(name, {"setting": name})
            row[plain(run.label)] = str(value)
    return markdown([*rows.values()])


def _scores(runs: Sequence[Run]) -> str:
    """Each score of the test split with its signature."""
    rows = []
    for run in runs:
        for score in run.metrics.test_scores if run.metrics else ():
            row = {
                "model": plain(run.label),
                "score": f"{score.metric}, {score.form}",
                "value": f"{score.value:.1f}",
                "signature": f"`{plain(score.signature)}`",
            }
            rows.append(row)
    return markdown(rows, 2)


def _use(runs: Sequence[Run]) -> str:
    """A section on how to use the first model that has translated."""
    for run in runs:
        if run.metrics and run.metrics.examples:
            source, _, target = run.pair.partition("_to_")
            sentence = printable(run.metrics.examples[0]["source"])
            commands = [
                "```sh",
                f"reprt translate {run.name} {shlex.quote(sentence)}",
                f"reprt translate {run.name} --file new.{source} --beam 4",
                f"reprt evaluate {run.name} new.{source} new.{target}",
                f"reprt export {run.name}",
                "```",
            ]
            text = "\n".join(commands)
            return fill("translation_use", commands=text, run=run.name)
    return ""
