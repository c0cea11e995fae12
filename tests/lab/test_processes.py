"""Processes of a job's own, and how they and the command's end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import called
import pytest
from elsewhere import until

import reprt
from reprt import termination
from reprt_lab.processes import in_own_process

# Every new process runs it first: the package's own import would load Keras.
PACKAGE_STUB = """
import sys, types
sys.modules["reprt"] = types.ModuleType("reprt")
sys.modules["reprt"].__path__ = {place!r}
"""
# As the console script is: a file that may be loaded again, and does nothing then.
CALLER = """
import sys
sys.path[:0] = {path!r}
import called
from reprt import termination
from reprt_lab.processes import in_own_process

if __name__ == "__main__":
    termination.listen()
    in_own_process(called.{work}, {note!r})
"""


@pytest.fixture(autouse=True)
def command(monkeypatch, tmp_path):
    """As from the console, but for processes that load no Keras."""
    monkeypatch.setattr(sys, "argv", ["reprt", "train", "a.toml"])
    (tmp_path / "bare").mkdir()
    stub = PACKAGE_STUB.format(place=[*reprt.__path__])
    (tmp_path / "bare" / "sitecustomize.py").write_text(stub)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "bare"))


def test_what_a_call_returns_or_raises_comes_back_and_nothing_else():
    process, arguments, words = in_own_process(called.about, "word")
    assert process != os.getpid() and words == ["word"] and not called.KEPT
    assert arguments == ["reprt", "train", "a.toml"]
    with pytest.raises(ArithmeticError, match="^no sense$"):
        in_own_process(called.complain, "sense")
    with pytest.raises(termination.Terminated):
        in_own_process(called.be_asked_to_end)
    with pytest.raises(
        ChildProcessError, match="was lost, .* The same command"
    ):
        in_own_process(called.be_killed)


def is_running(process):
    try:
        return ") Z" not in Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False


@pytest.fixture
def start_caller(tmp_path):
    """A function that starts a caller; returns it and its process."""

    def start_caller(work):
        note, script = tmp_path / "process", tmp_path / "reprt"
        script.write_text(
            CALLER.format(work=work, path=sys.path, note=str(note))
        )
        command = [sys.executable, script]
        caller = subprocess.Popen(
            command, stderr=subprocess.DEVNULL, start_new_session=True
        )
        until(lambda: note.exists() and note.read_text())
        return caller, note.read_text()

    return start_caller


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT])
def test_a_process_ends_with_its_caller(start_caller, signal_number):
    caller, process = start_caller("note_and_wait")
    caller.send_signal(signal_number)
    caller.wait()
    until(lambda: not is_running(process))


@pytest.mark.parametrize(
    "whole_group", [False, True], ids=["the caller", "all"]
)
def test_a_caller_that_is_to_end_waits_for_its_process(
    tmp_path, start_caller, whole_group
):
    caller, process = start_caller("note_and_save")
    (os.killpg if whole_group else os.kill)(caller.pid, signal.SIGTERM)
    assert caller.wait(60) == 143
    assert (tmp_path / "process-saved").exists() and not is_running(process)


@pytest.fixture
def sigterm_listener():
    """SIGTERM is listened to, and forgotten afterwards."""
    handler = signal.getsignal(signal.SIGTERM)
    termination.listen()
    yield
    signal.signal(signal.SIGTERM, handler)
    termination._request.asked = False


def test_a_request_to_end_is_put_off_and_not_forgotten(sigterm_listener):
    with pytest.raises(termination.Terminated) as termination_error:
        with termination.put_off():
            os.kill(os.getpid(), signal.SIGTERM)
            assert termination.asked()
    assert termination_error.value.code == 143
    # A process that is ending already is not disturbed.
    os.kill(os.getpid(), signal.SIGTERM)
    termination._request.asked = False
    # Nothing puts the end off here.
    with pytest.raises(termination.Terminated):
        os.kill(os.getpid(), signal.SIGTERM)
    termination._request.asked = False
    # An error comes before the request to end.
    with pytest.raises(ArithmeticError):
        with termination.put_off():
            os.kill(os.getpid(), signal.SIGTERM)
            raise ArithmeticError


def test_a_training_saves_before_it_ends(
    trainer, eagerly, sigterm_listener, monkeypatch
):
    from reprt.training.trainer import train_side_by_side

    training = trainer("run")
    step = training._backend.train

    def train(batch):
        if training.state.step_in_epoch == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return step(batch)

    monkeypatch.setattr(training._backend, "train", train)
    # No reading would be due.
    training._calibrated = 1e-3
    with pytest.raises(termination.Terminated):
        train_side_by_side([training])
    (file,) = training.folder.checkpoints.iterdir()
    assert file.name == "step-00000002.npz"
    assert (
        "asked to end in epoch 1; saved a checkpoint"
        in training._progress.messages[-1]
    )
    continuation = trainer("run")
    state = continuation.state
    assert (state.epoch, state.step_in_epoch) == (0, 2)
