"""What stands beside every number: where, when and of what it was measured."""

import datetime
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def provenance() -> dict:
    """Returns the command, commit, date and hardware."""
    return {
        # Without the interpreters' paths, which are nobody else's.
        "command": shlex.join(
            ["python", Path(sys.argv[0]).name, *_public(sys.argv[1:])]
        ),
        "commit": _commit(),
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "hardware": {
            "cpu": _of_system("/proc/cpuinfo", "model name") or platform.processor(),
            "cores": os.cpu_count(),
            "memory": _of_system("/proc/meminfo", "MemTotal"),
            # Of whatever else ran there just before.
            "load": os.getloadavg()[0],
        },
    }


def _public(arguments):
    before = ["", *arguments]
    return [
        argument
        for argument, previous in zip(arguments, before)
        if "--python" not in (argument, previous)
    ]


def _commit():
    """The commit of the code, with a + if it has been changed since."""

    def git(*command):
        return subprocess.check_output(["git", *command], cwd=ROOT, text=True).strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _of_system(path, key):
    if not Path(path).exists():
        return None
    for line in Path(path).read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None
