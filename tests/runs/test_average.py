"""The mean of a run's models, and the folder that has it."""

import json

import keras
import numpy as np
import pytest

from reprt.cli import main
from reprt.models.registry import make
from reprt.reports.runs import own_runs
from reprt.runs.average import average_models
from reprt.runs.run_folder import RunFolder, RunFolderError

STEPS = (2, 4, 6)


@pytest.fixture
def run(tmp_path, text, settings):
    """The folder of a run that keeps three models of random weights."""
    folder = RunFolder(tmp_path / "runs" / "baseline")
    asked = settings("baseline", keep_models=3, keep_every=2)
    folder.open(asked, text)
    folder.add_start(["CPU:0"], looks_ahead=False)
    sizes = len(text.source_tokenizer), len(text.target_tokenizer)
    for step in STEPS:
        keras.utils.set_random_seed(step)
        model = make(asked.model, *sizes, name="baseline")
        folder.keep_model(model, step, kept=3)
    return folder


def weights(path):
    return keras.saving.load_model(path).get_weights()


@pytest.mark.parametrize("last", [2, None])
def test_the_mean_is_numpys_and_its_folder_is_a_runs(run, last, capsys):
    out = run.path / "average"
    asked = ["--last", str(last)] if last else []
    assert main(["average", str(run.path), *asked]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    chosen = run.kept_models[-(last or 3) :]
    models = [weights(path) for path in chosen]
    for found, *each in zip(weights(out / "model.keras"), *models, strict=True):
        wanted = np.mean(np.asarray(each, "float64"), axis=0).astype("float32")
        np.testing.assert_array_equal(found, wanted)
    average = json.loads((out / "manifest.json").read_text())["average"]
    assert average["models"] == [path.name for path in chosen]
    assert average["run"] == str(run.path)

    assert main(["translate", str(out), "a casa", "--max-tokens", "2"]) == 0
    assert main(["audit", str(out), "--length", "3"]) == 0
    # Pages are about runs that were trained.
    assert len(own_runs(run.path.parent, "*/config.toml", "*/*/config.toml")) == 1
    # What is there stays.
    assert main(["average", str(run.path)]) == 2
    assert "to be a new folder or empty" in capsys.readouterr().err


def test_too_few_models_are_told(run, capsys):
    assert main(["average", str(run.path), "--last", "4"]) == 2
    told = capsys.readouterr().err
    assert "to hold 4 models. Received: 3" in told and "which is 3 here" in told
    for path in run.kept_models:
        path.unlink()
    with pytest.raises(RunFolderError, match="some models. Received: 0"):
        average_models(run.path)
    assert main(["average", str(run.path.parent)]) == 2
    assert "holds the run folders baseline: name one" in capsys.readouterr().err


def test_a_damaged_model_or_another_runs_is_named(run, text, settings):
    oldest, _, newest = run.kept_models
    whole = newest.read_bytes()
    newest.write_bytes(whole[:-100])
    with pytest.raises(RunFolderError, match=f"{newest} cannot be read"):
        average_models(run.path)
    wider = settings("baseline", {"feed_forward_dim": 17}).model
    own = settings("baseline").model
    for config, size, message in (
        (wider, len(text.source_tokenizer), "feed_forward_dim: 17 there"),
        (own, 9, f"Expected {newest} to be of one run with {oldest}"),
    ):
        model = make(config, size, len(text.target_tokenizer), name="baseline")
        run.keep_model(model, STEPS[-1], kept=3)
        with pytest.raises(RunFolderError, match=message):
            average_models(run.path)
    assert not (run.path / "average").exists()
    newest.write_bytes(whole)
    assert average_models(run.path, last=1) == run.path / "average"
