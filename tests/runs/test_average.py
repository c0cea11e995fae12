"""The mean of a run's models, and the folder that has it."""

import keras
import numpy as np
import pytest
import tiny_run
from tiny import losses

from reprt.cli import main
from reprt.models.registry import make
from reprt.reports.runs import own_runs
from reprt.runs.average import average_last
from reprt.runs.run_folder import RunFolder, RunFolderError

STEPS = (2, 4, 6)


@pytest.fixture
def run(tmp_path, text, settings):
    """The folder of a run that keeps three models of random weights."""
    folder = RunFolder(tmp_path / "runs" / "baseline")
    asked = settings("baseline", average=3, keep_every=2)
    folder.open(asked, text)
    folder.add_start(["CPU:0"], looks_ahead=False)
    sizes = len(text.source_tokenizer), len(text.target_tokenizer)
    for step in STEPS:
        keras.utils.set_random_seed(step)
        model = make(asked.model, *sizes, name="baseline")
        folder.keep_model(model, step, kept=3)
    return folder


def names(paths):
    return [path.name for path in paths]


def assert_mean(found, paths):
    for mean, *each in zip(weights(found), *map(weights, paths), strict=True):
        wanted = np.mean(np.asarray(each, "float64"), axis=0).astype("float32")
        np.testing.assert_array_equal(mean, wanted)


def weights(path):
    return keras.saving.load_model(path).get_weights()


def test_a_damaged_model_or_another_runs_is_named(run, text, settings):
    oldest, _, newest = run.kept_models
    newest.write_bytes(newest.read_bytes()[:-100])
    with pytest.raises(RunFolderError, match=f"{newest} cannot be read"):
        average_last(run, 3, steps=6)
    model = make(settings("baseline").model, 9, len(text.target_tokenizer))
    run.keep_model(model, STEPS[-1], kept=3)
    with pytest.raises(RunFolderError, match=f"{newest} to be of .* with {oldest}"):
        average_last(run, 3, steps=6)
    assert not run.model.exists()


def test_models_of_an_epoch_that_does_not_count_are_left_out(run):
    first, second, _ = run.kept_models
    assert average_last(run, 2, steps=5) == names([first, second])
    assert_mean(run.model, [first, second])
    before = run.model.read_bytes()
    assert average_last(run, 2, steps=1) == []
    assert run.model.read_bytes() == before


def test_models_of_later_steps_go_where_a_training_begins_again_before_them(run):
    oldest, *_ = run.kept_models
    run.keep_model(run.load_model(oldest), 3, kept=2)
    assert names(run.kept_models) == [oldest.name, "step-00000003.keras"]


@pytest.mark.long
@pytest.mark.usefixtures("briefly")
def test_the_trained_model_is_the_mean_of_the_last_through_kills(
    tmp_path, tmp_path_factory, monkeypatch
):
    base = tmp_path_factory.getbasetemp()
    monkeypatch.setenv("REPRT_CACHE", str(tiny_run.cache(base)))
    asked = ["--only", "baseline", "--set", "training.average=2"]
    asked += ["--set", "training.keep_every=2"]

    def train(name):
        searches = f"training.bleu={'true' if name == 'alone' else 'false'}"
        out = ["--set", searches, "--out", str(tmp_path / name)]
        run = tiny_run.trained(base)
        return main(["train", *tiny_run.arguments(run, *asked, *out)])

    def killed_in_the_second_epoch(folder, model, step, kept):
        keep(folder, model, step, kept)
        if step == 4:
            raise KeyboardInterrupt

    def killed_at_the_end(*_):
        raise KeyboardInterrupt

    keep = RunFolder.keep_model
    assert train("alone") == 0
    for method, replacement in (
        ("keep_model", killed_in_the_second_epoch),
        ("write_metrics", killed_at_the_end),  # and the mean is there
    ):
        with monkeypatch.context() as patch:
            patch.setattr(RunFolder, method, replacement)
            assert train("killed") == 130
    assert train("killed") == 0

    alone, killed = (RunFolder(tmp_path / n / "baseline") for n in ("alone", "killed"))
    assert losses(killed) == losses(alone)
    for this, that in zip(weights(killed.model), weights(alone.model), strict=True):
        np.testing.assert_array_equal(this, that)
    for each in (alone, killed):
        assert names(each.kept_models) == ["step-00000004.keras", "step-00000006.keras"]
        assert_mean(each.model, each.kept_models)
        assert each.metrics()["averaged_models"] == names(each.kept_models)
    metrics = alone.metrics()
    # The process that measured the killed run's model had not trained it.
    assert "peak_memory_bytes" in metrics
    assert "peak_memory_bytes" not in killed.metrics()
    loss = metrics["val_loss_per_token"]
    assert loss == killed.metrics()["val_loss_per_token"]
    # What is reported is the mean's, which does not look ahead.
    assert loss == pytest.approx(metrics["val_prefix_loss_per_token"], rel=1e-4)
    assert loss != pytest.approx(metrics["last_epoch"]["val_loss_per_token"], 1e-4)
    (found,) = own_runs(alone.path.parent, "*/config.toml")
    assert found.numbers["val_loss_per_token"] == loss
    report = (alone.path.parent / "report.md").read_text("utf-8")
    assert "The model of baseline (of 2) is a mean" in report
    assert f"| {metrics['val_loss']:.3f} |" in report
