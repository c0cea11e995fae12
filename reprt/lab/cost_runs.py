"""What runs cost, or would cost."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from reprt.analysis.cost import Cost, training_cost
from reprt.data.batch_plan import BatchPlan
from reprt.jobs.corpus_runs import CorpusRuns, find_runs, text_of_run
from reprt.models.registry import make
from reprt.progress import Progress
from reprt.reports.cost import RULE, cost_table
from reprt.reports.escaping import in_markdown
from reprt.runs.recipe import Recipe
from reprt.runs.run_folder import RunFolder, RunFolderError


def cost_of_run(path: Path, source: str | None = None) -> str:
    """Returns what the finished epochs of a run have cost, as a page.

    It counts the text of a run without results, or with those of an earlier version.

    Args:
        path: the run's folder.
        source: where its text is now; None for where the run found it.

    Raises:
        RunFolderError: if it is no run folder, or the text is not the run's.
    """
    folder = RunFolder(path)
    run, log, manifest = folder.run(), folder.log(), folder.manifest()
    seconds = sum(row["train_seconds"] for row in log)
    cost = Cost.of_results(folder.metrics() or {}, seconds)
    if cost is None:
        corpus = text_of_run(folder, source)
        text = CorpusRuns(corpus, [run], path.parent).encoded(Progress())
        for side in ("source", "target"):
            vocabulary = getattr(text, f"{side}_tokenizer").digest()
            if vocabulary != manifest[f"{side}_vocabulary_sha256"]:
                raise RunFolderError(
                    f"Expected the text of {path} to give the run's {side} vocabulary. "
                    "Received another. Count it by the version that trained it."
                )
        cost = _cost(run, text, min(len(log), _epochs(run, text)), seconds)
    return _page({f"{len(log)} epochs on {manifest['text']}": {run.name: cost}})


def cost_of_recipe(recipe: Recipe) -> str:
    """Returns what the epochs of a recipe's runs would cost, as a page.

    Args:
        recipe: the recipe. Its vocabularies are learnt unless they are in the cache.

    Raises:
        TextUnavailable: if there is no text.
    """
    progress = Progress()
    found: dict[str, dict[str, Cost]] = {}
    for work in find_runs(recipe, [], None, progress):
        text = work.encoded(progress)
        known: dict[tuple, Cost] = {}  # trials differ by seeds, and cost the same
        for run in work.runs:
            epochs = _epochs(run, text)
            if (key := (run.model, epochs)) not in known:
                known[key] = _cost(run, text, epochs)
            title = f"{epochs:g} epochs on {work.corpus.name}"
            found.setdefault(title, {})[run.name] = known[key]
    return _page(found)


def _epochs(run, text) -> float:
    if run.training.steps is None:
        return run.training.epochs
    plan = BatchPlan(text.train.lengths, **dataclasses.asdict(run.batching))
    return run.training.steps / plan.steps


def _cost(run, text, epochs, seconds=None) -> Cost:
    sizes = len(text.source_tokenizer), len(text.target_tokenizer)
    return training_cost(make(run.model, *sizes), text.train, epochs, seconds)


def _page(found: Mapping[str, Mapping[str, Cost]]) -> str:
    lines = []
    for title, costs in found.items():
        lines += [f"{in_markdown(title)}:", "", *cost_table(costs.items()), ""]
    return "\n".join([*lines, RULE])
