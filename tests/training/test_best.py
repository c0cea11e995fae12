"""The best model by validation, and a training that ends once none better comes."""

import keras
import pytest
import tiny
from tiny import assert_same, to_the_end, variables

from reprt.training.trainer import Tally, Trainer


def validated(trainer, losses):
    """Gives a trainer these validation losses, one after the other."""
    tallies = [Tally(rows=1, tokens=1, loss=loss) for loss in losses]
    trainer.evaluate = iter(tallies).__next__
    return trainer


def saved(run, name="model.keras"):
    return keras.saving.load_model(run.path / name).get_weights()


@pytest.mark.usefixtures("eagerly")
def test_training_ends_early_and_the_best_model_is_the_trained_one(trainer):
    ours = validated(trainer("run", epochs=9, patience=2), [3.0, 2.0, 2.0, 4.0])
    ours.train_epoch()
    ours.train_epoch()
    best = ours.model.get_weights()
    to_the_end(ours)
    assert (ours.state.epoch, ours.best["epoch"]) == (4, 2)
    assert_same(saved(ours.folder), best)
    assert_same(saved(ours.folder, "last.keras"), ours.model.get_weights())
    assert ours._progress.said[-1] == (
        "repe: stopped early, at step 12: the last 2 validations brought no better "
        "model than that of step 6"
    )
    # It has ended for the next start as well.
    assert trainer("run", epochs=9, patience=2).finished
    # Without patience, the best model alone changes nothing of the training.
    whole = trainer("whole", epochs=4)
    assert_same(variables(to_the_end(whole)), variables(ours))


@pytest.mark.usefixtures("eagerly")
def test_rows_of_steps_count_and_a_resumed_run_knows_them(trainer):
    asked = {
        "epochs": 9,
        "best": "bleu",
        "patience": 2,
        "validate_every": 2,
        "bleu_sentences": 1,
    }

    def started(*bleu):
        ours = trainer("run", **asked)
        scores = iter([{"val_bleu": value} for value in bleu])
        ours._more_measures = lambda model: next(scores)
        return ours

    ours = started(5.0, 7.0)
    ours.train_epoch()
    assert ours.best["step"] == 2
    with pytest.raises(StopIteration):
        to_the_end(ours)
    best = saved(ours.folder)
    # A checkpoint has the best model's step, which no kill undoes.
    ours = started(6.0, 7.0, 8.0)
    assert ours.state.step == 4 and ours.best["val_bleu"] == 7.0
    assert_same(ours.model.get_weights(), best)
    to_the_end(ours)
    # It stopped within the third epoch.
    assert ours.state.step == 8 and ours.out_of_patience
    assert_same(saved(ours.folder), best)
    assert len(ours.folder.log()) == 3
    assert_same(saved(ours.folder, "last.keras"), ours.model.get_weights())


@pytest.mark.usefixtures("eagerly")
def test_the_last_model_stands_in_where_none_is_compared(trainer):
    ours = to_the_end(trainer("run", epochs=1, best="loss", validate_every=9))
    assert ours.best == {}
    assert_same(saved(ours.folder), ours.model.get_weights())


@pytest.mark.usefixtures("eagerly")
def test_bleu_of_epochs_is_in_the_log(trainer, text):
    ours = trainer("run", best="bleu", bleu_sentences=1)
    again = Trainer(
        *(ours.settings, text, ours.folder, tiny.Lines()),
        more_measures=lambda model: {"val_bleu": 3.0},
    )
    again.train_epoch()
    assert ours.folder.log()[0]["val_bleu"] == 3.0


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"patience": 2, "average": 2}, "Received: 2, 'loss'"),
        ({"best": "bleu"}, "'bleu_sentences' of 1 or more"),
    ],
)
def test_what_does_not_go_together_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        tiny.settings(**changes)


def test_when_models_compare_decides_a_run_only_where_they_do():
    one, other = (tiny.settings(validate_every=every) for every in (1, 2))
    assert one.identity == other.identity
    one, other = (
        tiny.settings(validate_every=every, patience=1) for every in (1, 2)
    )
    assert one.identity != other.identity
    # What follows from the patience is written down.
    assert one.as_table()["training"]["best"] == "loss"
