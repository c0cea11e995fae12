import argparse
import json
import os
import pathlib
import subprocess
import sys

import pytest

EXPERIMENTS = pathlib.Path(__file__).parents[1] / "experiments"
FOLDER = EXPERIMENTS / "benchmark"
COMMITTED = sorted(
    (EXPERIMENTS / "results" / "benchmark").glob("*/results.json")
)
sys.path.append(str(FOLDER))

import joeynmt  # noqa: E402
import pages  # noqa: E402
import profile_step  # noqa: E402

from reprt.data.tokenizers import bpe  # noqa: E402


@pytest.mark.parametrize("file", COMMITTED, ids=lambda file: file.parent.name)
def test_pages_are_those_of_the_committed_results(file):
    page = pages.markdown(json.loads(file.read_text()))
    assert file.with_name("results.md").read_text() == page + "\n"


def test_the_picture_is_that_of_the_committed_profile(tmp_path):
    folder = EXPERIMENTS / "results" / "benchmark" / "commits"
    results = json.loads((folder / "profile.json").read_text())
    profile_step.draw(results, tmp_path / "step.svg")
    committed = EXPERIMENTS.parent / "docs" / "step_profile.svg"
    assert committed.read_text() == (tmp_path / "step.svg").read_text()


def run(command, out, **environment):
    command = [
        sys.executable,
        FOLDER / "run.py",
        *command.split(),
        "--out",
        out,
    ]
    environment = os.environ | environment
    ended = subprocess.run(
        command, capture_output=True, text=True, env=environment
    )
    assert ended.returncode == 0, ended.stderr
    assert (out / "results.md").read_text() == ended.stdout
    return json.loads((out / "results.json").read_text())


@pytest.mark.long
def test_training_shows_agreement_and_measures(tmp_path):
    found = run(
        "train --peers reprt plain_keras --models repe positions:none-tokens "
        "--rounds 1 --steps 1 --pairs 64 --agreement-steps 3",
        tmp_path,
    )
    ours, theirs = found["training"]["repe"].values()
    assert list(found["side_by_side"]) == ["repe", "positions:none-tokens"]
    assert ours["parameters"] == theirs["parameters"]
    assert theirs["first_loss_difference"] < 1e-5
    assert ours["losses_difference"] < 1e-4 and len(ours["losses"]) == 3
    assert set(theirs["ours"]) == set(pages.MEASURES)
    assert set(theirs["measured"]) == set(pages.MEASURES) - {"share"}
    assert all(min(values) > 0 for values in theirs["measured"].values())


@pytest.mark.long
def test_the_benchmark_of_a_gpu_runs_on_a_processor(tmp_path):
    peers = "reprt reprt:bfloat16 plain_jax"
    found = run(
        f"train --peers {peers} --models repe --rounds 1 --steps 1 --pairs 64 "
        f"--agreement-steps 2 --inexact {peers}",
        tmp_path,
        KERAS_BACKEND="jax",
    )
    assert {*found["training"]["repe"]} == {*peers.split()}
    for rows in found["training"].values():
        for peer, row in rows.items():
            exact = 1e-5 if peer != "reprt:bfloat16" else 1e-3
            assert row["first_loss_difference"] < exact
    assert found["provenance"]["backend"] == "jax"


@pytest.mark.long
def test_translating_shows_agreement_and_measures(tmp_path):
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
    same = {
        peer: row["same"]["greedy"] for peer, row in found["agreement"].items()
    }
    assert same == {"tutorial": "1 of 1", "ctranslate2:parallel": "6 of 6"}
    assert [*found["growth"]["reprt"]] == ["2"]
    assert found["provenance"]["command"].startswith("python run.py translate")


def test_joeynmt_is_given_our_vocabularies(tmp_path):
    for side in ("source", "target"):
        model = bpe.learn_model(["The houses", "the house"], 30)
        (tmp_path / f"{side}.spm").write_bytes(model)
    options = argparse.Namespace(
        train="train", dev="dev", languages=["pt", "en"], out=tmp_path
    )
    configuration = joeynmt.configure(options, tmp_path).read_text()
    assert "$" not in configuration.split("\n", 1)[1]
    assert f"voc_file: {tmp_path}/target.txt" in configuration
    pieces = (tmp_path / "target.txt").read_text().split("\n")
    assert pieces[:4] == ["[PAD]", "[UNK]", "[START]", "[END]"]
    assert "▁house" in pieces
