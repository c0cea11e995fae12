"""How busy processor and GPUs are while models are trained, sampled to a file."""

import contextlib
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

GPUS = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]


@contextlib.contextmanager
def sampled(path: Path, seconds: float = 10.0) -> Iterator[None]:
    """Adds rows to a table: the time, the cores that this process uses, GPUs in %."""
    over = threading.Event()
    sampler = threading.Thread(target=_sample, args=(path, seconds, over), daemon=True)
    sampler.start()
    try:
        yield
    finally:
        over.set()
        sampler.join()


def _sample(path, seconds, over):
    with contextlib.suppress(OSError):  # a full disk is the training's to report
        if not path.exists():
            path.write_text("time,cores,gpus\n")
        begun, used = time.monotonic(), sum(os.times()[:4])
        while not over.wait(seconds):
            before, begun = begun, time.monotonic()
            earlier, used = used, sum(os.times()[:4])
            cores = (used - earlier) / (begun - before)
            with path.open("a") as table:
                now = time.strftime("%Y-%m-%d %H:%M:%S")
                table.write(f"{now},{cores:.2f},{' '.join(_gpus())}\n")


def _gpus() -> list[str]:
    if not shutil.which(GPUS[0]):
        return []
    return subprocess.run(GPUS, capture_output=True, text=True).stdout.split()
