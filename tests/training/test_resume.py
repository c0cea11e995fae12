"""The same command after `kill -9`, against a run that nobody interrupted."""

import pathlib
import signal
import subprocess
import sys
import time

import keras
import numpy as np
import pytest
import tiny_run
from tiny import assert_same, losses

from reprt_lab.command import main
from reprt_lab.folder import RunFolder

RECIPE = (
    tiny_run.TABLES.replace("size = 33", "size = 4")
    + f"""
checkpoint_minutes = 1e-6
bleu = false
[models.repe]
preset = "repe"
{tiny_run.MODEL}
dropout = 0.2
"""
)
# The steps of an epoch.
STEPS = 15
# The seconds that the slowest of machines may take.
DEADLINE = 300


@pytest.fixture
def arguments(tmp_path, monkeypatch):
    """A function that returns the command's; its text lies in files, as TED's does."""
    monkeypatch.setenv("REPRT_CACHE", str(tmp_path / "cache"))
    tiny_run.write_corpus(tmp_path, train=4 * STEPS, dev=4, test=2)
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(RECIPE)
    text = str(tmp_path / "text")
    return lambda out: ["train", str(recipe), "--text", text, "--out", str(out)]


def start(arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "reprt_lab", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def kill_after(process, checkpoints: pathlib.Path, step):
    """Kills the process once the checkpoint of a step, or a later one, is there."""
    name, deadline = f"step-{step:08d}.npz", time.monotonic() + DEADLINE
    while not any(path.name >= name for path in checkpoints.glob("step-*.npz")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


@pytest.mark.long
def test_killed_twice_a_run_reaches_the_weights_of_one_left_whole(
    arguments, tmp_path
):
    reference_run = RunFolder(tmp_path / "alone" / "repe")
    killed_run = RunFolder(tmp_path / "killed" / "repe")
    assert main(arguments(reference_run.path.parent)) == 0

    command = arguments(killed_run.path.parent)
    kill_after(start(command), killed_run.checkpoints, STEPS // 3)
    # The first kill came in the middle of the first epoch.
    assert killed_run.log() == []
    kill_after(start(command), killed_run.checkpoints, STEPS + STEPS // 3)
    # The second came in the middle of the second epoch.
    assert len(killed_run.log()) == 1
    assert killed_run.metrics() is None
    process = start(command)
    _, output = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, output
    assert "repe: " in output and "from epoch 2, step " in output

    assert len(killed_run.manifest().starts) == 3
    assert losses(killed_run) == losses(reference_run)
    assert len(losses(reference_run)) == 2
    model, other_model = (
        keras.saving.load_model(run.model)
        for run in (reference_run, killed_run)
    )
    assert_same(model.get_weights(), other_model.get_weights())
    newest = f"step-{2 * STEPS:08d}.npz"
    with (
        np.load(reference_run.checkpoints / newest) as arrays,
        np.load(killed_run.checkpoints / newest) as other_arrays,
    ):
        # Adam's moments are among these.
        for name in set(arrays.files) - {"state"}:
            np.testing.assert_array_equal(arrays[name], other_arrays[name])
