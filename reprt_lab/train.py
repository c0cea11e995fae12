"""Trains the runs on one text, and measures what came out."""

import contextlib
import functools
import math
import resource
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import keras

from reprt.analysis import evaluation, scores
from reprt.analysis.cost import training_cost
from reprt.decoding.translator import Translator
from reprt.models.registry import load_model
from reprt.progress import Progress, duration
from reprt.training.trainer import Trainer, train_side_by_side
from reprt.training.workers import is_chief, several_workers
from reprt_lab.folder import RunFolder
from reprt_lab.records import Metrics
from reprt_lab.work import CorpusRuns

# How many translations of the test split are kept as examples.
EXAMPLES = 5
# There is a warning above this share of a side's pieces, or of the pairs.
WARNING_SHARE = 0.01


def train_runs(
    work: CorpusRuns,
    after_epoch: Callable[[], object],
) -> list[ArithmeticError]:
    """Trains runs side by side; returns why any of them did not finish.

    Args:
        after_epoch: called after each epoch, and once the runs are measured. What it
            raises is shown, and stops no training.
    """
    progress = Progress()
    progress.say("Vocabularies: learning them, unless they are in the cache")
    text = work.encode(progress)
    _say_what_is_lost(progress, text, work.runs[0].vocabulary)
    with contextlib.ExitStack() as claims:
        claimed = {}
        for run in work.runs:
            folder = RunFolder(work.folder / run.name, is_chief())
            if claims.enter_context(folder.claim()):
                claimed[folder] = run
            elif several_workers():
                raise ValueError(f"Another process works on {folder.path}.")
            else:
                progress.say(f"{run.name}: another process works on it")

        def report():
            try:
                after_epoch()
            except Exception as error:
                progress.say(f"The page was not written. {error}")

        errors = _train(claimed, text, progress, report)
        if claimed:
            report()
    for error in errors:
        progress.say(f"{error} Any other runs go on.")
    # Keras keeps what trained models leave.
    keras.backend.clear_session()
    return errors


def _say_what_is_lost(progress, text, vocabulary):
    """Says how the text became ids, and warns of what is lost and of shared pairs."""
    source, target = len(text.source_tokenizer), len(text.target_tokenizer)
    sizes = f"Vocabularies: {source:,} and {target:,} pieces"
    learnt = not vocabulary.from_run
    if learnt and min(source, target) < vocabulary.size:
        sizes += f", fewer than the {vocabulary.size:,} asked for"
    progress.say(sizes)
    if text.lost_words:
        warning = "Warning: " if text.lost_words > WARNING_SHARE else ""
        progress.say(
            f"{warning}{text.lost_words:.2%} of the target's words do not come back "
            "from ids, even in lower case: WordPiece folds case and drops marks such "
            'as accents. BPE keeps them: vocabulary.name = "bpe".'
        )
    for split, shares in text.unknown.items():
        cut = getattr(text, split).cut
        if cut > WARNING_SHARE:
            progress.say(
                f"Warning: {cut:.1%} of the {split} pairs are longer than 'max_tokens' "
                "in [text]: they are cut, and lose their end"
            )
        for side, share in shares.items():
            if share > WARNING_SHARE:
                progress.say(
                    f"Warning: {share:.1%} of the pieces of the {split} {side} are "
                    "[UNK], characters or words that the model cannot tell apart."
                )
    for split in ("dev", "test"):
        share = getattr(text, split).share_in(text.train)
        if share > WARNING_SHARE:
            progress.say(
                f"Warning: {share:.1%} of the {split} pairs are training pairs, too. "
                "They say little of other sentences."
            )


def _train(runs, text, progress, after_epoch):
    """Trains runs, by their folders, and writes what came out."""
    for folder, run in runs.items():
        folder.open(run, text)
    trainers: dict[Trainer, RunFolder] = {}
    for folder, run in runs.items():
        metrics = folder.metrics()
        if metrics is None:
            trainers[_make_trainer(run, text, folder, progress)] = folder
        else:
            end = "out of time" if metrics.out_of_time else "finished"
            progress.say(f"{run.name}: {end} before, in {folder.path}")
    unfinished = [trainer for trainer in trainers if not trainer.finished]
    _say_forecast(unfinished, progress)
    errors = train_side_by_side(list(trainers), after_epoch)
    memory = {}
    if len(runs) == 1 and unfinished and not several_workers():
        # The process' memory is that of its only training.
        unit = 1 if sys.platform == "darwin" else 1024
        peak = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        memory["peak_memory_bytes"] = peak
    for trainer, folder in trainers.items():
        if trainer.finished and folder.writable:
            try:
                results = memory | _results(trainer, folder, progress)
                folder.write_metrics(Metrics.read(results, trainer.name))
            # Some of the numbers are not finite.
            except (ArithmeticError, ValueError) as error:
                errors.append(ArithmeticError(f"{trainer.name}: {error}"))
    return errors


def _make_trainer(run, text, folder: RunFolder, progress: Progress) -> Trainer:
    """Makes the trainer of a run, and measures its steps if some are left."""
    trainer = Trainer(
        run,
        text,
        folder,
        progress,
        _bleu_of_samples(run, text),
    )
    trainer.write_start()
    if trainer.finished:
        return trainer
    progress.say(
        f"{run.name}: {trainer.model.count_params():,} parameters, from epoch "
        f"{trainer.state.epoch + 1}, step {trainer.state.step_in_epoch + 1} of "
        f"{trainer.steps_of_this_epoch}; measuring a step"
    )
    warmup = run.schedule.warmup_steps
    if trainer.steps <= warmup:
        progress.say(
            f"{run.name}: the learning rate still rises at the end, step "
            f"{trainer.steps}: [schedule] has {warmup} steps of warm-up"
        )
    trainer.calibrate()
    return trainer


def _say_forecast(trainers: Sequence[Trainer], progress: Progress):
    """Says how long unfinished trainings will take, and where the results go."""
    if not trainers:
        return
    names = " and ".join(trainer.name for trainer in trainers)
    seconds = sum(trainer.seconds_left for trainer in trainers)
    with_scores = any(trainer.settings.training.bleu for trainer in trainers)
    scoring = ", then scoring" if with_scores else ""
    out = trainers[0].folder.path.parent
    progress.say(
        f"Training {names} will take about {duration(seconds)}{scoring}; the results "
        f"go to {out}"
    )


def _bleu_of_samples(run, text) -> Callable[[Any], dict[str, float]]:
    """Returns a function of a model: its BLEU on the first sentences of two splits."""
    most = run.training.bleu_sentences
    tokenizers = text.source_tokenizer, text.target_tokenizer
    # The same model comes again and again, and its search is compiled.
    translator = functools.cache(lambda model: Translator(model, *tokenizers))

    def bleu(model) -> dict[str, float]:
        values: dict[str, float] = {}
        if not most:
            return values
        for name, split in (("train", text.train), ("val", text.dev)):
            words = tokenizers[1].decode(split.target[:most])
            _, results = evaluation.translation_scores(
                translator(model),
                split.source[:most],
                words,
                language=text.corpus.target_language,
                words=words,
                metrics=scores.BLEU_ONLY,
            )
            values[f"{name}_bleu"] = _bleu(results).value
        return values

    return bleu


def _bleu(results: Sequence[scores.Score]) -> scores.Score:
    return scores.on_corpus_tokens(results)["BLEU"]


def _results(trainer, folder: RunFolder, progress: Progress) -> dict[str, Any]:
    """What is reported of a trained model, beyond its log."""
    state, training = trainer.state, trainer.settings.training
    cost = training_cost(trainer.model, trainer.text.train, trainer.epochs_done)
    results = {
        **vars(cost),
        "epochs": state.epoch,
        "out_of_time": state.out_of_time,
        "finished": time.strftime("%Y-%m-%d %H:%M:%S %z"),
    }
    # A training that ran out of time ended within an epoch, which does not count.
    if state.epoch and (training.average or training.best):
        results |= _measure_chosen_model(trainer, folder, progress)
    if state.epoch and training.bleu:
        results |= _measure_model(trainer, folder, progress)
    return results


def _measure_model(
    trainer, folder: RunFolder, progress: Progress
) -> dict[str, Any]:
    """Measures the prefix loss of both splits, and translations of the test split."""
    text, run = trainer.text, trainer.settings
    corpus = text.corpus
    evaluate = functools.partial(
        evaluation.evaluate,
        Translator(
            load_model(folder.model),
            text.source_tokenizer,
            text.target_tokenizer,
        ),
        progress=lambda done: progress.show(f"{trainer.name}: {done}"),
        teacher_forced=False,
    )
    # In the batches of the log's validation losses.
    dev = evaluate(text.dev, None, batches=trainer.validation.batches())
    translates = run.text.side == "both"
    test = evaluate(
        text.test,
        corpus.test.target if translates else None,
        language=corpus.target_language,
        words=text.test_words,
        metrics=scores.PAGE_METRICS,
    )
    loss = dev.prefix.per_token
    results = {
        "val_prefix_loss": dev.prefix.mean_of_batches,
        "val_prefix_loss_per_token": loss,
        "test_prefix_loss_per_token": test.prefix.per_token,
        "test_by_length": _results_by_length(run, text, test),
    }
    summary = f"{trainer.name}: prefix loss {loss:.3f} on the validation split"
    if not translates:
        progress.say(f"{summary}, perplexity {math.exp(loss):.1f}")
        return results
    bleu = _bleu(test.scores)
    progress.say(f"{summary}, BLEU {bleu.value:.1f} on the test split")
    examples = []
    for row, source in enumerate(corpus.test.source[:EXAMPLES]):
        example = {"source": source, "reference": text.test_words[row]}
        examples.append({**example, "translation": test.translations[row]})
    return results | {
        "test_bleu": bleu.value,
        "test_bleu_signature": bleu.signature,
        "test_scores": test.scores,
        "examples": examples,
    }


def _results_by_length(
    run, text, test: evaluation.Evaluation
) -> list[dict[str, Any]]:
    """What each length of the test split shows, where training was short."""
    train_tokens = run.text.train_tokens
    if not train_tokens:
        return []
    rows = []
    shortest = 1
    for longest in (train_tokens, 2 * train_tokens, None):
        indices = text.test.between(shortest, longest or run.text.max_tokens)
        shortest = (longest or 0) + 1
        if not len(indices):
            continue
        tokens = text.test.tokens[1][indices].sum()
        row = {
            "longest": longest,
            "sentences": len(indices),
            "prefix_loss_per_token": test.losses[indices].sum() / tokens,
        }
        if test.translations:
            words = [text.test_words[index] for index in indices]
            results = scores.scores(
                text.target_tokenizer,
                [test.translations[index] for index in indices],
                words,
                text.corpus.target_language,
                words,
                scores.BLEU_ONLY,
            )
            row["bleu"] = _bleu(results).value
        rows.append(row)
    return rows


def _measure_chosen_model(
    trainer, folder: RunFolder, progress: Progress
) -> dict[str, Any]:
    """Measures the loss of the best model, or makes the mean of the last ones."""
    results: dict[str, Any] = {}
    if trainer.settings.training.average:
        names = trainer.average()
        if names:
            folder.save_model(trainer.model)
        results["averaged_models"] = names
        description = f"mean of {', '.join(names) or 'no model but the last'}"
    else:
        step = int(trainer.best.get("step", trainer.state.step))
        results["best_step"] = step
        results["stopped_early"] = trainer.out_of_patience
        description = f"best model, that of step {step}"
    # In the batches of the log's validation losses, which pages put it in place of.
    batches = trainer.validation.batches()
    model = load_model(folder.model)
    loss = evaluation.teacher_forced_loss(
        model, trainer.text.dev, batches=batches
    )
    progress.say(
        f"{trainer.name}: the {description}, validation loss {loss.mean_of_batches:.3f}"
    )
    return results | {
        "val_loss": loss.mean_of_batches,
        "val_loss_per_token": loss.per_token,
    }
