import dataclasses
import math
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny import Lines, assert_same, contents, to_the_end, variables

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
    compiled = name == "repe"
    if not compiled:
        request.getfixturevalue("eagerly")
    ours = trainer("run", name, NO_DROPOUT)
    ours._optimizer.epsilon = EPSILON
    size = ours.settings.batching.size
    vocabularies = len(text.source_tokenizer), len(text.target_tokenizer)
    model = Transformer(*vocabularies, ours.settings.model)
    model.build()
    model.set_weights(ours.model.get_weights())
    schedule = WarmupSchedule(ours.settings.schedule_dim, warmup_steps=4)
    model.compile(
        keras.optimizers.Adam(
            schedule, beta_1=0.9, beta_2=0.98, epsilon=EPSILON
        ),
        MaskedCrossentropy(),
        metrics=[TokenAccuracy()],
        run_eagerly=not compiled,
    )
    for epoch in range(2):
        order = training_order(len(text.train), seed=0, epoch=epoch)
        history = model.fit(
            batches(text.train, size, order),
            validation_data=batches(text.dev, size),
            shuffle=False,
            verbose=0,
        ).history
        ours.train_epoch()
        row = ours.folder.log()[epoch]
        for prefix, theirs in (("train", ""), ("val", "val_")):
            (loss,) = history[f"{theirs}loss"]
            (accuracy,) = history[f"{theirs}token_accuracy"]
            assert row[f"{prefix}_loss"] == pytest.approx(loss, abs=1e-5)
            assert row[f"{prefix}_accuracy"] == pytest.approx(
                accuracy, abs=1e-6
            )
    assert_same(ours.model.get_weights(), model.get_weights(), 1e-5)

    # And the saved model is the one whose losses were logged.
    saved = keras.saving.load_model(ours.folder.model)
    saved.compile(loss=MaskedCrossentropy())
    loss = saved.evaluate(batches(text.dev, size), verbose=0)
    assert row["val_loss"] == pytest.approx(loss, abs=1e-5)


@pytest.mark.usefixtures("eagerly")
def test_weights_order_and_dropout_follow_from_the_seed(trainer):
    def loss(each, batch):
        ((_, total, *_),) = each._backend.read([each._backend.train(batch)])
        return float(total)

    runs = [
        trainer(f"{number}", seed=seed) for number, seed in enumerate((0, 0, 1))
    ]
    one, same, other = (run.model.get_weights()[0] for run in runs)
    assert np.array_equal(one, same) and not np.array_equal(one, other)
    batches = [next(iter(run._training_batches())) for run in runs]
    one, same, other = ([ids.numpy().tolist() for ids in b[0]] for b in batches)
    assert one == same and one != other
    # The first update has a rate of 0, so the second step differs only by its dropout.
    first, again = (
        [loss(run, batches[0]) for _ in range(2)] for run in runs[:2]
    )
    assert first == again and first[0] != first[1]


@pytest.mark.usefixtures("eagerly")
def test_bfloat16_trains_float32_weights_to_nearly_the_same_losses(trainer):
    full = trainer("full", model=NO_DROPOUT)
    half = trainer("half", model=NO_DROPOUT, precision="mixed_bfloat16")
    for each in (full, half):
        each.train_epoch()
    assert all(weight.dtype == "float32" for weight in half.model.weights)
    for column in ("train_loss", "val_loss"):
        one, other = (each.folder.log()[0][column] for each in (full, half))
        assert one != other and one == pytest.approx(other, rel=0.01)
    saved = keras.saving.load_model(half.folder.model)
    assert saved.dtype_policy.name == "mixed_bfloat16"


@pytest.mark.long
@pytest.mark.usefixtures("eagerly")
def test_side_by_side_each_trains_as_by_itself(trainer, monkeypatch):
    monkeypatch.setattr("reprt.training.trainer.CALIBRATION_STEPS", 1)
    alone = [trainer(f"alone-{name}", name) for name in NAMES]
    for each in alone:
        to_the_end(each)

    together = [trainer(f"together-{name}", name) for name in NAMES]
    for each in together:
        before = variables(each), dataclasses.asdict(each.state)
        # Nothing is known of the time before it is measured.
        assert each.seconds_left == 0
        each.calibrate()
        assert_same(variables(each), before[0])
        assert dataclasses.asdict(each.state) == before[1]
        assert each.seconds_left > 0 and not each.folder.log()
    train_side_by_side(together)
    for one, other in zip(alone, together):
        assert_same(variables(one), variables(other))


@pytest.mark.usefixtures("eagerly")
def test_rows_of_steps_change_no_weight_and_go_on_after_a_checkpoint(trainer):
    plain, ours = trainer("plain"), trainer("run", validate_every=2)
    for each in (plain, ours):
        each.train_epoch()
    ours = trainer("run", validate_every=2)
    for each in (plain, ours):
        each.train_epoch()
    assert_same(variables(ours), variables(plain))
    rows = ours.folder.log("steps.csv")
    assert [row["step"] for row in rows] == [2, 4, 6]
    assert (
        rows[-1]["val_loss_per_token"]
        == ours.folder.log()[-1]["val_loss_per_token"]
    )
    sums = [ours.state.tally.loss, ours.state.interval.loss]
    assert sums == [0.0, 0.0] and not plain.folder.log("steps.csv")


@pytest.mark.usefixtures("eagerly")
def test_an_epoch_is_logged_shown_and_kept(trainer, text, monkeypatch):
    # The sums are read at each step.
    monkeypatch.setattr(loop, "READ_SECONDS", 0.0)
    ours = trainer("run", tensorboard=True, validate_every=2)
    ours.train_epoch()
    (row,) = ours.folder.log()
    assert all(math.isfinite(value) for value in row.values())
    assert row["epoch"] == 1 and row["step"] == 3
    words = sum(len(ids) - 1 for ids in text.train.target)
    assert row["train_tokens"] == words
    assert {path.name for path in ours.folder.path.iterdir()} == {
        *("config.toml", "manifest.json", "source.vocab", "target.vocab"),
        *("log.csv", "steps.csv", "model.keras", "checkpoints"),
        "tensorboard",
    }
    progress = ours._progress
    assert len(progress.shown) == 3
    assert progress.shown[1].startswith("repe: epoch 1/2, step 2/3, loss ")
    assert "tokens/s, epoch ends in 0:" in progress.shown[1]
    assert ", training in 0:" in progress.shown[1]
    # A first step compiles, so its rate is not shown.
    assert "tokens/s" not in progress.shown[0]
    # A stall is forgotten.
    ours._recent.clear()
    ours._recent.extend([2.0, 2.0, 900.0])
    assert ours._seconds_per_step == 2.0
    assert progress.said[0].startswith("repe: epoch 1/2, training loss ")

    # A file of the second step, and one of the epoch.
    steps = set()
    for file in (ours.folder.path / "tensorboard").iterdir():
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
class OnlyRead:
    """A run log without the methods that write."""

    path: pathlib.Path
    writable = True

    @property
    def checkpoints(self):
        return self.path / "checkpoints"


@pytest.mark.usefixtures("eagerly")
def test_making_a_trainer_writes_nothing(trainer, text):
    ours = trainer("run", validate_every=2)
    ours.train_epoch()
    before = contents(ours.folder.path)
    log = OnlyRead(ours.folder.path)
    again = Trainer(ours.settings, text, log, Lines())
    assert (again.state.epoch, again.state.step) == (1, 3)
    assert again.seconds_left == 0 and not again.finished
    assert_same(variables(again), variables(ours))
    assert contents(ours.folder.path) == before


@pytest.mark.usefixtures("eagerly")
def test_a_training_of_four_steps_ends_within_an_epoch(trainer):
    # An epoch has three steps.
    ours = trainer("run", steps=4, epochs=1)
    assert (ours.steps_left, ours.steps_per_epoch) == (4, 3)
    ours.train_epoch()
    assert (ours.steps_left, ours.steps_per_epoch) == (1, 1)
    assert not ours.finished
    ours.train_epoch()
    assert ours.finished and ours.state.step == 4 and ours.seconds_left == 0
    one, other = ours.folder.log()
    assert (one["step"], other["step"]) == (3, 4) and ours.epochs_done == 4 / 3
    assert other["train_tokens"] < one["train_tokens"]
    assert ours._progress.said[-1].startswith("repe: epoch 2, training loss")
    assert trainer("run", steps=4, epochs=1).finished


@pytest.mark.usefixtures("eagerly")
def test_out_of_time_only_finished_epochs_count(trainer):
    ours = trainer("run", epochs=3)
    ours.train_epoch()
    # The first epoch took all the hours of the run.
    ours.state.rows[0]["train_seconds"] = 12 * 3600.0
    finished = ours.folder.model.read_bytes()
    ours.train_epoch()
    assert ours.finished and ours.state.out_of_time and ours.seconds_left == 0
    assert len(ours.folder.log()) == 1 == ours.epochs_done
    assert ours.folder.model.read_bytes() == finished
    # It stays out of time when it is opened again, unless it is given more.
    assert trainer("run", epochs=3).finished
    assert not trainer("run", epochs=3, hours=13).finished


@pytest.mark.usefixtures("eagerly")
def test_an_epoch_that_is_done_counts_whatever_time_is_left(trainer):
    # A step is an epoch.
    ours = trainer("run", epochs=2, batching={"size": 64}, hours=1e-9)
    ours.train_epoch()
    assert ours.state.epoch == 1 and not ours.state.out_of_time


@pytest.mark.usefixtures("eagerly")
def test_sums_are_read_once_an_epoch_where_steps_take_no_time(
    trainer, monkeypatch
):
    monkeypatch.setattr(loop, "READ_SECONDS", 1e9)
    ours, steps = trainer("run"), []
    ours.calibrate()
    read = ours._backend.read
    monkeypatch.setattr(
        ours._backend,
        "read",
        lambda sums: steps.append(len(sums)) or read(sums),
    )
    ours.train_epoch()
    # The epoch has three steps, and the validation one batch.
    assert steps == [3, 1]


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize(
    "last_good, message",
    [
        (1, "The loss is nan in epoch 1, step 3"),
        # The epoch's last step: no training loss has its weights.
        (2, "The validation loss is nan in epoch 1, step 3"),
    ],
)
def test_a_loss_that_is_not_finite_is_noticed_before_a_checkpoint_is_written(
    trainer, monkeypatch, last_good, message
):
    monkeypatch.setattr(loop, "READ_SECONDS", 1e9)
    ours = trainer("run", epochs=1)
    ours.calibrate()
    train = ours._backend.train

    def diverging(batch):
        sums = train(batch)
        if ours.state.step_in_epoch == last_good:
            for weight in ours.model.trainable_variables:
                weight.assign(np.full(weight.shape, math.nan))
        return sums

    monkeypatch.setattr(ours._backend, "train", diverging)
    with pytest.raises(ArithmeticError, match=message):
        ours.train_epoch()
    assert not (
        ours.folder.checkpoints.exists() or ours.folder.log() or ours.finished
    )
