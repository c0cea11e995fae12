"""Trains the runs on one text, and measures what came out."""

import contextlib
import functools
import math
import resource
import sys
import time
from collections.abc import Callable
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
from reprt_lab.texts import CorpusRuns

EXAMPLES = 5
MUCH = (
    0.01  # of the pieces of a side, or of the pairs, before there is a warning
)


def train_runs(work: CorpusRuns) -> list[ArithmeticError]:
    """Trains runs side by side; returns why any of them did not finish."""
    progress = Progress()
    progress.say("Vocabularies: learning them, unless they are in the cache")
    text = work.encoded(progress)
    vocabulary = work.runs[0].vocabulary
    _say_sizes(progress, text, vocabulary.size)
    _say_what_is_lost(progress, text, vocabulary.name)
    with contextlib.ExitStack() as claims:
        mine = {}
        for run in work.runs:
            folder = RunFolder(work.folder / run.name, is_chief())
            if claims.enter_context(folder.claimed()):
                mine[folder] = run
            elif several_workers():
                raise ValueError(f"Another process works on {folder.path}.")
            else:
                progress.say(f"{run.name}: another process works on it")

        def after_epoch():  # a page that cannot be written stops no training
            try:
                work.write_page()
            except Exception as error:
                progress.say(f"The page was not written. {error}")

        errors = _train(mine, text, progress, after_epoch)
        if mine:
            after_epoch()
    for error in errors:
        progress.say(f"{error} Any other runs go on.")
    keras.backend.clear_session()  # Keras keeps what trained models leave
    return errors


def _say_sizes(progress, text, asked: int):
    """Says how large the vocabularies are, and whether a text gave fewer pieces."""
    source, target = len(text.source_tokenizer), len(text.target_tokenizer)
    sizes = f"Vocabularies: {source:,} and {target:,} pieces"
    if min(source, target) < asked:
        sizes += f", fewer than the {asked:,} asked for"
    progress.say(sizes)


def _say_what_is_lost(progress, text, vocabulary: str):
    """Says how much of the text is `[UNK]`, and warns where that or a cut is much."""
    shares = text.unknown["train"].items()
    told = (f"{share:.2%} of the {side}'s pieces" for side, share in shares)
    progress.say(f"Unknown: {', '.join(told)}")
    advice = (
        ""
        if vocabulary == "bpe"
        else ' BPE loses less: vocabulary.name = "bpe".'
    )
    if text.lost_words:
        lost = (
            f"{text.lost_words:.2%} of the target's words do not come back from ids, "
            "even in lower case: WordPiece folds case and drops marks such as accents."
        )
        if text.lost_words > MUCH:
            lost = f'Warning: {lost} BPE keeps them: vocabulary.name = "bpe".'
        progress.say(lost)
    for split, sides in text.unknown.items():
        if (cut := getattr(text, split).cut) > MUCH:
            progress.say(
                f"Warning: {cut:.1%} of the {split} pairs are longer than 'max_tokens' "
                "in [text]: they are cut, and lose their end"
            )
        for side, share in sides.items():
            if share > MUCH:
                progress.say(
                    f"Warning: {share:.1%} of the pieces of the {split} {side} are "
                    "[UNK], characters or words that the model cannot tell apart."
                    f"{advice}"
                )


def _train(runs, text, progress, after_epoch):
    """Trains runs, by their folders, and writes what came out."""
    for folder, run in runs.items():
        folder.open(run, text)
    trainers = []
    for folder, run in runs.items():
        if (finished := folder.metrics()) is not None:
            told = ", out of time: another --out trains longer"
            told = told if finished.out_of_time else ""
            if (
                run.training.bleu
                and finished.epochs
                and not finished.val_prefix_loss
            ):
                told += ", without the losses and BLEU that `reprt evaluate` computes"
            progress.say(f"{run.name}: finished before{told}, in {folder.path}")
            continue
        trainer = Trainer(
            run, text, folder, progress, _bleu_of_samples(run, text)
        )
        if not trainer.finished:
            progress.say(
                f"{run.name}: {trainer.model.count_params():,} parameters, from epoch "
                f"{trainer.state.epoch + 1}, step {trainer.state.step_in_epoch + 1} of "
                f"{trainer.steps_per_epoch}; measuring a step"
            )
            if trainer.steps <= (rises := run.schedule.warmup_steps):
                progress.say(
                    f"{run.name}: the learning rate still rises at the end, step "
                    f"{trainer.steps}: [schedule] has {rises} steps of warm-up"
                )
            trainer.calibrate()
        trainers.append(trainer)
    if unfinished := [
        trainer.name for trainer in trainers if not trainer.finished
    ]:
        seconds = sum(trainer.seconds_left for trainer in trainers)
        scored = any(trainer.settings.training.bleu for trainer in trainers)
        progress.say(
            f"Training {' and '.join(unfinished)} will take about {duration(seconds)}"
            f"{', then they are scored' * scored}; "
            f"the results go to {trainers[0].folder.path.parent}"
        )
    errors = train_side_by_side(trainers, after_epoch)
    memory = {}
    if len(runs) == 1 and unfinished and not several_workers():
        # The process' memory is that of its only training.
        unit = 1 if sys.platform == "darwin" else 1024
        peak = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        memory["peak_memory_bytes"] = peak
    for trainer in trainers:
        if trainer.finished and trainer.folder.writable:
            try:
                results = memory | _results(trainer, progress)
                trainer.folder.write_metrics(
                    Metrics.read(results, trainer.name)
                )
            except (ArithmeticError, ValueError) as error:  # numbers not finite
                errors.append(ArithmeticError(f"{trainer.name}: {error}"))
    return errors


def _bleu_of_samples(run, text) -> Callable[[Any], dict[str, float]]:
    """Returns a function of a model: its BLEU on the first sentences of two splits."""
    most = run.training.bleu_sentences * (run.text.side == "both")
    tokenizers = text.source_tokenizer, text.target_tokenizer
    translator = functools.cache(lambda model: Translator(model, *tokenizers))

    def bleu(model) -> dict[str, float]:
        found = {}
        for name, split in (("train", "train"), ("val", "dev")) if most else ():
            sources = getattr(text, split).source[:most]
            words = tokenizers[1].decode(getattr(text, split).target[:most])
            language = text.corpus.target_language
            _, scored = evaluation.translation_scores(
                translator(model),
                sources,
                words,
                language=language,
                words=words,
                metrics=scores.BLEU,
            )
            found[f"{name}_bleu"] = scores.on_corpus_tokens(scored)[
                "BLEU"
            ].value
        return found

    return bleu


def _results(trainer, progress: Progress) -> dict[str, Any]:
    """What is reported of a trained model, beyond its log."""
    state, text, run = trainer.state, trainer.text, trainer.settings
    metrics: dict[str, Any] = {
        **vars(training_cost(trainer.model, text.train, trainer.epochs_done)),
        "epochs": state.epoch,
        "out_of_time": state.out_of_time,
        "finished": time.strftime("%Y-%m-%d %H:%M:%S %z"),
    }
    # A training that ran out of time ended within an epoch, which does not count.
    if not state.epoch:
        return metrics
    if run.training.average:
        metrics |= _averaged(trainer, progress)
    if not run.training.bleu:
        return metrics

    def show(done):
        progress.show(f"{trainer.name}: {done}")

    model = load_model(trainer.folder.model)
    translator = Translator(model, text.source_tokenizer, text.target_tokenizer)
    begun = time.monotonic()
    how = {"progress": show, "batches": trainer.validation.batches()}
    prefix = evaluation.prefix_loss(model, text.dev, **how)
    metrics |= {
        "val_prefix_loss": prefix.mean_of_batches,
        "val_prefix_loss_per_token": prefix.per_token,
        "val_prefix_seconds": time.monotonic() - begun,
    }
    unseen = -evaluation.log_probabilities(translator, text.test, progress=show)
    metrics["test_prefix_loss_per_token"] = (
        unseen.sum() / text.test.tokens[1].sum()
    )
    said = f"{trainer.name}: prefix loss {prefix.per_token:.3f} on the validation split"
    if run.text.side == "target":
        progress.say(f"{said}, perplexity {math.exp(prefix.per_token):.1f}")
        return metrics | {"test_by_length": [*_by_length(run, text, unseen)]}

    begun, test = time.monotonic(), text.corpus.test
    language = text.corpus.target_language
    translations, found = evaluation.translation_scores(
        translator,
        text.test.source,
        test.target,
        show,
        language,
        text.test_words,
        scores.SHOWN,
    )
    seconds = time.monotonic() - begun
    bleu = scores.on_corpus_tokens(found)["BLEU"]
    progress.say(f"{said}, BLEU {bleu.value:.1f} on the test split")
    examples = zip(test.source[:EXAMPLES], text.test_words, translations)
    names = "source", "reference", "translation"
    return metrics | {
        "test_by_length": [*_by_length(run, text, unseen, translations)],
        "test_bleu": bleu.value,
        "test_bleu_signature": bleu.signature,
        "test_scores": found,
        "test_seconds": seconds,
        "examples": [dict(zip(names, each)) for each in examples],
    }


def _by_length(run, text, losses, translations=None):
    """Yields what each length of the test split shows, where training was short."""
    if not (short := run.text.train_tokens):
        return
    tokens, language = text.test.tokens[1], text.corpus.target_language
    shortest = 1
    for longest in (short, 2 * short, None):
        chosen = text.test.between(shortest, longest or run.text.max_tokens)
        shortest = (longest or 0) + 1
        if not len(chosen):
            continue
        result = {
            "longest": longest,
            "sentences": len(chosen),
            "prefix_loss_per_token": losses[chosen].sum()
            / tokens[chosen].sum(),
        }
        if translations:
            found, right, words = (
                [side[index] for index in chosen]
                for side in (
                    translations,
                    text.corpus.test.target,
                    text.test_words,
                )
            )
            scored = scores.scores(
                text.target_tokenizer,
                found,
                right,
                language,
                words,
                scores.BLEU,
            )
            result["bleu"] = scores.on_corpus_tokens(scored)["BLEU"].value
        yield result


def _averaged(trainer, progress: Progress):
    """Makes the mean of the last models the trained one, and measures its loss."""
    folder = trainer.folder
    if names := trainer.average():
        folder.save_model(trainer.model)
    # In the batches of the log's validation losses, which pages put it in place of.
    batches = trainer.validation.batches()
    model = load_model(folder.model)
    loss = evaluation.teacher_forced_loss(
        model, trainer.text.dev, batches=batches
    )
    progress.say(
        f"{trainer.name}: the mean of {', '.join(names) or 'no model but the last'}, "
        f"validation loss {loss.mean_of_batches:.3f}"
    )
    return {
        "averaged_models": names,
        "val_loss": loss.mean_of_batches,
        "val_loss_per_token": loss.per_token,
    }
