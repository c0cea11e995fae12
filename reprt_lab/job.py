"""A recipe from its text to its page."""

import contextlib
import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from pathlib import Path

import tomli_w
from tabulate import tabulate

from reprt.files import write_text
from reprt.progress import Progress
from reprt.training.workers import is_chief, several_workers
from reprt_lab.pages import write_page
from reprt_lab.pages.runs import PAGE_SETTINGS
from reprt_lab.pages.tables import NONE
from reprt_lab.plan import make_plan
from reprt_lab.processes import in_own_process
from reprt_lab.recipe import ON_SEVERAL_TEXTS, Recipe
from reprt_lab.train import train_runs
from reprt_lab.work import CorpusRuns, find_work


def run_job(
    recipe: Recipe,
    only: Sequence[str],
    out: Path | None,
    plan_only: bool,
) -> Path:
    """Trains a recipe's models, writes its page, and returns the page's path.

    Finished runs stay as they are; interrupted ones go on. A pair whose text is missing
    is left out and named, if there are others. A loss that is not finite is an
    `ArithmeticError`, once the other models are trained. Runs that another process
    still trains are a `ValueError` at the end.
    """
    # An unknown model is reported before the search for a text.
    recipe.runs(only)
    progress = Progress()
    guard: contextlib.AbstractContextManager = contextlib.nullcontext()
    if several_workers():
        # They join before all else that TensorFlow does.
        from reprt.training import tensorflow_backend

        tensorflow_backend.mirrored_strategy()
        guard = tensorflow_backend.naming_lost_workers()
    with guard:
        work = find_work(recipe, only, out, progress)
        recipe = work[-1].recipe
        many_runs = len(work) > 1 or bool(recipe.trials.seeds)
        call: Callable = operator.call
        # Workers that train together have met in this process.
        if many_runs and not several_workers():
            call = in_own_process
        if plan_only or many_runs or recipe.page_name != "report":
            progress.say(call(make_plan, work))
        if plan_only:
            return work[-1].folder
        errors = []
        for part in work:
            for portion in _portions(part):
                errors += call(train_with_pages, portion)
    page = write_page_on(work[-1])
    if not many_runs:
        _say_results(progress, work[-1])
    if errors:
        raise ArithmeticError("\n".join(map(str, errors)))
    unfinished = _unfinished(work)
    if unfinished:
        raise ValueError(
            "These runs are not finished, because another process works on them: "
            f"{', '.join(unfinished)}. Give the same command again when it has ended."
        )
    return page


def train_with_pages(work: CorpusRuns) -> list[ArithmeticError]:
    """Trains runs as `train_runs` does, and writes their page after each epoch."""
    return train_runs(work, functools.partial(write_page_on, work))


def write_page_on(work: CorpusRuns) -> Path:
    """Writes the page on runs; returns its path, or the folder without a page."""
    folder, name = work.folder, work.recipe.page_name
    if not is_chief() or not any(folder.glob("*/config.toml")):
        return folder
    if name in ON_SEVERAL_TEXTS:
        folder = folder.parent
    page = work.recipe.page.changed(name=name)
    write_text(folder / PAGE_SETTINGS, tomli_w.dumps(page.as_table()))
    return write_page(folder)


def _portions(work: CorpusRuns) -> list[CorpusRuns]:
    """Returns the parts whose runs are trained together, an epoch each by turns."""
    if not work.recipe.trials.seeds:
        return [work]
    # Trials are too many, and nobody compares their times.
    return [dataclasses.replace(work, runs=[run]) for run in work.runs]


def _unfinished(work: Sequence[CorpusRuns]) -> list[str]:
    """Returns the folders of runs without results, once nothing is left to do.

    Only the chief of several workers writes results, perhaps after others have ended.
    """
    if not is_chief():
        return []
    unfinished = []
    for part in work:
        for folder in part.folders:
            if folder.metrics() is None:
                unfinished.append(str(folder.path))
    return unfinished


def _say_results(progress: Progress, work: CorpusRuns):
    """Says what came out, a line a model."""
    rows = []
    for folder in work.folders:
        metrics = folder.metrics()
        if metrics is not None:
            loss = metrics.val_prefix_loss_per_token
            rows.append([folder.path.name, loss, metrics.test_bleu])
    if rows:
        head = ["model", "prefix loss, validation", "BLEU, test"]
        digits = ("", ".3f", ".1f")
        table = tabulate(rows, head, "plain", floatfmt=digits, missingval=NONE)
        progress.say(table)
