"""Measures the model of a run folder, and keeps the result there."""

import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reprt.analysis.evaluation import evaluate, log_probabilities
from reprt.data.batching import BatchPlan
from reprt.data.corpora.corpus import Corpus, check_aligned
from reprt.data.corpora.lines import read_lines
from reprt.decoding.translator import Translator
from reprt.progress import Progress
from reprt_lab.folder import RunFolder
from reprt_lab.pages.tables import markdown, plain
from reprt_lab.provenance import provenance
from reprt_lab.texts import find_text


def evaluate_run(
    path: Path, split: str, source: str | None, search: Mapping[str, Any]
) -> str:
    """Measures a run's model, and returns the table that its folder gets, too."""
    folder = RunFolder(path)
    run, translator = folder.settings(), Translator.load(path, **search)
    corpus = text_of_run(folder, source)
    sources, references = (
        getattr(corpus, split).source,
        getattr(corpus, split).target,
    )
    ids = translator.encode(sources, references)
    language_model = run.text.side == "target"
    if language_model:
        ids = ids.of_target()
    if split == "dev" and run.text.train_tokens:  # as in training
        chosen = ids.between(0, run.text.train_tokens)
        ids, references = ids.only(chosen), [references[row] for row in chosen]
    found = evaluate(
        translator,
        ids,
        None if language_model else references,
        BatchPlan(ids.lengths, **dict(run.batching)).batches(),
        Progress().show,
        corpus.target_language,
    )
    result = {
        "run": run.name,
        "text": corpus.name,
        "split": split,
        "search": {**search, "dtype": translator.model.dtype_policy.name},
        **found.as_json(),
        "provenance": provenance().as_table(),
    }
    table = _table(result)
    try:
        folder.write_evaluation(split, result, table)
    except OSError as error:  # such as another user's folder
        print(f"reprt: {error}", file=sys.stderr)
    return table


def score_files(path: Path, source: Path, target: Path) -> str:
    """Returns log P of each line of a file of translations, a line each."""
    sources, targets = read_lines(source), read_lines(target)
    check_aligned(sources, targets, f"{source} and {target}")
    translator = Translator.load(path)
    ids = translator.encode(sources, targets)
    language_model = RunFolder(path).settings().text.side == "target"
    read = [ids.target] if language_model else [ids.source, ids.target]
    end = translator.target_tokenizer.end_id
    for number, rows in enumerate(zip(*read), 1):
        if any(row[-1] != end for row in rows):
            note = f"the first {translator.max_tokens} tokens were scored"
            print(f"reprt: line {number}: {note}", file=sys.stderr)
    if language_model:
        ids = ids.of_target()
    return "\n".join(
        f"{each:.4f}" for each in log_probabilities(translator, ids)
    )


def text_of_run(folder: RunFolder, source: str | None) -> Corpus:
    """Returns the text that a run was begun on, from where it is now."""
    settings, manifest = folder.settings().text, folder.manifest()
    if source is not None:
        settings = settings.changed(source=source, train=(), dev=(), test=())
    try:
        corpus = find_text(settings)
    except ValueError as error:
        if not re.search("--(?!text)", str(error)):
            raise
        raise ValueError(
            f"{error} These are options of `reprt train`. `reprt evaluate` has --text, "
            f"and takes all else from [text] of {folder.path}/config.toml."
        ) from error
    if corpus.digest() != manifest.text_sha256:
        raise ValueError(
            f"Expected the text of the run, {manifest.text} with sha256 "
            f"{manifest.text_sha256[:16]}. Received: {corpus.name} "
            f"({corpus.origin}) with {corpus.digest()[:16]}. Say where it is by "
            f"--text, or in [text] of {folder.path}/config.toml."
        )
    return corpus


def _table(result: Mapping[str, Any]) -> str:
    search, scores = result["search"], result["scores"]
    losses = result["teacher_forced"], result["prefix"]
    forced, prefix = (loss["per_token"] for loss in losses)
    beam = (
        "beam search, {beam_size} hypotheses, length penalty {length_penalty}"
    )
    how = beam.format(**search) if search["beam_size"] > 1 else "greedy search"
    if search["dtype"] != "float32":
        how += f", {search['dtype']}"
    found = {
        "teacher-forced loss, nats per token": f"{forced:.4f}",
        "the same as Keras reports it": f"{losses[0]['mean_of_batches']:.4f}",
        "prefix loss, nats per token: given only the tokens before": f"{prefix:.4f}",
        "prefix − teacher-forced: gain by looking ahead": f"{prefix - forced:+.4f}",
    }
    if not scores:  # of a language model
        found["teacher-forced perplexity a token"] = f"{math.exp(forced):.2f}"
        found["prefix perplexity a token"] = f"{math.exp(prefix):.2f}"
    for score in scores:
        found[f"{score['metric']}, {score['form']}, {how}"] = (
            f"{score['value']:.2f}"
        )
    times = ", ".join(
        f"{part} {time:.1f}" for part, time in result["seconds"].items()
    )
    title = (
        f"{result['run']} on the {result['split']} split of the "
        f"{plain(result['text'])}: {result['sentences']:,} sentences, "
        f"{losses[1]['tokens']:,} tokens. Seconds: {times.replace('_', '-')}."
    )
    table = markdown(
        [{"measure": n, "value": value} for n, value in found.items()]
    )
    signed = [
        f"- {s['metric']}, {s['form']}: `{s['signature']}`" for s in scores
    ]
    return "\n".join([title, "", table, "", *signed])
