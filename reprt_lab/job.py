"""A recipe from its text to its page."""

import contextlib
import dataclasses
import functools
import operator
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import tomli_w
from tabulate import tabulate

from reprt.files import write_text
from reprt.progress import Progress
from reprt.training.workers import is_chief, several_workers
from reprt_lab.folder import RunFolder
from reprt_lab.pages import write_page
from reprt_lab.pages.runs import SETTINGS
from reprt_lab.plan import make_plan
from reprt_lab.processes import in_own_process
from reprt_lab.recipe import ON_SEVERAL_TEXTS, Recipe
from reprt_lab.texts import CorpusRuns, find_runs
from reprt_lab.train import train_runs


def run_job(
    recipe: Recipe, only: Sequence[str], out: Path | None, plan_only: bool
) -> Path:
    """Trains a recipe's models, writes its page, and returns the page's path.

    Finished runs stay as they are; interrupted ones go on. A pair whose text is missing
    is left out and named, if there are others. A loss that is not finite is an
    `ArithmeticError`, once the other models are trained. Runs that another process
    still trains are a `ValueError` at the end.
    """
    recipe.runs(
        only
    )  # an unknown model is reported before the search for a text
    progress = Progress()
    guard: contextlib.AbstractContextManager = contextlib.nullcontext()
    if several_workers():
        # They join before all else that TensorFlow does.
        from reprt.training import tensorflow_backend

        tensorflow_backend.mirrored_strategy()
        guard = tensorflow_backend.naming_lost_workers()
    with guard:
        work = find_runs(recipe, only, out, progress)
        recipe = work[-1].recipe
        large = len(work) > 1 or bool(recipe.trials.seeds)
        # Workers that train together have met in this process.
        own = large and not several_workers()
        call: Callable = in_own_process if own else operator.call
        if plan_only or large or recipe.page_name != "report":
            progress.say(call(make_plan, work))
        if plan_only:
            return work[-1].folder
        errors = []
        for each in work:
            # Trials are too many to train side by side, and nobody compares their
            # times.
            trials = [[run] for run in each.runs]
            for runs in trials if recipe.trials.seeds else [each.runs]:
                part = dataclasses.replace(each, runs=runs)
                errors += call(train_with_pages, part)
    page = write_page_on(work[-1])
    if not large and (told := _ending(work[-1])):
        progress.say(told)
    if errors:
        raise ArithmeticError("\n".join(map(str, errors)))
    if elsewhere := _unfinished(work):
        raise ValueError(
            "These runs are not finished, because another process works on them: "
            f"{', '.join(elsewhere)}. Give the same command again when it has ended."
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
    write_text(folder / SETTINGS, tomli_w.dumps(page.as_table()))
    return write_page(folder)


def _unfinished(work: Sequence[CorpusRuns]) -> list[str]:
    """The folders of runs without results, once this process has nothing left to do."""
    folders = [
        RunFolder(each.folder / run.name) for each in work for run in each.runs
    ]
    return [str(folder.path) for folder in folders if folder.metrics() is None]


def _ending(work: CorpusRuns) -> str:
    """What came out, a line a model, and what to try next."""
    folders = [RunFolder(work.folder / run.name) for run in work.runs]
    done = {each: metrics for each in folders if (metrics := each.metrics())}
    found = {
        each: m for each, m in done.items() if m.val_prefix_loss is not None
    }
    if not found:
        return ""
    rows = [
        [each.path.name, metrics.val_prefix_loss_per_token, metrics.test_bleu]
        for each, metrics in found.items()
    ]
    head = ["model", "prefix loss, validation", "BLEU, test"]
    table = tabulate(
        rows, head, "plain", floatfmt=("", ".3f", ".1f"), missingval="–"
    )
    best = max(found, key=lambda each: found[each].test_bleu or 0)
    leaking = [each for each in found if each.manifest().looks_ahead]
    tries = [["audit", (leaking or [best])[0].path]]
    if examples := found[best].examples:
        # One that is translated as its reference has it, if there is any.
        example = min(
            examples, key=lambda one: one["translation"] != one["reference"]
        )
        tries.insert(0, ["translate", best.path, example["source"]])
        tries.append(["attention", best.path, example["source"]])
    lines = [shlex.join(["reprt", *map(str, each)]) for each in tries]
    return "\n".join([table, "Try:", *(f"  {line}" for line in lines)])
