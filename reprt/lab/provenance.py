"""What makes a number traceable."""

import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from reprt import __version__
from reprt.lab.records import Start

PACKAGES = (
    "keras",
    "tensorflow",
    "tensorflow-text",
    "sentencepiece",
    "jax",
    "numpy",
    "sacrebleu",
)


def command() -> str:
    """Returns the command line of this process."""
    return shlex.join(["reprt", *sys.argv[1:]])


def provenance(
    asked_by: str | None = None,
    devices: Sequence[str] = (),
    accelerators: Sequence[str] = (),
) -> Start:
    """Returns when, how and with what something came about.

    Args:
        asked_by: the command; None for this process's.
        devices: one for each replica of a training.
        accelerators: the names of the GPUs among them.
    """
    import keras

    return Start(
        time=time.strftime("%Y-%m-%d %H:%M:%S %z"),
        command=command() if asked_by is None else asked_by,
        commit=_commit(),
        hardware=", ".join([_hardware(), *accelerators]),
        backend=keras.backend.backend(),
        python=platform.python_version(),
        versions={
            "reprt": __version__,
            **{name: _version(name) for name in PACKAGES},
        },
        devices=list(devices),
    )


def _version(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _commit():
    """The commit of the code that runs, with a + if it has been changed since."""
    here = Path(__file__)
    git = ["git", "-C", str(here.parent)]
    try:
        # A package installed within someone's checkout is none of its files.
        subprocess.check_output(
            [*git, "ls-files", "--error-unmatch", here.name], stderr=subprocess.DEVNULL
        )
        commit = subprocess.check_output(
            [*git, "rev-parse", "--short=12", "HEAD"], stderr=subprocess.DEVNULL
        )
        changed = subprocess.check_output(
            [*git, "status", "--porcelain", "--untracked-files=no"],
            stderr=subprocess.DEVNULL,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit.decode().strip() + ("+" if changed else "")


def _hardware():
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} cores"
