"""The training loop: teacher forcing, a log, exact resumption."""

import dataclasses
import itertools
import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import keras

from reprt import termination
from reprt.data.batching import BatchPlan
from reprt.data.encoding import EncodedCorpus
from reprt.imports import quietly
from reprt.models.registry import make
from reprt.optimizers import make_optimizer
from reprt.progress import Progress, duration
from reprt.termination import Terminated
from reprt.training.average import average_last, keep_model
from reprt.training.backend import Backend
from reprt.training.checkpoint import (
    by_path,
    restore_checkpoint,
    save_checkpoint,
)
from reprt.training.objective import OBJECTIVES
from reprt.training.settings import RunSettings
from reprt.training.workers import several_workers

CALIBRATION_STEPS = 3
EVALUATION_COST = 0.4  # of a batch, in training steps
# The device computes ahead: its sums are read after this many seconds or steps.
READ_SECONDS = 1.0
READ_STEPS = 100
RECENT = 20  # readings that rates and forecasts are of


@dataclasses.dataclass
class Tally:
    """Sums over batches, divided only when a mean is asked for."""

    rows: int = 0
    tokens: int = 0
    correct: int = 0
    loss: float = 0.0
    row_weighted_means: float = 0.0

    def add(self, rows, loss, tokens, correct):
        self.rows += rows
        self.tokens += tokens
        self.correct += correct
        self.loss += loss
        self.row_weighted_means += rows * loss / max(tokens, 1)

    def means(self, prefix: str) -> dict[str, float]:
        return {
            # Keras' running mean: of each batch's token mean, weighted by its rows.
            f"{prefix}_loss": self.row_weighted_means / max(self.rows, 1),
            f"{prefix}_loss_per_token": self.loss / max(self.tokens, 1),
            f"{prefix}_accuracy": self.correct / max(self.tokens, 1),
        }


@dataclasses.dataclass
class State:
    """Where a training stands, apart from its variables."""

    step: int = 0  # finished steps
    epoch: int = 0  # finished epochs
    step_in_epoch: int = 0
    seconds_in_epoch: float = 0.0
    tally: Tally = dataclasses.field(default_factory=Tally)
    rows: list[dict[str, float]] = dataclasses.field(default_factory=list)
    rows_of_steps: list[dict[str, float]] = dataclasses.field(
        default_factory=list
    )
    lately: Tally = dataclasses.field(
        default_factory=Tally
    )  # since the last of these
    out_of_time: bool = False

    @classmethod
    def read(cls, saved) -> "State":
        """Returns what `dataclasses.asdict` made a table of."""
        tallies = ("tally", "lately")
        return cls(**saved | {name: Tally(**saved[name]) for name in tallies})


class Trainer:
    """Trains one model, from where its folder says it stands.

    Args:
        settings, text: of the run.
        folder: the run's folder, such as the laboratory's `RunFolder`, already opened.
        progress: where the state of the work is shown.
        more: what else of the model a row of `steps.csv` has, by name.
    """

    def __init__(
        self,
        settings: RunSettings,
        text: EncodedCorpus,
        folder: Any,
        progress: Progress,
        more: Callable[[Any], dict[str, float]] = lambda model: {},
    ):
        self.settings, self.text, self.folder = settings, text, folder
        self._progress, self._more = progress, more
        self.name, training = settings.name, settings.training
        tokenizers = text.source_tokenizer, text.target_tokenizer
        self._backend = backend(training.deterministic)
        self._plan, self.validation = (
            BatchPlan(
                split.lengths, seed=training.seed, **dict(settings.batching)
            )
            for split in (text.train, text.dev)
        )
        # Of the whole run, if its time allows.
        self.steps = training.steps or training.epochs * self._plan.steps
        self._of_epochs = "" if training.steps else f"/{training.epochs}"
        # Every model starts from its own seed, whatever was built before it.
        with quietly():  # Keras loads TensorFlow for it, whatever the backend
            keras.utils.set_random_seed(training.seed)
        with self._backend.scope():
            sizes = map(len, tokenizers)
            self.model = make(
                settings.model,
                *sizes,
                name=settings.preset,
                dtype=training.precision,
            )
            schedule = settings.identity.schedule  # which has the paper's m
            self._optimizer = make_optimizer(
                settings.optimizer, schedule, self.steps
            )
            self._optimizer.build(self.model.trainable_variables)
        self._variables = by_path(self.model, self._optimizer)
        saved = restore_checkpoint(folder.checkpoints, self._variables)
        self.state = State.read(saved) if saved else State()
        self.state.out_of_time &= self._seconds_of_budget_left() <= 0
        digests = ", ".join(
            each.digest() for each in (text.corpus, *tokenizers)
        )
        self._backend.check_same(
            f"step {self.state.step}, text and vocabularies {digests}, "
            f"{settings.identity}, {training}"
        )
        # Epochs that ended after the checkpoint will be done again, and a kill may have
        # come between a checkpoint and what is written after it.
        folder.write_log(self.state.rows)
        self._write_steps()
        if self.state.epoch and not self.state.step_in_epoch:
            folder.save_model(self.model)
        hardware = self._backend.devices, self._backend.accelerators
        folder.add_start(*hardware, self.model.looks_ahead)
        kind = OBJECTIVES[settings.objective.name]
        objective = kind(self.model, settings.objective, self.steps)
        self._backend.compile(objective, self._optimizer, text.dev)
        self._backend.load()
        # Of the last readings: seconds a step, tokens a second.
        self._recent: deque[tuple[float, float]] = deque(maxlen=RECENT)
        self._calibrated, self._compiled = 0.0, False
        self._checkpoint_time = time.monotonic()
        self._kept = folder.path / "models"  # those of a mean

    @property
    def finished(self) -> bool:
        going = (
            self.steps_left or self.state.step_in_epoch
        )  # of an unfinished epoch
        return self.state.out_of_time or not going

    @property
    def steps_per_epoch(self) -> int:
        """Returns the steps of the present epoch, which `training.steps` may cut."""
        most = self.settings.training.steps or math.inf
        return int(min(self._plan.steps, most - self.steps_of_epochs))

    @property
    def steps_left(self) -> int:
        return max(0, self.steps - self.state.step)

    @property
    def epochs_done(self) -> float:
        """Returns the logged epochs; `training.steps` may end within the last."""
        return min(self.state.epoch, self.state.step / self._plan.steps)

    @property
    def steps_of_epochs(self) -> int:
        """Returns the steps of the finished epochs."""
        return self.state.step - self.state.step_in_epoch

    def average(self) -> list[str]:
        """Gives the model the mean of the last models; returns their names."""
        most = self.settings.training.average
        return average_last(self._kept, self.model, self.steps_of_epochs, most)

    @property
    def seconds_left(self) -> float:
        """Returns the expected time to the end of the training."""
        epochs = -(-self.steps_left // self._plan.steps)
        steps = (
            self.steps_left + epochs * EVALUATION_COST * self.validation.steps
        )
        expected = steps * self._seconds_per_step
        return (
            0.0
            if self.finished
            else min(expected, self._seconds_of_budget_left())
        )

    def calibrate(self):
        """Measures the time of a step, and leaves no trace in the state."""
        before = [(each, each.numpy()) for each in self._variables.values()]
        self._backend.warm_up(self.text.train, self._plan)
        seconds = []
        for batch in itertools.islice(
            self._training_batches(), 1 + CALIBRATION_STEPS
        ):
            start = time.monotonic()
            self._backend.read([self._backend.train(batch)])
            seconds.append(time.monotonic() - start)
        for variable, value in before:
            variable.assign(value)
        self._backend.load()
        timed = seconds[1:] or seconds  # the first includes the tracing
        self._calibrated = self._backend.agreed(sum(timed) / len(timed))

    def train_epoch(
        self, seconds_left_elsewhere: Callable[[], float] = lambda: 0.0
    ):
        """Trains to the end of the present epoch, or of the time.

        If the process is asked to end, it saves a checkpoint and raises `Terminated`.
        """
        state, training, unread = self.state, self.settings.training, []
        keep_every = training.keep_every or self._plan.steps
        begun, every = time.monotonic(), self._steps_between_readings
        for batch in self._training_batches():
            unread.append(self._backend.train(batch))
            state.step += 1
            state.step_in_epoch += 1
            done = state.step_in_epoch == self.steps_per_epoch
            at_once = termination.asked() and not several_workers()
            due = state.step % keep_every == 0 or not self.steps_left
            kept = training.average > 0 and due
            steps = training.validate_every
            measured = steps is not None and state.step % steps == 0
            if len(unread) < every and not (
                done or at_once or kept or measured
            ):
                continue
            self._read(unread, begun)
            self._show(seconds_left_elsewhere())
            if measured:
                self._measure()
            if kept and self.folder.writable:
                self._backend.store()
                of_epochs = state.step if done else self.steps_of_epochs
                which = state.step, training.average, of_epochs
                keep_model(self._kept, self.model, *which)
            if done:
                break  # an epoch that is done counts, whatever time is left
            # Where there are several workers, all of them have met here.
            if self._backend.agreed(termination.asked()):
                self.checkpoint()
                self._progress.say(
                    f"{self.name}: asked to end in epoch {state.epoch + 1}; saved a "
                    f"checkpoint after step {state.step_in_epoch}"
                )
                raise Terminated
            if self._seconds_of_budget_left() <= 0:
                state.out_of_time = True
                self.checkpoint()
                self._progress.say(
                    f"{self.name}: out of time in epoch {state.epoch + 1}, which does "
                    f"not count; {training.hours} hours are over"
                )
                return
            since = time.monotonic() - self._checkpoint_time
            if since >= 60 * training.checkpoint_minutes:
                self.checkpoint()
            unread = []
            begun, every = time.monotonic(), self._steps_between_readings
        self._end_epoch()

    @property
    def _steps_between_readings(self) -> int:
        """A function of what all workers agree on, because reading makes them meet."""
        checkpoint = 60 * self.settings.training.checkpoint_minutes
        seconds = min(READ_SECONDS, checkpoint, self._seconds_of_budget_left())
        steps = (
            seconds / self._seconds_per_step if self._seconds_per_step else 1
        )
        return max(1, min(int(steps), READ_STEPS))

    def _read(self, sums, begun):
        """Waits for the last steps, and adds them up."""
        state, steps = self.state, len(sums)
        before, first = state.tally.tokens, state.step_in_epoch - steps + 1
        for step, (rows, loss, *counts) in enumerate(
            self._backend.read(sums), first
        ):
            self._check_finite("loss", loss, step)
            for tally in (state.tally, state.lately):
                tally.add(rows, loss, *counts)
        seconds = self._backend.agreed(time.monotonic() - begun)
        state.seconds_in_epoch += seconds
        if self._compiled:
            rate = (state.tally.tokens - before) / seconds
            self._recent.append((seconds / steps, rate))
        self._compiled = True  # by the first steps, which do not count

    @property
    def _seconds_per_step(self) -> float:
        """The median of the last readings, which forgets a stall."""
        seconds = [each for each, _ in self._recent]
        return statistics.median(seconds) if seconds else self._calibrated

    def _check_finite(self, what, loss, step):
        if not math.isfinite(loss):
            raise ArithmeticError(
                f"The {what} is {loss} in epoch {self.state.epoch + 1}, step {step}. "
                f"Any checkpoints are in {self.folder.checkpoints}."
            )

    def checkpoint(self):
        """Saves variables and state; the same command goes on from here."""
        self._checkpoint_time = time.monotonic()
        self._backend.store()
        if self.folder.writable:
            folder, state = (
                self.folder.checkpoints,
                dataclasses.asdict(self.state),
            )
            save_checkpoint(folder, self.state.step, self._variables, state)

    def evaluate(self) -> Tally:
        """Returns the sums of the teacher-forced loss over the validation split."""
        tally = Tally()
        batches = self._backend.batches(self.text.dev, self.validation)
        sums = [self._backend.evaluate(batch) for batch in batches]
        for numbers in self._backend.read(sums):
            tally.add(*numbers)
        return tally

    def _measure(self):
        """Adds a row to those of steps."""
        state = self.state
        means = state.lately.means("train") | self.evaluate().means("val")
        losses = {
            n: mean for n, mean in means.items() if n.endswith("per_token")
        }
        self._backend.store()
        row = {"step": state.step, **losses, **self._more(self.model)}
        state.rows_of_steps.append(row)
        state.lately = Tally()
        self._write_steps()

    def _write_steps(self):
        if rows := self.state.rows_of_steps:
            self.folder.write_log(rows, "steps.csv")

    def _training_batches(self):
        epoch, skip = self.state.epoch, self.state.step_in_epoch
        return self._backend.batches(self.text.train, self._plan, epoch, skip)

    def _end_epoch(self):
        state, begun = self.state, time.monotonic()
        validation = self.evaluate()
        # The last step's weights are in no training loss.
        self._check_finite(
            "validation loss", validation.loss, state.step_in_epoch
        )
        self._backend.store()
        row = {
            "epoch": state.epoch + 1,
            "step": int(self._optimizer.iterations.numpy()),
            "learning_rate": float(self._optimizer.learning_rate),
            **state.tally.means("train"),
            **validation.means("val"),
            "train_tokens": state.tally.tokens,
            "train_seconds": round(state.seconds_in_epoch, 3),
            "val_seconds": round(time.monotonic() - begun, 3),
        }
        state.rows.append(row)
        state.epoch += 1
        state.step_in_epoch, state.seconds_in_epoch = 0, 0.0
        state.tally = Tally()
        self.checkpoint()
        self.folder.write_log(state.rows)
        self.folder.save_model(self.model)
        if self.settings.training.tensorboard and self.folder.writable:
            import tensorflow as tf

            place = str(self.folder.path / "tensorboard")
            with tf.summary.create_file_writer(place).as_default(state.epoch):
                for name, value in row.items():
                    tf.summary.scalar(name, value)
        self._progress.say(
            f"{self.name}: epoch {state.epoch}{self._of_epochs}, "
            f"training loss {row['train_loss']:.3f}, validation loss "
            f"{row['val_loss']:.3f}, {duration(row['train_seconds'])}"
        )

    def _seconds_of_budget_left(self):
        logged = sum(row["train_seconds"] for row in self.state.rows)
        used = self.state.seconds_in_epoch + logged
        return self.settings.training.hours * 3600 - used

    def _show(self, seconds_elsewhere):
        state, tally = self.state, self.state.tally
        steps_left = self.steps_per_epoch - state.step_in_epoch
        rates = [each for _, each in self._recent]
        rate = f"{statistics.median(rates):.0f} tokens/s, " if rates else ""
        self._progress.show(
            f"{self.name}: epoch {state.epoch + 1}{self._of_epochs}, "
            f"step {state.step_in_epoch}/{self.steps_per_epoch}, "
            f"loss {tally.means('train')['train_loss']:.3f}, {rate}epoch ends in "
            f"{duration(steps_left * self._seconds_per_step)}, training in "
            f"{duration(self.seconds_left + seconds_elsewhere)}"
        )


def backend(deterministic: bool) -> Backend:
    """Returns Keras' present backend; there is no training on PyTorch."""
    match keras.backend.backend():
        case "tensorflow":
            from reprt.training.tensorflow_backend import OnTensorFlow

            return OnTensorFlow(deterministic)
        case "jax":  # which gives the same bits each time in any case
            from reprt.training.jax_backend import OnJax

            return OnJax()
        case other:
            raise ValueError(
                "Training runs on the backends tensorflow and jax. Received: "
                f"KERAS_BACKEND={other}. The layers and models work with model.fit."
            )


def train_side_by_side(
    trainers: Sequence[Trainer],
    after_epoch: Callable[[], object] = lambda: None,
) -> list[ArithmeticError]:
    """Trains models by turns, an epoch each; returns why any did not finish."""
    pending = list(trainers)
    errors: list[ArithmeticError] = []
    while pending := [trainer for trainer in pending if not trainer.finished]:
        trainer = min(pending, key=lambda trainer: trainer.state.epoch)
        others = [other for other in pending if other is not trainer]
        with termination.put_off():
            try:
                trainer.train_epoch(
                    lambda: sum(each.seconds_left for each in others)
                )
            except ArithmeticError as error:  # of a loss, or of a search
                errors.append(ArithmeticError(f"{trainer.name}: {error}"))
                pending = others
            after_epoch()
    return errors
