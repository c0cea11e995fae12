import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import called
import pytest

from reprt.lab.processes import in_own_process
from reprt.termination import Terminated

# As the console script is: a file that may be loaded again, and does nothing then.
CALLER = """
import sys
sys.path[:0] = {path!r}
import called
from reprt.lab.processes import in_own_process

if __name__ == "__main__":
    in_own_process(called.note_and_wait, {note!r})
"""


@pytest.fixture(autouse=True)
def command(monkeypatch):
    """As from the console, where no process loads Keras without need."""
    monkeypatch.setattr(sys, "argv", ["reprt", "train", "a.toml"])


def test_what_a_call_returns_comes_back_and_nothing_else():
    for _ in range(2):
        process, arguments, kept = in_own_process(called.about, "word")
        assert process != os.getpid() and kept == ["word"]
        assert arguments == ["reprt", "train", "a.toml"]
    assert not called.KEPT


def test_what_a_call_raises_comes_back():
    with pytest.raises(ArithmeticError, match="^no sense$"):
        in_own_process(called.complain, "sense")
    with pytest.raises(Terminated):
        in_own_process(called.be_asked_to_end)


def test_a_process_that_is_lost_is_an_error_that_says_so():
    with pytest.raises(ChildProcessError, match="was lost, .* The same command"):
        in_own_process(called.be_killed)


def until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(process):
    try:
        return ") Z" not in Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_process_ends_with_its_caller(tmp_path, end):
    note, script = tmp_path / "process", tmp_path / "reprt"
    script.write_text(CALLER.format(path=sys.path, note=str(note)))
    caller = subprocess.Popen([sys.executable, script], stderr=subprocess.DEVNULL)
    until(lambda: note.exists() and note.read_text())
    caller.send_signal(end)
    caller.wait()
    until(lambda: not is_running(note.read_text()))
