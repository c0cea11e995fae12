"""What makes a number traceable."""

import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import keras

from reprt import __version__
from reprt.cores import usable_cores
from reprt_lab.records import Start

PACKAGES = (
    "keras tensorflow tensorflow-text sentencepiece jax numpy sacrebleu".split()
)


def provenance(
    devices: Sequence[str] = (),
    accelerators: Sequence[str] = (),
) -> Start:
    """Returns when, how, on which devices and with what something came about."""
    versions: dict[str, str | None] = {"reprt": __version__}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    return Start(
        time=time.strftime("%Y-%m-%d %H:%M:%S %z"),
        command=shlex.join(["reprt", *sys.argv[1:]]),
        commit=_commit(),
        hardware=", ".join([_hardware(), *accelerators]),
        backend=keras.backend.backend(),
        python=platform.python_version(),
        versions=versions,
        devices=list(devices),
    )


def _commit() -> str | None:
    """The commit of the code that runs, with a + if it has been changed since."""
    file = Path(__file__)

    def git(*arguments):
        command = ["git", "-C", str(file.parent), *arguments]
        return subprocess.check_output(
            command,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    try:
        # A package installed within someone's checkout is none of its files.
        git("ls-files", "--error-unmatch", file.name)
        commit = git("rev-parse", "--short=12", "HEAD").strip()
        changed = git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{commit}+" if changed else commit


def _hardware() -> str:
    file = Path("/proc/cpuinfo")
    text = file.read_text() if file.exists() else ""
    match = re.search(r"^model name\s*: (.*)", text, re.MULTILINE)
    model = match[1] if match else platform.processor() or platform.machine()
    cores, usable = os.cpu_count(), usable_cores()
    if usable != cores:
        return f"{model}, {usable:g} of {cores} cores"
    return f"{model}, {cores} cores"
