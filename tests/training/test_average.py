import keras
import numpy as np
import pytest
import tiny_run
from tiny import assert_same, losses

from reprt.models.registry import build
from reprt.training.average import average_last, keep_model
from reprt_lab.command import main
from reprt_lab.folder import RunFolder

STEPS = (2, 4, 6)


def random_model(seed):
    keras.utils.set_random_seed(seed)
    return build("recurrent", 9, 9, num_layers=1, embedding_dim=4, hidden_dim=4)


@pytest.fixture
def models_folder(tmp_path):
    """The folder of three models of random weights."""
    for step in STEPS:
        keep_model(
            tmp_path, random_model(step), step, most=3, steps_of_epochs=0
        )
    return tmp_path


def names(steps):
    return [f"step-{step:08d}.keras" for step in steps]


def assert_mean(means, model_weights):
    for mean, *weights in zip(means, *model_weights, strict=True):
        expected = np.mean(np.asarray(weights, "float64"), axis=0)
        np.testing.assert_array_equal(mean, expected.astype("float32"))


def weights(path):
    return keras.saving.load_model(path).get_weights()


def test_models_of_an_epoch_that_does_not_count_are_left_out(models_folder):
    model = random_model(9)
    assert average_last(models_folder, model, step=5, most=2) == names(
        STEPS[:2]
    )
    assert_mean(
        model.get_weights(),
        [weights(models_folder / name) for name in names((2, 4))],
    )
    old_weights = model.get_weights()
    assert average_last(models_folder, model, step=1, most=2) == []
    assert_same(model.get_weights(), old_weights)


def test_models_of_later_steps_go_where_a_training_begins_again_before_them(
    models_folder,
):
    keep_model(models_folder, random_model(3), 3, most=2, steps_of_epochs=0)
    assert sorted(path.name for path in models_folder.iterdir()) == names(
        (2, 3)
    )


def test_an_epoch_that_may_not_count_drives_none_out_of_the_last_that_does(
    models_folder,
):
    keep_model(models_folder, random_model(8), 8, most=2, steps_of_epochs=4)
    assert average_last(
        models_folder, random_model(9), step=4, most=2
    ) == names((2, 4))


@pytest.mark.long
@pytest.mark.usefixtures("briefly")
def test_the_mean_survives_interruptions(
    tmp_path, tmp_path_factory, monkeypatch
):
    base = tmp_path_factory.getbasetemp()
    monkeypatch.setenv("REPRT_CACHE", str(tiny_run.cache(base)))
    options = ["--only", "baseline", "--set", "training.average=2"]
    options += ["--set", "training.keep_every=2", "--set", "batching.size=16"]

    def train(name):
        searches = f"training.bleu={'true' if name == 'alone' else 'false'}"
        out = ["--set", searches, "--out", str(tmp_path / name)]
        run = tiny_run.trained_experiment(base)
        return main(["train", *tiny_run.arguments(run, *options, *out)])

    def interrupt_second_epoch(folder, model, step, **keywords):
        keep_model(folder, model, step, **keywords)
        if step == 4:
            raise KeyboardInterrupt

    def interrupt_at_the_end(*_):
        raise KeyboardInterrupt

    assert train("alone") == 0
    # At the end, the model is already the mean.
    for attribute, replacement in (
        ("reprt.training.trainer.keep_model", interrupt_second_epoch),
        ("reprt_lab.folder.RunFolder.write_metrics", interrupt_at_the_end),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(attribute, replacement)
            assert train("killed") == 130
    assert train("killed") == 0

    reference_run, killed_run = (
        RunFolder(tmp_path / name / "baseline") for name in ("alone", "killed")
    )
    assert losses(killed_run) == losses(reference_run)
    assert_same(weights(killed_run.model), weights(reference_run.model))
    for run in (reference_run, killed_run):
        models = [run.path / "models" / name for name in names((4, 6))]
        assert_mean(weights(run.model), map(weights, models))
        assert run.metrics().averaged_models == names((4, 6))
    # What is reported is the mean's, which does not look ahead.
    metrics = reference_run.metrics()
    loss = metrics.val_loss_per_token
    assert loss == pytest.approx(metrics.val_prefix_loss_per_token, rel=1e-4)
    assert loss != pytest.approx(
        reference_run.log()[-1]["val_loss_per_token"], 1e-4
    )
