"""What a job will cost, said before it begins."""

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reprt.data.batch_plan import BatchPlan
from reprt.data.corpora.corpus import Corpus
from reprt.jobs.corpus_runs import CorpusRuns
from reprt.progress import Progress, duration
from reprt.runs.run_folder import RunFolder
from reprt.runs.run_settings import RunSettings
from reprt.training import EVALUATION_COST


@dataclasses.dataclass(frozen=True)
class Planned:
    """One run, and what is left to do of it.

    Attributes:
        pair: its pair of languages.
        run: its name.
        sentences: those of its training text.
        epochs: how many it is to have; None if it is to have so many steps.
        done: how many it has.
        finished: whether its results are there.
        steps: those that are left, if its budget of time allows.
        seconds: what they will take, about, validation included.
    """

    pair: str
    run: str
    sentences: int
    epochs: int | None
    done: int
    finished: bool
    steps: int
    seconds: float

    @property
    def state(self) -> str:
        if self.finished:
            return "finished"
        of = "" if self.epochs is None else f" of {self.epochs}"
        return f"{self.done}{of} epochs" if self.done else "to do"


@dataclasses.dataclass(frozen=True)
class Plan:
    """The runs of a job, in the order in which they will be trained.

    Attributes:
        runs: the runs.
        at_once: how many of them are trained at a time.
    """

    runs: Sequence[Planned]
    at_once: int = 1

    def __str__(self):
        rows = [("pair", "run", "sentences", "state", "steps left", "about")]
        rows += [
            (
                run.pair,
                run.run,
                f"{run.sentences:,}",
                run.state,
                f"{run.steps:,}",
                duration(run.seconds),
            )
            for run in self.runs
        ]
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        steps = sum(run.steps for run in self.runs)
        hours = sum(run.seconds for run in self.runs) / 3600 / self.at_once
        each = "one run after the other"
        if self.at_once > 1:
            each = f"{self.at_once} runs at a time"
        return "\n".join(
            [
                *lines,
                f"Together {steps:,} steps, about {hours:.1f} hours, {each} (measured "
                "here on a few steps, and on runs that have begun; without the prefix "
                "loss and translations after each training)",
            ]
        )


def make_plan(texts: Sequence[CorpusRuns]) -> Plan:
    """Finds out what is left to do, and measures a few steps of other runs.

    A step's time is taken from the epochs that a run has had. A model that has had none
    takes a few steps, once for each size of model. Other texts scale their time by the
    words of a sentence.

    Args:
        texts: the runs on each text.
    """
    progress = Progress()
    measured: dict[tuple, float] = {}  # seconds a step and word

    def seconds_a_step(work, run):
        key = run.model.sizes, run.batching, run.training.precision
        words = _words(work.corpus)
        if key not in measured:
            progress.show(f"measuring steps of {run.name} on {work.corpus.pair}")
            measured[key] = _measured(run, work.encoded(progress), progress) / words
        return measured[key] * words

    planned = []
    for work in texts:
        corpus = work.corpus
        for run in work.runs:
            files, training = RunFolder(work.folder / run.name), run.training
            epoch, validation = (
                _steps(work, run, split, progress) for split in ("train", "dev")
            )
            log, finished = files.log(), files.metrics() is not None
            used = [row["train_seconds"] for row in log]
            done = len(log) * epoch
            steps = training.steps or training.epochs * epoch
            steps = 0 if finished else max(0, steps - done)
            seconds = 0.0
            if steps:
                each = sum(used) / done if used else seconds_a_step(work, run)
                budget = max(0.0, training.hours * 3600 - sum(used))
                steps = int(min(steps, budget / each))
                # The budget is one of training alone.
                seconds = steps * each * (1 + EVALUATION_COST * validation / epoch)
            planned.append(
                Planned(
                    corpus.pair,
                    run.name,
                    len(corpus.train),
                    None if training.steps else training.epochs,
                    len(log),
                    finished,
                    steps,
                    seconds,
                )
            )
    return Plan(planned)


def _steps(work: CorpusRuns, run: RunSettings, split: str, progress: Progress) -> int:
    """Returns the steps of a split's epoch; batches of tokens need its ids."""
    lengths = np.ones(len(getattr(work.corpus, split)))
    if run.batching.name != "sentences":
        lengths = getattr(work.encoded(progress), split).lengths
    return BatchPlan(lengths, **dataclasses.asdict(run.batching)).steps


def _measured(run, text, progress) -> float:
    """Returns the seconds of a step, measured in a run that leaves nothing behind."""
    from reprt.training.trainer import Trainer, forget_models

    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder(Path(place) / run.name)
        folder.open(run, text)
        trainer = Trainer(run, text, folder, progress)
        trainer.calibrate()
    seconds = trainer.seconds_per_step
    del trainer
    forget_models()
    return seconds


def _words(corpus: Corpus) -> float:
    """Returns the mean number of words of a training pair, both sides together."""
    sides = corpus.train.source, corpus.train.target
    return sum(len(s.split()) for side in sides for s in side) / len(corpus.train)
