"""The loss as a function of batch and step, and when the loop looks at it."""

import math

import numpy as np
import pytest
from tiny import assert_same, to_the_end, variables

from reprt.training import trainer as loop
from reprt.training.trainer import TrainingDiverged

pytestmark = pytest.mark.usefixtures("eagerly")


def test_the_weight_of_the_source_is_resumed_exactly(trainer):
    objective = {"name": "translation_and_source", "label_smoothing": 0.1}
    whole = trainer("run", "decoder-only", objective=objective)
    assert whole._backend._objective.steps == 6  # of both epochs
    to_the_end(whole)
    max(whole.folder.checkpoints.iterdir()).unlink()
    again = trainer("run", "decoder-only", objective=objective)
    assert again.state.epoch == 1
    assert_same(variables(to_the_end(again)), variables(whole))


def test_sums_are_read_once_an_epoch_where_steps_take_no_time(trainer, monkeypatch):
    monkeypatch.setattr(loop, "READ_SECONDS", 1e9)
    ours, steps = trainer("run"), []
    ours.calibrate()
    read = ours._backend.read
    monkeypatch.setattr(
        ours._backend, "read", lambda sums: steps.append(len(sums)) or read(sums)
    )
    ours.train_epoch()
    assert steps == [3, 1]  # those of the epoch and the validation's


@pytest.mark.parametrize(
    "last_good, message",
    [
        (1, "the loss is nan in epoch 1, step 3"),
        # The epoch's last step: no training loss has its weights.
        (2, "the validation loss is nan in epoch 1, step 3"),
    ],
)
def test_a_loss_that_is_not_finite_is_noticed_before_a_checkpoint_is_written(
    trainer, monkeypatch, last_good, message
):
    monkeypatch.setattr(loop, "READ_SECONDS", 1e9)
    ours = trainer("run")
    ours.calibrate()
    train = ours._backend.train

    def diverging(batch):
        sums = train(batch)
        if ours.state.step_in_epoch == last_good:
            for weight in ours.model.trainable_variables:
                weight.assign(np.full(weight.shape, math.nan))
        return sums

    monkeypatch.setattr(ours._backend, "train", diverging)
    with pytest.raises(TrainingDiverged, match=message):
        ours.train_epoch()
    assert not ours.folder.checkpoints.exists() and not ours.folder.log()
