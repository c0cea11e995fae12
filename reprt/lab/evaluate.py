"""Measures the model of a run folder, and keeps the result there."""

from pathlib import Path

from reprt.lab.folder import RunFolder
from reprt.lab.pages.evaluation import evaluation_table
from reprt.lab.provenance import provenance
from reprt.lab.texts import text_of_run
from reprt.progress import Progress


def evaluate_run(
    path: Path, split: str, source: str | None = None, search: dict | None = None
) -> str:
    """Measures the model of a run folder and keeps the result there.

    Args:
        path: the run's folder.
        split: `"dev"` or `"test"`.
        source: where its text is now; None for where the run found it.
        search: arguments of `reprt.Translator.load`.

    Returns:
        A table, as it is written to `evaluation-SPLIT.md`.

    Raises:
        RunFolderError: if the run has no model, or the text is not the run's.
    """
    from reprt.analysis.evaluation import evaluate
    from reprt.data.encoding import EncodedSplit
    from reprt.decoding.translator import Translator

    folder, progress, search = RunFolder(path), Progress(), search or {}
    run = folder.settings()
    translator = Translator.load(path, **search)
    corpus = text_of_run(folder, source)
    sentences = getattr(corpus, split)
    longest = run.text.max_tokens
    encoded = EncodedSplit(
        [row[:longest] for row in translator.source_tokenizer.encode(sentences.source)],
        [
            row[: longest + 1]
            for row in translator.target_tokenizer.encode(sentences.target)
        ],
    )
    found = evaluate(
        translator,
        encoded,
        sentences.target,
        run.evaluation_size,
        progress.show,
        corpus.target_language,
    )
    result = {
        "run": run.name,
        "text": corpus.name,
        "split": split,
        "search": {
            "beam_size": translator.search.beam_size,
            "length_penalty": translator.search.length_penalty,
            "max_tokens": translator.search.max_tokens,
            "dtype": translator.model.dtype_policy.name,
        },
        **found.as_json(),
        "provenance": provenance().as_table(),
    }
    table = evaluation_table(result)
    folder.write_evaluation(split, result, table)
    return table
