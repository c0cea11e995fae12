"""Measures the model of a run folder, and keeps the result there."""

import dataclasses
import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reprt.analysis.evaluation import (
    Evaluation,
    Loss,
    evaluate,
    log_probabilities,
)
from reprt.data.batching import BatchPlan
from reprt.data.corpora.corpus import Corpus, Split, check_aligned
from reprt.data.corpora.languages import check_direction
from reprt.data.corpora.lines import read_lines
from reprt.data.encoding import EncodedSplit
from reprt.decoding.translator import Translator
from reprt.progress import Progress
from reprt_lab.folder import RunFolder
from reprt_lab.pages.tables import markdown, plain
from reprt_lab.provenance import provenance
from reprt_lab.work import find_text


def evaluate_run(
    path: Path,
    files: Sequence[Path],
    split: str,
    place: str | None,
    search: Mapping[str, Any],
) -> str:
    """Measures a run's model, and returns the table that its folder gets, too.

    Args:
        path: the run's folder.
        files: two files, or a table, of other sentences; none for a split of its text.
        split: `"dev"` or `"test"`, where there are no files.
        place: where the text is now, if it has moved.
        search: settings of the search.
    """
    folder = RunFolder(path)
    run = folder.settings()
    max_tokens = None
    if files:
        names = [str(file) for file in files]
        # All splits are these sentences.
        text = run.text.changed(train=names, dev=names, test=names)
        corpus = find_text(text)
        sentences, split = corpus.test, files[0].name
    else:
        corpus = text_of_run(folder, place)
        sentences = getattr(corpus, split)
        if split == "dev":
            # Training has left longer pairs of this split out as well.
            max_tokens = run.text.train_tokens
    translator = Translator.load(path, **search)
    ids, references = _encode(
        translator, sentences, run.text.side == "target", max_tokens
    )
    cut = ids.cut
    evaluation = evaluate(
        translator,
        ids,
        references,
        BatchPlan(ids.lengths, **dict(run.batching)).batches(),
        Progress().show,
        corpus.target_language,
    )
    forced_loss = evaluation.teacher_forced
    assert forced_loss is not None
    search_settings = {**search, "dtype": translator.model.dtype_policy.name}
    result = {
        "run": run.name,
        "text": corpus.name,
        "split": split,
        "search": search_settings,
        "sentences": len(ids),
        "cut": cut,
        "teacher_forced": _entry(forced_loss),
        "prefix": _entry(evaluation.prefix),
        "scores": [score.as_table() for score in evaluation.scores],
        "provenance": provenance().as_table(),
    }
    text_name = plain(corpus.name)
    if not files:
        text_name = f"the {split} split of the {text_name}"
    tokens = evaluation.prefix.tokens
    title = (
        f"{run.name} on {text_name}: {len(ids):,} sentences, {tokens:,} tokens."
    )
    if cut:
        title += (
            f" {round(cut * len(ids)):,} of the pairs have a side of more than "
            f"{translator.max_tokens} tokens, which were cut: losses are of what is "
            "left."
        )
        if references is not None:
            title += " Scores compare with the whole references."
    table = f"{title}\n\n{_table(evaluation, forced_loss, search_settings)}"
    try:
        folder.write_evaluation(split, result, table)
    except OSError as error:
        # The folder may be another user's.
        print(f"reprt: {error}", file=sys.stderr)
    return table


def _encode(
    translator: Translator,
    sentences: Split,
    is_language_model: bool,
    max_tokens: int | None,
) -> tuple[EncodedSplit, Sequence[str] | None]:
    """Returns the ids, and the references of translations.

    A language model has none. With `max_tokens`, longer pairs are left out.
    """
    ids = translator.encode(sentences.source, sentences.target)
    references: Sequence[str] | None = sentences.target
    if is_language_model:
        ids, references = ids.of_target(), None
    if max_tokens:
        rows = ids.between(0, max_tokens)
        ids = ids.only(rows)
        if references is not None:
            references = [references[row] for row in rows]
    return ids, references


def _entry(loss: Loss) -> dict[str, float]:
    return {**dataclasses.asdict(loss), "per_token": loss.per_token}


def _table(
    evaluation: Evaluation,
    forced_loss: Loss,
    search_settings: Mapping[str, Any],
) -> str:
    prefix = evaluation.prefix
    gain = prefix.per_token - forced_loss.per_token
    values = {
        "teacher-forced loss, nats per token": f"{forced_loss.per_token:.4f}",
        "the same as Keras reports it": f"{forced_loss.mean_of_batches:.4f}",
        "prefix loss, nats per token: given only the tokens before": (
            f"{prefix.per_token:.4f}"
        ),
        "prefix − teacher-forced: gain by looking ahead": f"{gain:+.4f}",
    }
    if not evaluation.scores:
        for name, loss in (("teacher-forced", forced_loss), ("prefix", prefix)):
            perplexity = math.exp(loss.per_token)
            values[f"{name} perplexity a token"] = f"{perplexity:.2f}"
    search = "greedy search"
    if search_settings["beam_size"] > 1:
        search = (
            f"beam search, {search_settings['beam_size']} hypotheses, length penalty "
            f"{search_settings['length_penalty']}"
        )
    if search_settings["dtype"] != "float32":
        search += f", {search_settings['dtype']}"
    signatures = []
    for score in evaluation.scores:
        name = f"{score.metric}, {score.form}"
        values[f"{name}, {search}"] = f"{score.value:.2f}"
        signatures.append(f"- {name}: `{score.signature}`")
    rows = [{"measure": name, "value": value} for name, value in values.items()]
    return "\n".join([markdown(rows), "", *signatures])


def score_files(path: Path, files: Sequence[Path]) -> str:
    """Returns log P of each line of a file of translations, a line each."""
    text = RunFolder(path).settings().text
    is_language_model = text.side == "target"
    if is_language_model:
        # A language model reads no source.
        files = [files[-1], files[-1]]
    where = " and ".join(map(str, files))
    if len(files) != 2:
        raise ValueError(
            "Expected two files, SOURCE TARGET, or one for a language model. Received: "
            f"{where}."
        )
    check_direction([str(file) for file in files], text.pair)
    sources, targets = map(read_lines, files)
    check_aligned(len(sources), len(targets), where)
    translator = Translator.load(path)
    ids = translator.encode(sources, targets)
    if is_language_model:
        ids = ids.of_target()
    end = translator.target_tokenizer.end_id
    for number, rows in enumerate(zip(ids.source, ids.target), 1):
        # Cut sentences have lost their end. A language model reads no source.
        if any(len(row) and row[-1] != end for row in rows):
            print(
                f"reprt: line {number}: the first {translator.max_tokens} tokens "
                "were scored",
                file=sys.stderr,
            )
    scores = log_probabilities(translator, ids, progress=Progress().show)
    return "\n".join(f"{score:.4f}" for score in scores)


def text_of_run(folder: RunFolder, place: str | None) -> Corpus:
    """Returns the text that a run was begun on, from where it is now."""
    settings, manifest = folder.settings().text, folder.manifest()
    if place is not None:
        settings = settings.changed(source=place, train=(), dev=(), test=())
    try:
        corpus = find_text(settings)
    except ValueError as error:
        # It may advise options that `reprt train` has, such as --pair.
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
