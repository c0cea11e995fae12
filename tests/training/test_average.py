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
def kept(tmp_path):
    """The folder of three models of random weights."""
    for step in STEPS:
        keep_model(
            tmp_path, random_model(step), step, most=3, steps_of_epochs=0
        )
    return tmp_path


def names(steps):
    return [f"step-{step:08d}.keras" for step in steps]


def assert_mean(found, others):
    for mean, *each in zip(found, *others, strict=True):
        wanted = np.mean(np.asarray(each, "float64"), axis=0).astype("float32")
        np.testing.assert_array_equal(mean, wanted)


def weights(path):
    return keras.saving.load_model(path).get_weights()


def test_models_of_an_epoch_that_does_not_count_are_left_out(kept):
    model = random_model(9)
    assert average_last(kept, model, step=5, most=2) == names(STEPS[:2])
    assert_mean(
        model.get_weights(), [weights(kept / each) for each in names((2, 4))]
    )
    before = model.get_weights()
    assert average_last(kept, model, step=1, most=2) == []
    assert_same(model.get_weights(), before)


def test_models_of_later_steps_go_where_a_training_begins_again_before_them(
    kept,
):
    keep_model(kept, random_model(3), 3, most=2, steps_of_epochs=0)
    assert sorted(path.name for path in kept.iterdir()) == names((2, 3))


def test_an_epoch_that_may_not_count_drives_none_out_of_the_last_that_does(
    kept,
):
    keep_model(kept, random_model(8), 8, most=2, steps_of_epochs=4)
    assert average_last(kept, random_model(9), step=4, most=2) == names((2, 4))


@pytest.mark.long
@pytest.mark.usefixtures("briefly")
def test_the_mean_survives_interruptions(
    tmp_path, tmp_path_factory, monkeypatch
):
    base = tmp_path_factory.getbasetemp()
    monkeypatch.setenv("REPRT_CACHE", str(tiny_run.cache(base)))
    asked = ["--only", "baseline", "--set", "training.average=2"]
    asked += ["--set", "training.keep_every=2", "--set", "batching.size=16"]

    def train(name):
        searches = f"training.bleu={'true' if name == 'alone' else 'false'}"
        out = ["--set", searches, "--out", str(tmp_path / name)]
        run = tiny_run.trained(base)
        return main(["train", *tiny_run.arguments(run, *asked, *out)])

    def killed_in_the_second_epoch(folder, model, step, **others):
        keep_model(folder, model, step, **others)
        if step == 4:
            raise KeyboardInterrupt

    def killed_at_the_end(*_):
        raise KeyboardInterrupt

    assert train("alone") == 0
    # At the end, the model is already the mean.
    for place, replacement in (
        ("reprt.training.trainer.keep_model", killed_in_the_second_epoch),
        ("reprt_lab.folder.RunFolder.write_metrics", killed_at_the_end),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, replacement)
            assert train("killed") == 130
    assert train("killed") == 0

    alone, killed = (
        RunFolder(tmp_path / n / "baseline") for n in ("alone", "killed")
    )
    assert losses(killed) == losses(alone)
    assert_same(weights(killed.model), weights(alone.model))
    for each in (alone, killed):
        models = [each.path / "models" / name for name in names((4, 6))]
        assert_mean(weights(each.model), map(weights, models))
        assert each.metrics().averaged_models == names((4, 6))
    # What is reported is the mean's, which does not look ahead.
    metrics = alone.metrics()
    found = metrics.val_loss_per_token
    assert found == pytest.approx(metrics.val_prefix_loss_per_token, rel=1e-4)
    assert found != pytest.approx(alone.log()[-1]["val_loss_per_token"], 1e-4)
