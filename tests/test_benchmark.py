import argparse
import json
import os
import pathlib
import subprocess
import sys

import pytest

EXPERIMENTS = pathlib.Path(__file__).parents[1] / "experiments"
FOLDER = EXPERIMENTS / "benchmark"
COMMITTED_RESULTS = sorted(
    (EXPERIMENTS / "results" / "benchmark").glob("*/results.json")
)
sys.path.append(str(FOLDER))

import joeynmt  # noqa: E402
import pages  # noqa: E402
import profile_step  # noqa: E402

from reprt.data.tokenizers import bpe  # noqa: E402


@pytest.mark.parametrize(
    "file", COMMITTED_RESULTS, ids=lambda file: file.parent.name
)
def test_pages_are_those_of_the_committed_results(file):
    page = pages.markdown(json.loads(file.read_text()))
    assert file.with_name("results.md").read_text() == page + "\n"


def test_the_picture_is_that_of_the_committed_profile(tmp_path):
    folder = EXPERIMENTS / "results" / "benchmark" / "commits"
    results = json.loads((folder / "profile.json").read_text())
    profile_step.draw(results, tmp_path / "step.svg")
    committed = EXPERIMENTS.parent / "docs" / "step_profile.svg"
    assert committed.read_text() == (tmp_path / "step.svg").read_text()


def run_benchmark(command, out, **environment):
    command = [
        sys.executable,
        FOLDER / "run.py",
        *command.split(),
        "--out",
        out,
    ]
    environment = os.environ | environment
    process = subprocess.run(
        command, capture_output=True, text=True, env=environment
    )
    assert process.returncode == 0, process.stderr
    assert (out / "results.md").read_text() == process.stdout
    return json.loads((out / "results.json").read_text())


@pytest.mark.long
def test_training_shows_agreement_and_measures(tmp_path):
    results = run_benchmark(
        "train --peers reprt plain_keras --models repe positions:none-tokens "
        "--rounds 1 --steps 1 --pairs 64 --agreement-steps 3",
        tmp_path,
    )
    our_row, peer_row = results["training"]["repe"].values()
    assert list(results["side_by_side"]) == ["repe", "positions:none-tokens"]
    assert our_row["parameters"] == peer_row["parameters"]
    assert peer_row["first_loss_difference"] < 1e-5
    assert our_row["losses_difference"] < 1e-4 and len(our_row["losses"]) == 3
    assert set(peer_row["ours"]) == set(pages.MEASURES)
    assert set(peer_row["measured"]) == set(pages.MEASURES) - {"share"}
    assert all(min(values) > 0 for values in peer_row["measured"].values())


@pytest.mark.long
def test_the_benchmark_of_a_gpu_runs_on_a_processor(tmp_path):
    peers = "reprt reprt:bfloat16 plain_jax"
    results = run_benchmark(
        f"train --peers {peers} --models repe --rounds 1 --steps 1 --pairs 64 "
        f"--agreement-steps 2 --inexact {peers}",
        tmp_path,
        KERAS_BACKEND="jax",
    )
    assert {*results["training"]["repe"]} == {*peers.split()}
    for rows in results["training"].values():
        for peer, row in rows.items():
            tolerance = 1e-5 if peer != "reprt:bfloat16" else 1e-3
            assert row["first_loss_difference"] < tolerance
    assert results["provenance"]["backend"] == "jax"


@pytest.mark.long
def test_translating_shows_agreement_and_measures(tmp_path):
    results = run_benchmark(
        "translate --peers tutorial ctranslate2:parallel --sentences 6 --rounds 1 "
        "--sample tutorial=1 --growth 2 --growth-rounds 1",
        tmp_path,
    )
    greedy_search, beam_search = results["searches"].values()
    assert [*greedy_search] == ["reprt", "tutorial", "ctranslate2:parallel"]
    assert [*beam_search] == ["reprt", "ctranslate2:parallel"]
    # [END] is forbidden, so that every translation has as many tokens.
    assert [row["tokens"] for row in greedy_search.values()] == [
        [180],
        [30],
        [180],
    ]
    agreement = {
        peer: row["same"]["greedy"]
        for peer, row in results["agreement"].items()
    }
    assert agreement == {"tutorial": "1 of 1", "ctranslate2:parallel": "6 of 6"}
    assert [*results["growth"]["reprt"]] == ["2"]
    assert results["provenance"]["command"].startswith(
        "python run.py translate"
    )


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
