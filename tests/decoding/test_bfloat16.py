"""Translation in bfloat16: as in float32 but for rounding."""

import numpy as np
import pytest
import tiny_run
from keras import ops

import reprt
from reprt.cli import main
from reprt.decoding.translator import Translator


@pytest.fixture(scope="module", params=["baseline", "repe"])
def run(request, tmp_path_factory):
    return tiny_run.lively(tmp_path_factory.getbasetemp(), request.param)


def test_everything_is_bfloat16_and_scores_are_near(run):
    full, half = Translator.load(run), Translator.load(run, dtype="bfloat16")
    assert {weight.dtype for weight in half.model.weights} == {"bfloat16"}
    source, target = np.array([[2, 9, 5, 7, 3]]), np.array([[2, 8, 6, 4]])
    logits = [np.asarray(each.model((source, target))) for each in (full, half)]
    difference = np.abs(logits[0] - logits[1].astype("float32")).max()
    assert 0 < difference < 0.06 * np.abs(logits[0]).max()
    (best,) = half.search(source)[0]
    assert np.isfinite(best.score)


def test_a_recurrent_model_takes_it_too():
    full = reprt.models.build("recurrent", 12, 12, num_layers=1, hidden_dim=6)
    half = full.in_dtype("bfloat16")
    pair = np.array([[2, 9, 5, 7, 3]]), np.array([[2, 8, 6, 4]])
    logits = [ops.convert_to_numpy(ops.cast(m(pair), "float32")) for m in (full, half)]
    np.testing.assert_allclose(*logits, atol=0.06 * np.abs(logits[0]).max())


def test_the_command_takes_it(run, capsys, monkeypatch):
    loaded, load = [], Translator.load

    def kept(*arguments, **options):
        loaded.append(load(*arguments, **options))
        return loaded[-1]

    monkeypatch.setattr(Translator, "load", kept)
    assert main(["translate", str(run), "--bfloat16", "--beam", "1", "a casa"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    (translator,) = loaded
    assert translator.model.dtype_policy.name == "bfloat16"
