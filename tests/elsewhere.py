"""Scripts in a process of their own, which chooses its backend or lacks a package."""

import subprocess
import sys
import time


def python(script, *arguments, **options):
    """The last line that a script prints; an error shows what it says."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    process = subprocess.run(command, capture_output=True, text=True, **options)
    assert process.returncode == 0, process.stderr
    return process.stdout.strip().rpartition("\n")[2]


def until(condition, process=None, log=None, seconds=60):
    """Waits for what a process is to do, and shows its log if it ends before."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, log and log.read_text()
        assert process is None or process.poll() is None, (
            log and log.read_text()
        )
        time.sleep(0.05)
