"""The benchmark runs, on texts and numbers of repetitions that are tiny."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

FOLDER = pathlib.Path(__file__).parents[1] / "experiments" / "benchmark"
sys.path.append(str(FOLDER))

import profile_step  # noqa: E402
import results  # noqa: E402
import text  # noqa: E402


def test_generated_ids_are_like_teds():
    generated = text.generate(2000, seed=0)
    for side in (generated.pairs.source, generated.pairs.target):
        lengths = np.array([len(row) for row in side])
        assert 24 < lengths.mean() < 28 and lengths.max() <= 128
        padded = [lengths[start : start + 64].max() for start in range(0, 1984, 64)]
        assert 75 < np.mean(padded) < 110  # where TED's are padded to some 90
    row = generated.pairs.target[0]
    assert (row[0], row[-1]) == (2, 3)
    batch = generated.pairs.first(5).batch()
    moved = np.where(batch.inputs[:, 1:] > 0, batch.labels[:, :-1], 0)
    np.testing.assert_array_equal(batch.inputs[:, 1:], moved)
    assert generated.pairs.first(5).target_tokens() == np.count_nonzero(batch.labels)


def test_ratios_are_taken_within_a_round(tmp_path):
    table = results.Results(tmp_path, "ours", {"seed": 0})
    for peer in ("ours", "theirs"):
        table.note("repe", peer, parameters=7)
    for ours, theirs in ((1, 3), (2, 6), (4, 20)):
        table.add("repe", "theirs", True, step=ours)
        table.add("repe", "theirs", False, step=theirs)
    table.write()
    saved = json.loads((tmp_path / "results.json").read_text())
    summary = saved["rows"][1]["summary"]["step"]
    assert summary["ratio"] == [3, 3, 4] and summary["value"][1] == 6
    assert "| theirs | 3.00 (3.00 – 4.00) |" in (tmp_path / "results.md").read_text()


def test_our_models_are_divided_by_the_first(tmp_path):
    table = results.Results(tmp_path, "ours", {"seed": 0})
    for model, rounds in {"baseline": (4, 8), "repe": (1, 4)}.items():
        table.note(model, "ours", parameters=1000)
        for seconds in rounds:
            table.add_side_by_side(model, seconds)
    rows = [line for line in table.markdown().splitlines() if "1,000" in line]
    assert rows == [
        "| baseline | 1,000 | 1 |",
        "| repe | 1,000 | 0.375 (0.312 – 0.438) |",
    ]


def test_a_profile_knows_tensorflows_operations():
    assert {
        name: profile_step.kind(name)
        for name in ("_MklBatchMatMulV2", "_MklNativeFusedMatMul", "StatefulThing")
    } == {
        "_MklBatchMatMulV2": "products of matrices",
        "_MklNativeFusedMatMul": "products of matrices",
        "StatefulThing": profile_step.REST,
    }


@pytest.mark.long
def test_the_benchmark_shows_agreement_and_measures(tmp_path):
    ids = tmp_path / "text.npz"
    text.generate(140, 0, vocab_sizes=(60, 50), mean_tokens=8).save(ids)
    few = "--rounds 1 --steps 1 --pairs 64 --agreement-steps 5"
    few += " --models repe repe-causal"
    peers = ("reprt", "plain_keras")
    command = [sys.executable, FOLDER / "run.py", *few.split(), "--peers", *peers]
    for peer in peers:
        command += ["--python", f"{peer}={sys.executable}"]
    command += ["--text", ids, "--out", tmp_path / "out"]
    subprocess.run(command, check=True, capture_output=True)
    saved = json.loads((tmp_path / "out" / "results.json").read_text())
    ours, theirs, causal = saved["rows"]
    assert causal["parameters"] > ours["parameters"]
    assert list(saved["side_by_side"]) == ["repe", "repe-causal"]
    assert ours["parameters"] == theirs["parameters"]
    assert theirs["first_loss_difference"] < 1e-5
    assert ours["losses_difference"] < 1e-4 and len(ours["losses"]) == 5
    assert set(ours["measured"]) == set(results.MEASURES)
    assert set(theirs["measured"]) == set(results.MEASURES) - {"share"}
    assert all(min(values) > 0 for values in ours["measured"].values())
