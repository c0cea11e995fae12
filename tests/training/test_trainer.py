import dataclasses
import math
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny import Lines, assert_same, contents, train_to_end, variables

from reprt.data.batching import batches, training_order
from reprt.losses import MaskedCrossentropy
from reprt.metrics import TokenAccuracy
from reprt.models import Transformer
from reprt.schedules import WarmupSchedule
from reprt.training import trainer as loop
from reprt.training.trainer import Trainer, train_side_by_side

NAMES = ("baseline", "repe")
NO_DROPOUT = {"dropout": 0.0}
# Gradients of the key's biases are really zero, for attention does not feel a shift of
# all its scores; Adam would divide their rounding by its own size.
EPSILON = 1e-2


@pytest.mark.parametrize("name", NAMES)
def test_losses_and_weights_are_those_of_fit(name, trainer, text, request):
    # One model is compiled.
    is_compiled = name == "repe"
    if not is_compiled:
        request.getfixturevalue("eagerly")
    training = trainer("run", name, NO_DROPOUT)
    training._optimizer.epsilon = EPSILON
    size = training.settings.batching.size
    vocabularies = len(text.source_tokenizer), len(text.target_tokenizer)
    model = Transformer(*vocabularies, training.settings.model)
    model.build()
    model.set_weights(training.model.get_weights())
    schedule = WarmupSchedule(training.settings.schedule_dim, warmup_steps=4)
    model.compile(
        keras.optimizers.Adam(
            schedule, beta_1=0.9, beta_2=0.98, epsilon=EPSILON
        ),
        MaskedCrossentropy(),
        metrics=[TokenAccuracy()],
        run_eagerly=not is_compiled,
    )
    for epoch in range(2):
        order = training_order(len(text.train), seed=0, epoch=epoch)
        history = model.fit(
            batches(text.train, size, order),
            validation_data=batches(text.dev, size),
            shuffle=False,
            verbose=0,
        ).history
        training.train_epoch()
        row = training.folder.log()[epoch]
        for prefix, keras_prefix in (("train", ""), ("val", "val_")):
            (loss,) = history[f"{keras_prefix}loss"]
            (accuracy,) = history[f"{keras_prefix}token_accuracy"]
            assert row[f"{prefix}_loss"] == pytest.approx(loss, abs=1e-5)
            assert row[f"{prefix}_accuracy"] == pytest.approx(
                accuracy, abs=1e-6
            )
    assert_same(training.model.get_weights(), model.get_weights(), 1e-5)

    # And the saved model is the one whose losses were logged.
    saved_model = keras.saving.load_model(training.folder.model)
    saved_model.compile(loss=MaskedCrossentropy())
    loss = saved_model.evaluate(batches(text.dev, size), verbose=0)
    assert row["val_loss"] == pytest.approx(loss, abs=1e-5)


@pytest.mark.usefixtures("eagerly")
def test_weights_order_and_dropout_follow_from_the_seed(trainer):
    def loss(training, batch):
        sums = training._backend.train(batch)
        ((_, total, *_),) = training._backend.read([sums])
        return float(total)

    runs = [
        trainer(f"{number}", seed=seed) for number, seed in enumerate((0, 0, 1))
    ]
    weights = [run.model.get_weights()[0] for run in runs]
    assert np.array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[0], weights[2])
    batches = [next(iter(run._training_batches())) for run in runs]
    ids = []
    for inputs, *_ in batches:
        ids.append([array.numpy().tolist() for array in inputs])
    assert ids[0] == ids[1] and ids[0] != ids[2]
    # The first update has a rate of 0, so the second step differs only by its dropout.
    losses, same_losses = (
        [loss(run, batches[0]) for _ in range(2)] for run in runs[:2]
    )
    assert losses == same_losses and losses[0] != losses[1]


@pytest.mark.usefixtures("eagerly")
def test_bfloat16_trains_float32_weights_to_nearly_the_same_losses(trainer):
    full_training = trainer("full", model=NO_DROPOUT)
    half_training = trainer(
        "half", model=NO_DROPOUT, precision="mixed_bfloat16"
    )
    for training in (full_training, half_training):
        training.train_epoch()
    assert all(
        weight.dtype == "float32" for weight in half_training.model.weights
    )
    for column in ("train_loss", "val_loss"):
        loss, other_loss = (
            training.folder.log()[0][column]
            for training in (full_training, half_training)
        )
        assert loss != other_loss
        assert loss == pytest.approx(other_loss, rel=0.01)
    saved_model = keras.saving.load_model(half_training.folder.model)
    assert saved_model.dtype_policy.name == "mixed_bfloat16"


@pytest.mark.long
@pytest.mark.usefixtures("eagerly")
def test_side_by_side_each_trains_as_by_itself(trainer, monkeypatch):
    monkeypatch.setattr("reprt.training.trainer.CALIBRATION_STEPS", 1)
    references = [trainer(f"alone-{name}", name) for name in NAMES]
    for training in references:
        train_to_end(training)

    trainings = [trainer(f"together-{name}", name) for name in NAMES]
    for training in trainings:
        old_state = variables(training), dataclasses.asdict(training.state)
        # Nothing is known of the time before it is measured.
        assert training.seconds_left == 0
        training.calibrate()
        assert_same(variables(training), old_state[0])
        assert dataclasses.asdict(training.state) == old_state[1]
        assert training.seconds_left > 0 and not training.folder.log()
    train_side_by_side(trainings)
    for reference, training in zip(references, trainings):
        assert_same(variables(reference), variables(training))


@pytest.mark.usefixtures("eagerly")
def test_rows_of_steps_change_no_weight_and_go_on_after_a_checkpoint(trainer):
    reference, training = trainer("plain"), trainer("run", validate_every=2)
    for run in (reference, training):
        run.train_epoch()
    training = trainer("run", validate_every=2)
    for run in (reference, training):
        run.train_epoch()
    assert_same(variables(training), variables(reference))
    rows = training.folder.log("steps.csv")
    assert [row["step"] for row in rows] == [2, 4, 6]
    assert (
        rows[-1]["val_loss_per_token"]
        == training.folder.log()[-1]["val_loss_per_token"]
    )
    sums = [training.state.tally.loss, training.state.interval.loss]
    assert sums == [0.0, 0.0] and not reference.folder.log("steps.csv")


@pytest.mark.usefixtures("eagerly")
def test_an_epoch_is_logged_shown_and_kept(trainer, text, monkeypatch):
    # The sums are read at each step.
    monkeypatch.setattr(loop, "READ_SECONDS", 0.0)
    training = trainer("run", tensorboard=True, validate_every=2)
    training.train_epoch()
    (row,) = training.folder.log()
    assert all(math.isfinite(value) for value in row.values())
    assert row["epoch"] == 1 and row["step"] == 3
    tokens = sum(len(ids) - 1 for ids in text.train.target)
    assert row["train_tokens"] == tokens
    assert {path.name for path in training.folder.path.iterdir()} == {
        *("config.toml", "manifest.json", "source.vocab", "target.vocab"),
        *("log.csv", "steps.csv", "model.keras", "checkpoints"),
        "tensorboard",
    }
    progress = training._progress
    assert len(progress.status_lines) == 3
    assert progress.status_lines[1].startswith(
        "repe: epoch 1/2, step 2/3, loss "
    )
    assert "tokens/s, epoch ends in 0:" in progress.status_lines[1]
    assert ", training in 0:" in progress.status_lines[1]
    # A first step compiles, so its rate is not shown.
    assert "tokens/s" not in progress.status_lines[0]
    # A stall is forgotten.
    training._recent.clear()
    training._recent.extend([2.0, 2.0, 900.0])
    assert training._seconds_per_step == 2.0
    assert progress.messages[0].startswith("repe: epoch 1/2, training loss ")

    # What was written at the second step and after the epoch.
    steps = set()
    for file in (training.folder.path / "tensorboard").iterdir():
        events = file.read_bytes()
        for name in (
            "val_loss_per_token",
            "learning_rate",
            "tokens_per_second",
        ):
            assert name.encode() in events
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            steps.add(event.step)
    assert steps == {0, 2, 3}


@dataclasses.dataclass
class ReadOnlyLog:
    """A run log without the methods that write."""

    path: pathlib.Path
    writable = True

    @property
    def checkpoints(self):
        return self.path / "checkpoints"


@pytest.mark.usefixtures("eagerly")
def test_making_a_trainer_writes_nothing(trainer, text):
    training = trainer("run", validate_every=2)
    training.train_epoch()
    old_contents = contents(training.folder.path)
    log = ReadOnlyLog(training.folder.path)
    continuation = Trainer(training.settings, text, log, Lines())
    assert (continuation.state.epoch, continuation.state.step) == (1, 3)
    assert continuation.seconds_left == 0 and not continuation.finished
    assert_same(variables(continuation), variables(training))
    assert contents(training.folder.path) == old_contents


@pytest.mark.usefixtures("eagerly")
def test_a_training_of_four_steps_ends_within_an_epoch(trainer):
    # An epoch has three steps.
    training = trainer("run", steps=4, epochs=1)
    assert (training.steps_left, training.steps_of_this_epoch) == (4, 3)
    training.train_epoch()
    assert (training.steps_left, training.steps_of_this_epoch) == (1, 1)
    assert not training.finished
    training.train_epoch()
    assert training.finished and training.state.step == 4
    assert training.seconds_left == 0 and training.epochs_done == 4 / 3
    first_row, last_row = training.folder.log()
    assert (first_row["step"], last_row["step"]) == (3, 4)
    assert last_row["train_tokens"] < first_row["train_tokens"]
    assert training._progress.messages[-1].startswith(
        "repe: epoch 2, training loss"
    )
    assert trainer("run", steps=4, epochs=1).finished


@pytest.mark.usefixtures("eagerly")
def test_out_of_time_only_finished_epochs_count(trainer):
    training = trainer("run", epochs=3)
    training.train_epoch()
    # The first epoch took all the hours of the run.
    training.state.rows[0]["train_seconds"] = 12 * 3600.0
    content = training.folder.model.read_bytes()
    training.train_epoch()
    assert training.finished and training.state.out_of_time
    assert training.seconds_left == 0
    assert len(training.folder.log()) == 1 == training.epochs_done
    assert training.folder.model.read_bytes() == content
    # It stays out of time when it is opened again, unless it is given more.
    assert trainer("run", epochs=3).finished
    assert not trainer("run", epochs=3, hours=13).finished


@pytest.mark.usefixtures("eagerly")
def test_an_epoch_that_is_done_counts_whatever_time_is_left(trainer):
    # A step is an epoch.
    training = trainer("run", epochs=2, batching={"size": 64}, hours=1e-9)
    training.train_epoch()
    assert training.state.epoch == 1 and not training.state.out_of_time


@pytest.mark.usefixtures("eagerly")
def test_a_run_goes_on_where_only_the_end_of_an_epoch_is_left(trainer):
    training = trainer("run")
    training.state.step_in_epoch = training.steps_of_this_epoch
    training.calibrate()
    training.train_epoch()
    assert training.state.epoch == 1


@pytest.mark.usefixtures("eagerly")
def test_sums_are_read_once_an_epoch_where_steps_take_no_time(
    trainer, monkeypatch
):
    monkeypatch.setattr(loop, "READ_SECONDS", 1e9)
    training, steps = trainer("run"), []
    training.calibrate()
    read = training._backend.read
    monkeypatch.setattr(
        training._backend,
        "read",
        lambda sums: steps.append(len(sums)) or read(sums),
    )
    training.train_epoch()
    # The epoch has three steps, and the validation one batch.
    assert steps == [3, 1]


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize(
    "last_finite_step, message",
    [
        (1, "The loss is nan in epoch 1, step 3"),
        # The epoch's last step: no training loss has its weights.
        (2, "The validation loss is nan in epoch 1, step 3"),
    ],
)
def test_a_loss_that_is_not_finite_is_noticed_before_a_checkpoint_is_written(
    trainer, monkeypatch, last_finite_step, message
):
    monkeypatch.setattr(loop, "READ_SECONDS", 1e9)
    training = trainer("run", epochs=1)
    training.calibrate()
    train = training._backend.train

    def train_and_diverge(batch):
        sums = train(batch)
        if training.state.step_in_epoch == last_finite_step:
            for weight in training.model.trainable_variables:
                weight.assign(np.full(weight.shape, math.nan))
        return sums

    monkeypatch.setattr(training._backend, "train", train_and_diverge)
    with pytest.raises(ArithmeticError, match=message):
        training.train_epoch()
    assert not (
        training.folder.checkpoints.exists()
        or training.folder.log()
        or training.finished
    )
