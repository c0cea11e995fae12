"""What `test_processes.py` calls in other processes; it loads fast."""

import os
import signal
import sys
import time
from pathlib import Path

from reprt.termination import Terminated

KEPT: list = []


def about(word):
    KEPT.append(word)
    return os.getpid(), sys.argv, list(KEPT)


def complain(word):
    raise ArithmeticError(f"no {word}")


def be_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def be_asked_to_end():
    os.kill(os.getpid(), signal.SIGTERM)


def note_and_wait(path):
    Path(path).write_text(str(os.getpid()))
    time.sleep(60)


def note_and_save(path):
    """Waits, and takes its time to end when it is asked to."""
    try:
        note_and_wait(path)
    except Terminated:
        time.sleep(0.5)
        Path(f"{path}-saved").touch()
        raise
