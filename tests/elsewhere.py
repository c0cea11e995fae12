"""Scripts in a process of their own, which chooses its backend or lacks a package."""

import subprocess
import sys


def python(script, *arguments, **options):
    """The last line that a script prints; an error shows what it says."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().rpartition("\n")[2]
