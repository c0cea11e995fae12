"""A recipe from its text to its report."""

import contextlib
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path

from reprt.data.corpora.search import find
from reprt.jobs.plan import make_plan
from reprt.jobs.work import Work, find_work
from reprt.progress import Progress, duration
from reprt.reports.evaluation import evaluation_table
from reprt.reports.registry import pages
from reprt.runs.provenance import provenance
from reprt.runs.recipe import Recipe
from reprt.runs.run_folder import RunFolder, RunFolderError
from reprt.training.workers import is_chief, several_workers

EXAMPLES = 5


def run_job(
    recipe: Recipe,
    only: Sequence[str] = (),
    out: Path | None = None,
    plan_only: bool = False,
) -> Path:
    """Trains a recipe's models and writes its page.

    What has been done before is not done again: finished runs are kept as they are,
    interrupted ones go on from their last checkpoint. A pair whose text cannot be had
    is left out and named, if there are others.

    Args:
        recipe: the recipe.
        only: names of the models to train; empty for all.
        out: folder of the results; None for one under `runs`.
        plan_only: whether only to say what there is to do, and what it will cost.

    Returns:
        The path of the page; of the folder, if there is none.

    Raises:
        ArithmeticError: if a model's loss is not finite, once the others are trained;
            it names all such models.
        ConnectionError: if this is one of several workers, and another was lost.
        ValueError: for a text that cannot be had, or a folder that holds other runs.
    """
    recipe.runs(embedded=False, only=only)  # an unknown model is told before all else
    progress = Progress()
    with _together():
        work = find_work(recipe, only, out, progress)
        if plan_only or len(work) > 1 or recipe.page != "report":
            progress.say(str(make_plan(work, progress)))
        if plan_only:
            return work[-1].folder
        errors = [
            error for each in work for error in train_work(each, recipe, progress)
        ]
    page = write_page(recipe.page, work[-1].folder)
    if errors:
        raise ArithmeticError("\n".join(map(str, errors)))
    return page


@contextlib.contextmanager
def _together():
    """Joins the other workers that train the same runs, if there are any."""
    if not several_workers():
        yield
        return
    # Before all else that TensorFlow does.
    from reprt.training.tensorflow_backend import mirrored_strategy, together

    mirrored_strategy()
    with together():
        yield


def prepare(recipe: Recipe, path: Path) -> Path:
    """Writes the text of a recipe, with its ids and vocabularies, into one file.

    Args:
        recipe: the recipe.
        path: the file.

    Returns:
        The path.

    Raises:
        ValueError: if the text cannot be had, or is of several pairs.
    """
    from reprt.data.prepared import check_ending, write_prepared

    if len(recipe.pairs) > 1:
        raise ValueError(
            "Expected one pair, since a prepared file holds one. Received: "
            f"{', '.join(recipe.pairs)}. Choose by --pair."
        )
    check_ending(path)  # before the work
    progress = Progress()
    (work,) = find_work(recipe, [], path.parent, progress)
    settings = recipe.text
    write_prepared(
        work.encoded(progress), settings.vocab_size, settings.max_tokens, path
    )
    return path


def write_page(page: str, folder: Path) -> Path:
    """Writes what a recipe's `page` is on the runs in the folder of a text.

    Returns:
        The path of the page; the folder, if there is no run yet or another worker
        writes the page.
    """
    if not is_chief() or not any(folder.glob("*/config.toml")):
        return folder
    asked = pages()[page]
    if asked.each_text:
        pages()[asked.each_text].write(folder)
    return asked.write(folder.parent if asked.several_texts else folder)


def train_work(
    work: Work, recipe: Recipe, progress: Progress
) -> list[ArithmeticError]:
    """Trains all runs on one text, and writes their page as they go.

    Args:
        work: the runs and their text.
        recipe: the recipe that they are of.
        progress: where it is said how far they are.

    Returns:
        Why runs did not finish; the others did.
    """
    from reprt.training.trainer import forget_models

    progress.say("Vocabularies: learning them, unless they are in the cache")
    text = work.encoded(progress)
    progress.say(
        f"Vocabularies: {len(text.source_tokenizer):,} and "
        f"{len(text.target_tokenizer):,} pieces"
    )

    def write():
        write_page(recipe.page, work.folder)

    def folder_of(run):
        return RunFolder(work.folder / run.name, writable=is_chief())

    # A recipe of trials has too many models to have them all in memory, and their
    # times are not what it is about.
    trials = bool(recipe.trials.seeds)
    groups = [[run] for run in work.runs] if trials else [work.runs]
    errors = []
    for group in groups:
        with contextlib.ExitStack() as claims:
            mine = {
                folder_of(run): run
                for run in group
                if _claimed(folder_of(run), claims, progress)
            }
            diverged = _train(mine, text, progress, write)
            if mine:
                write()
        for error in diverged:
            progress.say(f"{error} Any other runs go on.")
        errors += diverged
        forget_models()
    write()
    return errors


def _claimed(folder, claims, progress):
    """Whether the run is left to this process."""
    mine = claims.enter_context(folder.claimed())
    if not mine:
        if several_workers():
            raise RunFolderError(f"Another process works on {folder.path}.")
        progress.say(f"{folder.path.name}: another process works on it")
    return mine


def _train(runs, text, progress, after_epoch):
    """Trains runs, by their folders, side by side, and writes what came out.

    Returns why runs did not finish.
    """
    from reprt.training.trainer import Trainer, train_side_by_side

    for folder, run in runs.items():
        folder.open(run, text)
    trainers = []
    for folder, run in runs.items():
        if folder.metrics() is not None:
            progress.say(f"{run.name}: finished before, in {folder.path}")
            continue
        trainer = Trainer(run, text, folder, progress)
        if not trainer.finished:
            progress.say(
                f"{run.name}: {trainer.model.count_params():,} parameters, from epoch "
                f"{trainer.state.epoch + 1}, step {trainer.state.step_in_epoch + 1} of "
                f"{trainer.steps_per_epoch}; measuring a step"
            )
            trainer.calibrate()
        trainers.append(trainer)
    if unfinished := [trainer.name for trainer in trainers if not trainer.finished]:
        seconds = sum(trainer.seconds_left for trainer in trainers)
        progress.say(
            f"Training {' and '.join(unfinished)} will take about {duration(seconds)}; "
            f"the results go to {trainers[0].folder.path.parent}"
        )
    errors = train_side_by_side(trainers, after_epoch)
    for trainer in trainers:
        if trainer.finished and trainer.folder.writable:
            try:
                trainer.folder.write_metrics(_results(trainer, progress))
            except ArithmeticError as error:
                errors.append(error)
    return errors


def _results(trainer, progress: Progress):
    """What is reported of a trained model, beyond its log."""
    import keras

    state, text, run = trainer.state, trainer.text, trainer.settings
    # A training that ran out of time ended within an epoch, which does not count.
    model = keras.saving.load_model(trainer.folder.model) if state.epoch else None
    metrics = {
        "parameters": trainer.model.count_params(),
        "epochs": state.epoch,
        "out_of_time": state.out_of_time,
        "total_train_seconds": sum(row["train_seconds"] for row in state.rows),
        "last_epoch": state.rows[-1] if state.rows else {},
        "finished": time.strftime("%Y-%m-%d %H:%M:%S %z"),
    }
    if model is None or not run.training.bleu:
        return metrics

    from reprt.analysis.evaluation import prefix_loss, translation_scores
    from reprt.decoding.translator import Translator

    def show(done):
        progress.show(f"{trainer.name}: {done}")

    begun = time.monotonic()
    prefix = prefix_loss(model, text.dev, run.training.batch_size, show)
    middle = time.monotonic()
    translator = Translator(model, text.source_tokenizer, text.target_tokenizer)
    found = translation_scores(
        translator, text.test.source, text.test_words, text.corpus.test.target, show
    )
    bleu = found.scores[0]
    progress.say(
        f"{trainer.name}: prefix loss {prefix.per_token:.3f} on the validation split, "
        f"BLEU {bleu.value:.1f} on the test split"
    )
    examples = zip(text.corpus.test.source, found.references, found.translations)
    return {
        **metrics,
        "val_prefix_loss": prefix.mean_of_batches,
        "val_prefix_loss_per_token": prefix.per_token,
        "val_prefix_seconds": middle - begun,
        "test_bleu": bleu.value,
        "test_bleu_signature": bleu.signature,
        "test_scores": [dataclasses.asdict(score) for score in found.scores],
        "test_seconds": time.monotonic() - middle,
        "examples": [
            {"source": source, "reference": reference, "translation": translation}
            for source, reference, translation in list(examples)[:EXAMPLES]
        ],
    }


def evaluate_run(
    path: Path, split: str, source: str | None = None, search: dict | None = None
) -> str:
    """Measures the model of a run folder and keeps the result there.

    Args:
        path: the run's folder.
        split: `"dev"` or `"test"`.
        source: where its text is now; None for where the run found it.
        search: arguments of `reprt.decoding.BeamSearch`.

    Returns:
        A table, as it is written to `evaluation-SPLIT.md`.

    Raises:
        RunFolderError: if the run has no model, or the text is not the run's.
    """
    from reprt.analysis.evaluation import evaluate
    from reprt.data.encoding import EncodedSplit
    from reprt.decoding.translator import Translator

    folder, progress, search = RunFolder(path), Progress(), search or {}
    settings, manifest = folder.settings(), folder.manifest()
    translator = Translator.load(path, **search)
    text = settings["text"]
    corpus = find(source or text["source"], text["pair"])
    if corpus.digest() != manifest["text_sha256"]:
        raise RunFolderError(
            f"Expected the text of the run, {manifest['text']} with sha256 "
            f"{manifest['text_sha256'][:16]}. Received: {corpus.name} from "
            f"{corpus.origin}, with {corpus.digest()[:16]}. Say where it is by --text."
        )
    sentences = getattr(corpus, split)
    longest = text["max_tokens"]
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
        settings["training"]["batch_size"],
        progress.show,
    )
    result = {
        "run": settings["name"],
        "text": corpus.name,
        "split": split,
        "search": {
            "beam_size": translator.search.beam_size,
            "length_penalty": translator.search.length_penalty,
            "max_tokens": translator.search.max_tokens,
        },
        **found.as_json(),
        "provenance": provenance(),
    }
    table = evaluation_table(result)
    folder.write_evaluation(split, result, table)
    return table
