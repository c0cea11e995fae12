"""How the process of the command ends: signals, and streams that are closed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reprt import termination

# As the console script, of which a copy may be loaded in another process.
CALLER = """
import sys
sys.path[:0] = {path!r}
import called
from reprt import termination
from reprt.lab.processes import in_own_process

if __name__ == "__main__":
    termination.listen()
    in_own_process(called.note_and_save, {note!r})
"""


@pytest.fixture
def listening():
    """SIGTERM is listened to, and forgotten afterwards."""
    usual = signal.getsignal(signal.SIGTERM)
    termination.listen()
    yield
    signal.signal(signal.SIGTERM, usual)
    termination._request.asked = False


def until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("to_all", [False, True], ids=["the caller", "all"])
def test_a_caller_that_is_to_end_waits_for_its_process(tmp_path, to_all):
    note, script = tmp_path / "process", tmp_path / "reprt"
    script.write_text(CALLER.format(path=sys.path, note=str(note)))
    caller = subprocess.Popen([sys.executable, script], start_new_session=True)
    until(lambda: note.exists() and note.read_text())
    (os.killpg if to_all else os.kill)(caller.pid, signal.SIGTERM)
    assert caller.wait(60) == 143
    assert (tmp_path / "process-saved").exists()
    assert not Path("/proc", note.read_text()).exists()


def test_a_request_to_end_is_put_off_and_not_forgotten(listening):
    with pytest.raises(termination.Terminated) as ending:
        with termination.put_off():
            assert not termination.asked()
            os.kill(os.getpid(), signal.SIGTERM)
            assert termination.asked()
    assert ending.value.code == 143
    os.kill(os.getpid(), signal.SIGTERM)  # what unwinds is not disturbed


def test_a_request_to_end_raises_where_nothing_puts_it_off(listening):
    with pytest.raises(termination.Terminated):
        os.kill(os.getpid(), signal.SIGTERM)


def test_an_error_while_an_end_is_put_off_comes_first(listening):
    with pytest.raises(ArithmeticError):
        with termination.put_off():
            os.kill(os.getpid(), signal.SIGTERM)
            raise ArithmeticError


def test_a_training_that_is_to_end_saves_its_next_step(
    trainer, eagerly, listening, monkeypatch
):
    from reprt.training.trainer import train_side_by_side

    ours = trainer("run")
    step = ours._backend.train

    def train(batch):
        if ours.state.step_in_epoch == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return step(batch)

    monkeypatch.setattr(ours._backend, "train", train)
    ours._seconds_per_step = 1e-3  # no reading would be due
    with pytest.raises(termination.Terminated):
        train_side_by_side([ours])
    (file,) = ours.folder.checkpoints.iterdir()
    assert file.name == "step-00000002.npz"
    assert "asked to end in epoch 1; saved a checkpoint" in ours._progress.said[-1]
    again = trainer("run")
    assert (again.state.epoch, again.state.step_in_epoch) == (0, 2)
