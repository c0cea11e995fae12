"""The best model by validation, and a training that ends once none better comes."""

import keras
import pytest
import tiny
from tiny import assert_same, train_to_end, variables

from reprt.training.trainer import Tally, Trainer


def feed_losses(trainer, losses):
    """Gives a trainer these validation losses, one after the other."""
    tallies = [Tally(rows=1, tokens=1, loss=loss) for loss in losses]
    trainer.evaluate = iter(tallies).__next__
    return trainer


def saved_weights(run, name="model.keras"):
    return keras.saving.load_model(run.path / name).get_weights()


@pytest.mark.usefixtures("eagerly")
def test_training_ends_early_and_the_best_model_is_the_trained_one(trainer):
    training = feed_losses(
        trainer("run", epochs=9, patience=2), [3.0, 2.0, 2.0, 4.0]
    )
    training.train_epoch()
    training.train_epoch()
    best_weights = training.model.get_weights()
    train_to_end(training)
    assert (training.state.epoch, training.best["epoch"]) == (4, 2)
    assert_same(saved_weights(training.folder), best_weights)
    assert_same(
        saved_weights(training.folder, "last.keras"),
        training.model.get_weights(),
    )
    assert training._progress.messages[-1] == (
        "repe: stopped early, at step 12: the last 2 validations brought no better "
        "model than that of step 6"
    )
    # It has ended for the next start as well.
    assert trainer("run", epochs=9, patience=2).finished
    # Without patience, the best model alone changes nothing of the training.
    full_training = trainer("whole", epochs=4)
    assert_same(variables(train_to_end(full_training)), variables(training))


@pytest.mark.usefixtures("eagerly")
def test_rows_of_steps_count_and_a_resumed_run_knows_them(trainer):
    settings = {
        "epochs": 9,
        "best": "bleu",
        "patience": 2,
        "validate_every": 2,
        "bleu_sentences": 1,
    }

    def start_training(*bleu):
        training = trainer("run", **settings)
        scores = iter([{"val_bleu": value} for value in bleu])
        training._more_measures = lambda model: next(scores)
        return training

    training = start_training(5.0, 7.0)
    training.train_epoch()
    assert training.best["step"] == 2
    with pytest.raises(StopIteration):
        train_to_end(training)
    best_weights = saved_weights(training.folder)
    # A checkpoint has the best model's step, which no kill undoes.
    training = start_training(6.0, 7.0, 8.0)
    assert training.state.step == 4 and training.best["val_bleu"] == 7.0
    assert_same(training.model.get_weights(), best_weights)
    train_to_end(training)
    # It stopped within the third epoch.
    assert training.state.step == 8 and training.out_of_patience
    assert_same(saved_weights(training.folder), best_weights)
    assert len(training.folder.log()) == 3
    assert_same(
        saved_weights(training.folder, "last.keras"),
        training.model.get_weights(),
    )


@pytest.mark.usefixtures("eagerly")
def test_an_epoch_cut_by_time_counts_where_the_best_may_be_of_it(trainer):
    settings = {"epochs": 3, "best": "loss", "validate_every": 1}
    training = trainer("run", **settings, hours=1e-9)
    training.train_epoch()
    assert training.finished and training.state.out_of_time
    assert training.state.step == 1 == training.best["step"]
    assert [row["step"] for row in training.folder.log()] == [1]
    # The rest of its epoch would be missing.
    assert trainer("run", **settings).finished


@pytest.mark.usefixtures("eagerly")
def test_the_last_model_stands_in_where_none_is_compared(trainer):
    training = train_to_end(
        trainer("run", epochs=1, best="loss", validate_every=9)
    )
    assert training.best == {}
    assert_same(saved_weights(training.folder), training.model.get_weights())


@pytest.mark.usefixtures("eagerly")
def test_bleu_of_epochs_is_in_the_log(trainer, text):
    training = trainer("run", best="bleu", bleu_sentences=1)
    continuation = Trainer(
        *(training.settings, text, training.folder, tiny.Lines()),
        more_measures=lambda model: {"val_bleu": 3.0},
    )
    continuation.train_epoch()
    assert training.folder.log()[0]["val_bleu"] == 3.0


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"patience": 2, "average": 2}, "Received: 2, 'loss'"),
        ({"best": "bleu"}, "'bleu_sentences' of 1 or more"),
        (
            {
                "bleu_sentences": 5,
                "validate_every": 1,
                "text": {"side": "target"},
                "objective": {"name": "language_model"},
                "name": "decoder-only-tiny",
            },
            "only where two languages",
        ),
        ({"bleu_sentences": 5}, "together with 'validate_every'"),
        ({"bleu_sentences": 5, "best": "loss"}, "Received: 5, without them"),
    ],
)
def test_what_does_not_go_together_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        tiny.settings(**changes)


def test_when_models_compare_decides_a_run_only_where_they_do():
    settings, other_settings = (
        tiny.settings(validate_every=every) for every in (1, 2)
    )
    assert settings.identity == other_settings.identity
    settings, other_settings = (
        tiny.settings(validate_every=every, patience=1) for every in (1, 2)
    )
    assert settings.identity != other_settings.identity
    # What follows from the patience is written down.
    assert settings.as_table()["training"]["best"] == "loss"
