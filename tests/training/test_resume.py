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
    wanted, end = f"step-{step:08d}.npz", time.monotonic() + DEADLINE
    while not any(
        path.name >= wanted for path in checkpoints.glob("step-*.npz")
    ):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


@pytest.mark.long
def test_killed_twice_a_run_reaches_the_weights_of_one_left_whole(
    arguments, tmp_path
):
    alone = RunFolder(tmp_path / "alone" / "repe")
    killed = RunFolder(tmp_path / "killed" / "repe")
    assert main(arguments(alone.path.parent)) == 0

    command = arguments(killed.path.parent)
    kill_after(start(command), killed.checkpoints, STEPS // 3)
    # The first kill came in the middle of the first epoch.
    assert killed.log() == []
    kill_after(start(command), killed.checkpoints, STEPS + STEPS // 3)
    # The second came in the middle of the second epoch.
    assert len(killed.log()) == 1
    assert killed.metrics() is None
    last = start(command)
    _, said = last.communicate(timeout=DEADLINE)
    assert last.returncode == 0, said
    assert "repe: " in said and "from epoch 2, step " in said

    assert len(killed.manifest().starts) == 3
    assert losses(killed) == losses(alone) and len(losses(alone)) == 2
    one, other = (keras.saving.load_model(run.model) for run in (alone, killed))
    assert_same(one.get_weights(), other.get_weights())
    newest = f"step-{2 * STEPS:08d}.npz"
    with (
        np.load(alone.checkpoints / newest) as this,
        np.load(killed.checkpoints / newest) as that,
    ):
        # Adam's moments are among these.
        for name in set(this.files) - {"state"}:
            np.testing.assert_array_equal(this[name], that[name])
