"""The benchmarks run on few sentences, and their pages are of their results."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

EXPERIMENTS = pathlib.Path(__file__).parents[1] / "experiments"
FOLDER = EXPERIMENTS / "benchmark"
COMMITTED = sorted((EXPERIMENTS / "results" / "benchmark").glob("*/results.json"))
sys.path.append(str(FOLDER))

import pages  # noqa: E402
import text  # noqa: E402


def test_generated_ids_are_like_teds():
    generated = text.generate(2000)
    for side in (generated.source, generated.target):
        lengths = np.array([len(row) for row in side])
        assert 24 < lengths.mean() < 28 and lengths.max() <= 128
        padded = [lengths[start : start + 64].max() for start in range(0, 1984, 64)]
        assert 75 < np.mean(padded) < 110  # where TED's are padded to some 90
    row = generated.target[0]
    assert (row[0], row[-1]) == (2, 3)
    few = generated.first(5)
    _, inputs, labels = few.batch()
    moved = np.where(inputs[:, 1:] > 0, labels[:, :-1], 0)
    np.testing.assert_array_equal(inputs[:, 1:], moved)
    assert few.target_tokens() == np.count_nonzero(labels)


@pytest.mark.parametrize("file", COMMITTED, ids=lambda file: file.parent.name)
def test_pages_are_those_of_the_committed_results(file):
    page = pages.markdown(json.loads(file.read_text()))
    assert file.with_name("results.md").read_text() == page + "\n"


def run(command, out):
    command = [sys.executable, FOLDER / "run.py", *command.split(), "--out", out]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert (out / "results.md").read_text() == ended.stdout
    return json.loads((out / "results.json").read_text())


@pytest.mark.long
def test_training_shows_agreement_and_measures(tmp_path):
    found = run(
        "train --peers reprt plain_keras --models repe repe-causal --rounds 1 "
        "--steps 1 --pairs 64 --agreement-steps 3",
        tmp_path,
    )
    ours, theirs = found["training"]["repe"].values()
    assert list(found["side_by_side"]) == ["repe", "repe-causal"]
    assert ours["parameters"] == theirs["parameters"]
    assert theirs["first_loss_difference"] < 1e-5
    assert ours["losses_difference"] < 1e-4 and len(ours["losses"]) == 3
    assert set(theirs["ours"]) == set(pages.MEASURES)
    assert set(theirs["measured"]) == set(pages.MEASURES) - {"share"}
    assert all(min(values) > 0 for values in theirs["measured"].values())


@pytest.mark.long
def test_translating_shows_agreement_and_measures(tmp_path):
    pytest.importorskip("ctranslate2")
    found = run(
        "translate --peers tutorial ctranslate2:parallel --sentences 6 --rounds 1 "
        "--sample tutorial=1 --growth 2 --growth-rounds 1",
        tmp_path,
    )
    greedy, beams = found["searches"].values()
    assert [*greedy] == ["reprt", "tutorial", "ctranslate2:parallel"]
    assert [*beams] == ["reprt", "ctranslate2:parallel"]
    # [END] is forbidden, so that every translation has as many tokens.
    assert [row["tokens"] for row in greedy.values()] == [[180], [30], [180]]
    same = {peer: row["same"]["greedy"] for peer, row in found["agreement"].items()}
    assert same == {"tutorial": "1 of 1", "ctranslate2:parallel": "6 of 6"}
    assert [*found["growth"]["reprt"]] == ["2"]
    assert found["provenance"]["command"].startswith("python run.py translate")
