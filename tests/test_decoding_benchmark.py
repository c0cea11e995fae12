"""The benchmark of translation runs, and all its peers find the same translations."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

FOLDER = pathlib.Path(__file__).parents[1] / "experiments" / "benchmark"
sys.path.append(str(FOLDER))

import decoding_results  # noqa: E402
import text  # noqa: E402
from decoding_peers.settings import Settings  # noqa: E402

FORBIDDEN = (0, text.START)
# Keras wonders at attention over a single word.
pytestmark = pytest.mark.filterwarnings("ignore:(?s).*You are using a softmax over")


@pytest.fixture(scope="module")
def generated():
    return text.generate(12, seed=0, vocab_sizes=(60, 50), mean_tokens=8)


def settings(generated, **others):
    sizes = {"vocab_sizes": generated.vocab_sizes, "batch_size": 5, "threads": 2}
    return Settings(**sizes, **others)


@pytest.fixture(scope="module", autouse=True)
def threads():
    """Leaves TensorFlow's threads alone, which cannot be set once it has started."""
    import tensorflow as tf

    with pytest.MonkeyPatch.context() as patch:
        for kind in ("intra", "inter"):
            name = f"set_{kind}_op_parallelism_threads"
            patch.setattr(tf.config.threading, name, lambda number: None)
        yield


@pytest.fixture(scope="module")
def ours(generated):
    from decoding_peers.reprt import Peer

    return Peer(settings(generated, forbidden=FORBIDDEN))


@pytest.fixture(scope="module")
def weights(ours, tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "weights.npz"
    np.savez(path, *ours.weights())
    return str(path)


def check(peer, ours, generated, beam_sizes, sentences=12):
    pairs = generated.pairs.first(sentences)
    for found, wanted in zip(
        peer.scores(pairs.source, pairs.target),
        ours.scores(pairs.source, pairs.target),
        strict=True,
    ):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4)
    for beam_size in beam_sizes:
        found = peer.translate(pairs.source, beam_size, 9)
        wanted = ours.translate(pairs.source, beam_size, 9)
        assert list(map(list, found)) == list(map(list, wanted))


@pytest.mark.long
def test_the_tutorials_way_finds_the_same(ours, weights, generated):
    from decoding_peers.tutorial import Peer

    check(Peer(settings(generated, weights=weights)), ours, generated, (1,), 3)


@pytest.mark.long
@pytest.mark.parametrize("variant", ["", "parallel"])
def test_ctranslate2_finds_the_same(ours, weights, generated, variant):
    pytest.importorskip("ctranslate2")
    from decoding_peers.ctranslate2 import Peer

    peer = Peer(settings(generated, weights=weights, variant=variant))
    check(peer, ours, generated, (1, 4))


def test_times_are_compared_token_by_token_within_a_round(tmp_path):
    table = decoding_results.Results(tmp_path, "ours", "Work.", {"seed": 0})
    for ours, theirs in ((1, 3), (2, 6), (4, 20)):
        table.add(1, "ours", ours, 100, sentences=10)
        table.add(1, "theirs", theirs, 10, sentences=1)
    table.write()
    theirs = json.loads((tmp_path / "results.json").read_text())["rows"][1]
    assert theirs["ratio"] == [30, 30, 40]
    line = "| theirs | 1 | 30.00 (30.00 – 40.00) | 2 (1 – 2) | 60.0 s |"
    assert line in (tmp_path / "results.md").read_text()


@pytest.mark.long
def test_the_benchmark_shows_agreement_and_measures(tmp_path):
    few = "--sentences 6 --rounds 2 --tokens 4 --growth 2 --growth-rounds 1"
    command = [sys.executable, FOLDER / "decoding.py", *few.split()]
    command += ["--beam-sizes", "1", "--sample", "tutorial=2", "--peers"]
    command += ["reprt", "tutorial"]
    for peer in ("reprt", "tutorial"):
        command += ["--python", f"{peer}={sys.executable}"]
    out = tmp_path / "out"
    subprocess.run([*command, "--out", out], check=True, capture_output=True)
    found = json.loads((out / "results.json").read_text())
    assert found["peers"]["tutorial"]["agreement"]["same"] == {"greedy": "2 of 2"}
    measured = [
        (row["peer"], row["beam_size"], row["sentences"], row["tokens"])
        for row in found["rows"]
    ]
    # [END] is forbidden, so that every translation has as many tokens.
    assert measured == [
        ("reprt", 1, 6, [24, 24]),
        ("tutorial", 1, 2, [8, 8]),
    ]
    assert set(found["growth"]["reprt"]) == {"2"}
    assert found["provenance"]["command"].startswith("python decoding.py")
