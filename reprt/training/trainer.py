"""The training loop: teacher forcing, a log, exact resumption."""

import dataclasses
import functools
import itertools
import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import keras

from reprt import termination
from reprt.data.batching import BatchPlan
from reprt.data.encoding import EncodedCorpus
from reprt.imports import silence_imports
from reprt.models.registry import make
from reprt.optimizers import make_optimizer
from reprt.progress import Progress, duration
from reprt.termination import Terminated
from reprt.training.average import average_last, keep_model
from reprt.training.backend import Backend
from reprt.training.checkpoint import (
    load_weights,
    restore_checkpoint,
    save_checkpoint,
    variables_by_path,
)
from reprt.training.objective import OBJECTIVES
from reprt.training.run_log import RunLog
from reprt.training.settings import RunSettings
from reprt.training.workers import several_workers

# The time of a step is measured on this many steps.
CALIBRATION_STEPS = 3
# The device computes ahead. Its sums are read after this many seconds or steps.
READ_SECONDS = 1.0
READ_STEPS = 100
# Rates and forecasts are medians of this many readings.
RECENT = 20


@dataclasses.dataclass
class Tally:
    """Sums over batches, divided only when a mean is asked for."""

    rows: int = 0
    tokens: int = 0
    correct: int = 0
    loss: float = 0.0
    row_weighted_means: float = 0.0

    def add(self, rows: int, loss: float, tokens: int, correct: int):
        self.rows += rows
        self.tokens += tokens
        self.correct += correct
        self.loss += loss
        self.row_weighted_means += rows * loss / max(tokens, 1)

    def means(self, prefix: str) -> dict[str, float]:
        rows, tokens = max(self.rows, 1), max(self.tokens, 1)
        return {
            # Keras' running mean: each batch's mean over tokens, weighted by its rows.
            f"{prefix}_loss": self.row_weighted_means / rows,
            f"{prefix}_loss_per_token": self.loss / tokens,
            f"{prefix}_accuracy": self.correct / tokens,
        }


@dataclasses.dataclass
class State:
    """Where a training stands, apart from its variables.

    Attributes:
        step: the number of finished steps.
        epoch: the number of finished epochs.
        step_in_epoch: the finished steps of the present epoch.
        seconds_in_epoch: their seconds.
        tally: their sums.
        rows: the log, a row for each finished epoch.
        rows_of_steps: the rows of `steps.csv`.
        interval: the sums since the last of these.
        out_of_time: whether the training ended because its hours were over.
    """

    step: int = 0
    epoch: int = 0
    step_in_epoch: int = 0
    seconds_in_epoch: float = 0.0
    tally: Tally = dataclasses.field(default_factory=Tally)
    rows: list[dict[str, float]] = dataclasses.field(default_factory=list)
    rows_of_steps: list[dict[str, float]] = dataclasses.field(
        default_factory=list
    )
    interval: Tally = dataclasses.field(default_factory=Tally)
    out_of_time: bool = False

    @classmethod
    def read(cls, table: dict[str, Any]) -> "State":
        """Returns what `dataclasses.asdict` made a table of."""
        state = cls(**table)
        state.tally = Tally(**table["tally"])
        state.interval = Tally(**table["interval"])
        return state


class Trainer:
    """Trains one model, from where its folder says it stands.

    Making a trainer only reads: `write_start` is the first that writes to the folder.

    Args:
        settings: those of the run.
        text: the encoded text.
        folder: where checkpoints, the log and the model are kept.
        progress: where the state of the work is shown.
        more_measures: returns what else of the model a row of `steps.csv` has, by name.
    """

    def __init__(
        self,
        settings: RunSettings,
        text: EncodedCorpus,
        folder: RunLog,
        progress: Progress,
        more_measures: Callable[[Any], dict[str, float]] = lambda model: {},
    ):
        self.settings = settings
        self.name = settings.name
        self.text = text
        self.folder = folder
        self._progress = progress
        self._more_measures = more_measures
        training, seed = settings.training, settings.training.seed
        self._plan = BatchPlan(
            text.train.lengths, seed=seed, **settings.batching_of_update
        )
        self.validation = BatchPlan(
            text.dev.lengths, seed=seed, **dict(settings.batching)
        )
        # The steps of the whole run, if its time allows.
        self.steps = training.steps or training.epochs * self._plan.steps
        self._backend = backend(training.deterministic)
        # Every model starts from its own seed, whatever was built before it. To set it,
        # Keras loads TensorFlow, whatever the backend.
        with silence_imports():
            keras.utils.set_random_seed(training.seed)
        with self._backend.scope():
            self._make_model_and_optimizer()
        self._variables = variables_by_path(self.model, self._optimizer)
        self.state = State()
        self._weights_from: dict[str, str] | None = None
        self._restore()
        self._check_workers()
        kind = OBJECTIVES[settings.objective.name]
        objective = kind(self.model, settings.objective, self.steps)
        self._backend.compile(
            objective, self._optimizer, text.dev, training.accumulate
        )
        self._backend.load()
        # The seconds of a step, by the last readings.
        self._recent: deque[float] = deque(maxlen=RECENT)
        self._calibrated = 0.0
        self._compiled = False
        self._checkpoint_time = time.monotonic()
        # The models that a mean may be of.
        self._models = folder.path / "models"

    def _make_model_and_optimizer(self):
        settings = self.settings
        self.model = make(
            settings.model,
            len(self.text.source_tokenizer),
            len(self.text.target_tokenizer),
            name=settings.preset,
            dtype=settings.training.precision,
        )
        # The identity's schedule has the paper's m.
        schedule = settings.identity.schedule
        self._optimizer = make_optimizer(
            settings.optimizer, schedule, self.steps
        )
        self._optimizer.build(self.model.trainable_variables)

    def _restore(self):
        """Takes the state and weights of the newest checkpoint, if there is one."""
        place = self.settings.training.start_from
        if table := restore_checkpoint(
            self.folder.checkpoints, self._variables
        ):
            self.state = State.read(table)
        elif place:
            self._weights_from = load_weights(self.model, place)
        state = self.state
        last_epoch_was_cut = (
            state.step_in_epoch == 0
            and state.step < state.epoch * self._plan.steps
        )
        if self._seconds_of_budget_left > 0 and not last_epoch_was_cut:
            # A training that was out of time goes on if it is given more.
            state.out_of_time = False

    def _check_workers(self):
        """Raises a `ValueError` unless all workers are to do the same."""
        text = self.text
        parts = text.corpus, text.source_tokenizer, text.target_tokenizer
        digests = ", ".join(part.digest() for part in parts)
        self._backend.check_same(
            f"step {self.state.step}, text and vocabularies {digests}, "
            f"weights {self._weights_from}, {self.settings.identity}, "
            f"{self.settings.training}"
        )

    @property
    def finished(self) -> bool:
        if self.state.out_of_time:
            return True
        if self.state.step_in_epoch:
            # Its steps may be done, but its epoch has not ended.
            return False
        return self.steps_left == 0 or self.out_of_patience

    @property
    def steps_of_this_epoch(self) -> int:
        """Returns the steps of the present epoch, which `training.steps` may cut."""
        most = self.settings.training.steps or math.inf
        return int(min(self._plan.steps, most - self.steps_before_this_epoch))

    @property
    def steps_left(self) -> int:
        return max(0, self.steps - self.state.step)

    @property
    def epochs_done(self) -> float:
        """Returns the logged epochs; `training.steps` may end within the last."""
        return min(self.state.epoch, self.state.step / self._plan.steps)

    @property
    def steps_before_this_epoch(self) -> int:
        """Returns the steps of the finished epochs."""
        return self.state.step - self.state.step_in_epoch

    @property
    def seconds_left(self) -> float:
        """Returns the expected time to the end of the training."""
        if self.finished:
            return 0.0
        expected = self.steps_left * self._seconds_per_step
        return min(expected, self._seconds_of_budget_left)

    def write_start(self):
        """Brings the folder to where the training stands, and notes the start there.

        Epochs that ended after the checkpoint will be done again, and a kill may have
        come between a checkpoint and what is written after it.
        """
        self.folder.write_log(self.state.rows)
        self._write_steps()
        if self.state.epoch and not self.state.step_in_epoch:
            self.folder.save_model(self.model, self._name_of_last)
        self.folder.add_start(
            self._backend.devices,
            self._backend.accelerators,
            self.model.looks_ahead,
            self._weights_from,
        )

    @property
    def _validations(self) -> list[dict[str, float]]:
        """The rows among whose models the best one is."""
        if self.settings.training.validate_every:
            return self.state.rows_of_steps
        return self.state.rows

    @property
    def best(self) -> dict[str, float]:
        """Returns the row of the best model, the first of equals; {} for none."""
        rows = self._validations
        match self.settings.training.best:
            case "loss":
                return min(
                    rows, key=itemgetter("val_loss_per_token"), default={}
                )
            case "bleu":
                return max(rows, key=itemgetter("val_bleu"), default={})
        return {}

    @property
    def out_of_patience(self) -> bool:
        """Returns whether the last validations, `patience` of them, were no better."""
        best, patience = self.best, self.settings.training.patience
        if patience is None or not best:
            return False
        return best not in self._validations[-patience:]

    @property
    def _name_of_last(self) -> str:
        return "last.keras" if self.best else "model.keras"

    def average(self) -> list[str]:
        """Gives the model the mean of the last models; returns their names."""
        most = self.settings.training.average
        return average_last(
            self._models,
            self.model,
            self.steps_before_this_epoch,
            most,
        )

    def calibrate(self):
        """Measures the time of a step, and leaves no trace in the state."""
        values = [variable.numpy() for variable in self._variables.values()]
        self._backend.warm_up(self.text.train, self._plan)
        seconds = []
        batches = iter(self._training_batches())
        for batch in itertools.islice(batches, 1 + CALIBRATION_STEPS):
            since = time.monotonic()
            self._backend.read([self._backend.train(batch)])
            seconds.append(time.monotonic() - since)
        for variable, value in zip(self._variables.values(), values):
            variable.assign(value)
        self._backend.load()
        # The first step includes the tracing. Where only an epoch's end is left to do,
        # there is no step.
        timed = seconds[1:] or seconds or [0.0]
        self._calibrated = self._backend.mean_over_workers(
            statistics.mean(timed)
        )

    def train_epoch(
        self,
        seconds_left_elsewhere: Callable[[], float] = lambda: 0.0,
    ):
        """Trains to the end of the present epoch, or of the time.

        If the process is asked to end, it saves a checkpoint and raises `Terminated`.
        """
        state, training = self.state, self.settings.training
        since = time.monotonic()
        batches = iter(self._training_batches())
        while not self._epoch_is_done:
            self._read(self._train_until_reading(batches), since)
            self._show(seconds_left_elsewhere())
            if self._measurement_is_due:
                self._measure()
            if self._model_is_to_be_kept:
                self._keep_model()
            # An epoch that is done counts, whatever time is left.
            if self._epoch_is_done or self.out_of_patience:
                break
            # Where there are several workers, all of them have met here.
            if self._backend.mean_over_workers(termination.asked()):
                self.checkpoint()
                self._progress.say(
                    f"{self.name}: asked to end in epoch {state.epoch + 1}; saved a "
                    f"checkpoint after step {state.step_in_epoch}"
                )
                raise Terminated
            if self._seconds_of_budget_left <= 0:
                state.out_of_time = True
                if training.best and training.validate_every:
                    # The best model may be one of this epoch, which then counts.
                    break
                self.checkpoint()
                self._progress.say(
                    f"{self.name}: out of time in epoch {state.epoch + 1}, which does "
                    f"not count; {training.hours} hours are over"
                )
                return
            seconds = time.monotonic() - self._checkpoint_time
            if seconds >= 60 * training.checkpoint_minutes:
                self.checkpoint()
            since = time.monotonic()
        self._end_epoch()

    def _train_until_reading(self, batches: Iterator) -> list:
        """Takes steps until their sums are to be read; returns these.

        It does not wait for the steps: the device computes ahead.
        """
        sums, most = [], self._steps_between_readings
        for batch in batches:
            sums.append(self._backend.train(batch))
            self.state.step += 1
            self.state.step_in_epoch += 1
            if len(sums) >= most or self._must_read:
                break
        return sums

    @property
    def _steps_between_readings(self) -> int:
        """A function of what all workers agree on, because reading makes them meet."""
        if not self._seconds_per_step:
            return 1
        checkpoint = 60 * self.settings.training.checkpoint_minutes
        seconds = min(READ_SECONDS, checkpoint, self._seconds_of_budget_left)
        return max(1, min(int(seconds / self._seconds_per_step), READ_STEPS))

    @property
    def _must_read(self) -> bool:
        """Whether something is to be done that needs the sums of all steps so far."""
        return (
            self._epoch_is_done
            or self._measurement_is_due
            or self._model_is_to_be_kept
            or (termination.asked() and not several_workers())
        )

    @property
    def _epoch_is_done(self) -> bool:
        return self.state.step_in_epoch == self.steps_of_this_epoch

    @property
    def _measurement_is_due(self) -> bool:
        steps = self.settings.training.validate_every
        return steps is not None and self.state.step % steps == 0

    @property
    def _model_is_to_be_kept(self) -> bool:
        training = self.settings.training
        steps = training.keep_every or self._plan.steps
        due = self.state.step % steps == 0 or not self.steps_left
        return training.average > 0 and due

    def _read(self, sums: list, since: float):
        """Waits for the last steps, and adds up their sums."""
        state = self.state
        first = state.step_in_epoch - len(sums) + 1
        for step, numbers in enumerate(self._backend.read(sums), first):
            _, loss, *_ = numbers
            self._check_finite("loss", loss, step)
            state.tally.add(*numbers)
            state.interval.add(*numbers)
        seconds = self._backend.mean_over_workers(time.monotonic() - since)
        state.seconds_in_epoch += seconds
        # The first steps compile, so their time does not count.
        if self._compiled:
            self._recent.append(seconds / len(sums))
        self._compiled = True

    @property
    def _seconds_per_step(self) -> float:
        """The median of the last readings, which forgets a stall."""
        if not self._recent:
            return self._calibrated
        return statistics.median(self._recent)

    @property
    def _seconds_of_budget_left(self) -> float:
        logged = sum(row["train_seconds"] for row in self.state.rows)
        used = logged + self.state.seconds_in_epoch
        return self.settings.training.hours * 3600 - used

    def _check_finite(self, what: str, loss: float, step: int):
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
            save_checkpoint(
                self.folder.checkpoints,
                self.state.step,
                self._variables,
                dataclasses.asdict(self.state),
            )

    def evaluate(self) -> Tally:
        """Returns the sums of the teacher-forced loss over the validation split."""
        tally = Tally()
        batches = self._backend.batches(self.text.dev, self.validation)
        sums = [self._backend.evaluate(batch) for batch in batches]
        for numbers in self._backend.read(sums):
            tally.add(*numbers)
        # The last step's weights are in no training loss.
        step = self.state.step_in_epoch
        self._check_finite("validation loss", tally.loss, step)
        return tally

    def _measure(self):
        """Adds a row to those of steps."""
        state = self.state
        self._backend.store()
        row: dict[str, float] = {"step": state.step}
        means = state.interval.means("train") | self.evaluate().means("val")
        for name in ("train_loss_per_token", "val_loss_per_token"):
            row[name] = means[name]
        row |= self._measures()
        state.rows_of_steps.append(row)
        state.interval = Tally()
        if row is self.best:
            self.folder.save_model(self.model)
            # A kill does not undo the step of the best model.
            self.checkpoint()
        self._write_steps()
        if self.settings.training.tensorboard and self.folder.writable:
            rate = state.tally.tokens / state.seconds_in_epoch
            self._write_tensorboard({**row, "tokens_per_second": rate})

    def _measures(self) -> dict[str, float]:
        # All workers are to choose the same model.
        return {
            name: self._backend.mean_over_workers(value)
            for name, value in self._more_measures(self.model).items()
        }

    def _write_steps(self):
        if self.state.rows_of_steps or self.settings.training.validate_every:
            self.folder.write_log(self.state.rows_of_steps, "steps.csv")

    def _keep_model(self):
        """Saves the model for a mean."""
        if not self.folder.writable:
            return
        self._backend.store()
        steps_of_epochs = self.steps_before_this_epoch
        if self._epoch_is_done:
            steps_of_epochs = self.state.step
        keep_model(
            self._models,
            self.model,
            step=self.state.step,
            most=self.settings.training.average,
            steps_of_epochs=steps_of_epochs,
        )

    def _training_batches(self):
        epoch, skip = self.state.epoch, self.state.step_in_epoch
        return self._backend.batches(self.text.train, self._plan, epoch, skip)

    def _end_epoch(self):
        state, since = self.state, time.monotonic()
        validation = self.evaluate()
        self._backend.store()
        row = {
            "epoch": state.epoch + 1,
            "step": state.step,
            "learning_rate": float(self._optimizer.learning_rate),
            **state.tally.means("train"),
            **validation.means("val"),
            "train_tokens": state.tally.tokens,
            "train_seconds": round(state.seconds_in_epoch, 3),
            "val_seconds": round(time.monotonic() - since, 3),
        }
        training = self.settings.training
        if training.best == "bleu" and not training.validate_every:
            row |= self._measures()
        state.rows.append(row)
        state.epoch += 1
        state.step_in_epoch = 0
        state.seconds_in_epoch = 0.0
        state.tally = Tally()
        if row is self.best:
            self.folder.save_model(self.model)
        self.checkpoint()
        self.folder.write_log(state.rows)
        self.folder.save_model(self.model, self._name_of_last)
        if training.tensorboard and self.folder.writable:
            self._write_tensorboard(row)
        self._progress.say(
            f"{self.name}: epoch {state.epoch}{self._of_epochs}, "
            f"training loss {row['train_loss']:.3f}, validation loss "
            f"{row['val_loss']:.3f}, {duration(row['train_seconds'])}"
        )
        if state.out_of_time:
            self._progress.say(
                f"{self.name}: out of time at step {state.step}; "
                f"{training.hours} hours are over"
            )
        elif self.out_of_patience:
            self._progress.say(
                f"{self.name}: stopped early, at step {state.step}: the last "
                f"{training.patience} validations brought no better model than that "
                f"of step {self.best['step']:.0f}"
            )

    def _write_tensorboard(self, row: dict[str, float]):
        """Writes the numbers of a row of the log, or of `steps.csv`, at this step."""
        import tensorflow as tf

        numbers = {**row, "learning_rate": float(self._optimizer.learning_rate)}
        if "train_seconds" in row:
            rate = row["train_tokens"] / max(row["train_seconds"], 1e-3)
            numbers["tokens_per_second"] = rate
        with self._tensorboard.as_default(step=self.state.step):
            for name, value in numbers.items():
                tf.summary.scalar(name, value)
        self._tensorboard.flush()

    @functools.cached_property
    def _tensorboard(self):
        import tensorflow as tf

        path = str(self.folder.path / "tensorboard")
        return tf.summary.create_file_writer(path)

    @property
    def _of_epochs(self) -> str:
        training = self.settings.training
        return "" if training.steps else f"/{training.epochs}"

    def _show(self, seconds_elsewhere: float):
        state = self.state
        loss = state.tally.means("train")["train_loss"]
        rate = ""
        if self._recent:
            tokens_per_step = state.tally.tokens / state.step_in_epoch
            tokens_per_second = tokens_per_step / self._seconds_per_step
            rate = f"{tokens_per_second:.0f} tokens/s, "
        steps_left = self.steps_of_this_epoch - state.step_in_epoch
        self._progress.show(
            f"{self.name}: epoch {state.epoch + 1}{self._of_epochs}, "
            f"step {state.step_in_epoch}/{self.steps_of_this_epoch}, "
            f"loss {loss:.3f}, {rate}epoch ends in "
            f"{duration(steps_left * self._seconds_per_step)}, training in "
            f"{duration(self.seconds_left + seconds_elsewhere)}"
        )


def backend(deterministic: bool) -> Backend:
    """Returns Keras' present backend; there is no training on PyTorch."""
    match keras.backend.backend():
        case "tensorflow":
            from reprt.training.tensorflow_backend import TensorFlowBackend

            return TensorFlowBackend(deterministic)
        case "jax":
            # JAX gives the same bits each time in any case.
            from reprt.training.jax_backend import JaxBackend

            return JaxBackend()
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

        def seconds_left_elsewhere(others=others) -> float:
            return sum(other.seconds_left for other in others)

        with termination.put_off():
            try:
                trainer.train_epoch(seconds_left_elsewhere)
            # The loss was not finite, or the probabilities of a search.
            except ArithmeticError as error:
                errors.append(ArithmeticError(f"{trainer.name}: {error}"))
                pending = others
            after_epoch()
    return errors
