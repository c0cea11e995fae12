"""A function's process: what comes back from it, and what ends it."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from reprt.jobs.processes import in_own_process

DEADLINE = 60  # seconds, on the slowest of machines
remembered = []


@pytest.fixture(autouse=True)
def argv(monkeypatch):
    """The command's, with which the package does not load Keras until it is needed."""
    argv = ["reprt", "train", "tiny.toml"]
    monkeypatch.setattr(sys, "argv", argv)
    return argv


def remember(thing):
    remembered.append(thing)
    return os.getpid(), list(remembered)


def arguments():
    return sys.argv


def refuse(what):
    raise ValueError(f"Expected another. Received: {what}.")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def work_on(pid_file):
    """Writes its process' number, all at once, and goes on for good."""
    new = pathlib.Path(pid_file).with_suffix(".new")
    new.write_text(str(os.getpid()))
    new.rename(pid_file)
    while True:
        time.sleep(1)


def test_what_a_function_returns_comes_back_and_its_memory_does_not():
    remembered.clear()
    first, second = (in_own_process(remember, thing) for thing in ("a", "b"))
    assert (first[1], second[1]) == (["a"], ["b"]) and remembered == []
    assert len({os.getpid(), first[0], second[0]}) == 3


def test_an_error_comes_back_as_it_was_raised():
    with pytest.raises(ValueError, match="^Expected another. Received: this.$"):
        in_own_process(refuse, "this")


def test_a_process_that_is_killed_is_named_with_its_status():
    with pytest.raises(ChildProcessError, match=f"status -{int(signal.SIGKILL)}"):
        in_own_process(die)


def test_the_callers_command_line_is_seen(argv):
    """Runs note it as the command that trained them."""
    assert in_own_process(arguments) == argv


def test_ctrl_c_still_reaches_the_caller():
    usual = signal.getsignal(signal.SIGINT)
    in_own_process(os.getpid)
    assert signal.getsignal(signal.SIGINT) is usual


CALLER = """
import sys

if __name__ == "__main__":
    _, place, pid_file = sys.argv
    sys.argv = ["reprt"]
    sys.path.insert(0, place)
    from reprt.jobs.processes import in_own_process
    from test_processes import work_on

    in_own_process(work_on, pid_file)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_the_end_of_the_caller_ends_the_process(how, tmp_path):
    script, pid_file = tmp_path / "caller.py", tmp_path / "pid"
    script.write_text(CALLER)
    here = pathlib.Path(__file__).parent
    caller = subprocess.Popen(
        [sys.executable, script, here, pid_file], stderr=subprocess.DEVNULL
    )
    _until(lambda: pid_file.exists() or caller.poll() is not None)
    process = int(pid_file.read_text())
    assert _runs(process)
    caller.send_signal(how)
    assert caller.wait(DEADLINE) != 0
    _until(lambda: not _runs(process))


def _until(done):
    end = time.monotonic() + DEADLINE
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def _runs(process):
    """Whether a process is there, other than as a status that nobody has asked for."""
    try:
        status = pathlib.Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
