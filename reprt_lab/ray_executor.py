"""Many runs at once, one a device, on this machine or on many: Ray hands them out.

Ray gives each run its own device, and restarts a run whose process or machine is lost.
Runs share only the folder of the results, which has to be the same on all machines.
"""

import dataclasses
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from reprt.imports import load_extra
from reprt.progress import Progress
from reprt.training.settings import RunSettings
from reprt.training.workers import several_workers
from reprt_lab.folder import RunFolder
from reprt_lab.plan import make_plan
from reprt_lab.recipe import Recipe
from reprt_lab.texts import CorpusRuns, find_runs
from reprt_lab.train import train_runs

RETRIES = (
    10  # of a run whose process was lost; each goes on from its last checkpoint
)
PASSED_ON = ("JAX_", "KERAS_", "REPRT_", "TF_", "TFDS_", "XLA_")


def run_on_ray(
    recipe: Recipe,
    only: Sequence[str],
    out: Path | None,
    address: str,
    cpus: int,
) -> Path:
    """Trains a recipe's runs as `run_job` does, but several at once.

    The address is that of a running Ray cluster, `"auto"` for this machine's, or
    `"local"` to start one for this job. A run has `cpus` cores, and a GPU if there are
    any.
    """
    ray = load_extra("ray", "--ray needs Ray: pip install '.[train,cluster]'.")
    if several_workers():
        raise ValueError(
            "Expected no TF_CONFIG with --ray: the runs would take each other for the "
            "workers of one run, and wait. Received both."
        )
    progress = Progress()
    work = [
        dataclasses.replace(each, folder=each.folder.resolve())
        for each in find_runs(recipe, only, out, progress)
    ]
    environment = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(PASSED_ON)
    }
    # TensorFlow would take all cores for each run.
    environment["TF_NUM_INTRAOP_THREADS"] = str(cpus)
    usual = signal.getsignal(signal.SIGTERM)
    ray.init(
        address=address,
        runtime_env={"env_vars": environment},
        include_dashboard=False if address == "local" else None,
        logging_level=logging.WARNING,
    )
    signal.signal(signal.SIGTERM, usual)  # which Ray has taken for itself
    try:
        gpus = 1 if ray.cluster_resources().get("GPU") else 0
        # Each task has a process of its own, whose memory goes with it. The plan has
        # one too: its models hold on to a device.
        remote = ray.remote(
            max_calls=1, max_retries=RETRIES, num_cpus=cpus, num_gpus=gpus
        )
        progress.say(ray.get(remote(make_plan).remote(work)))
        train, names = remote(_train_one), {}
        for each in work:
            text = ray.put(each)
            for run in each.runs:
                folder = RunFolder(each.folder / run.name)
                # Another one is refused where it would be trained.
                if folder.metrics() is None or folder.holds_another(
                    run, each.corpus
                ):
                    task = train.remote(sys.argv, text, run)
                    names[task] = f"{each.corpus.pair} {run.name}"
        failed = _results(ray, names, progress)
    finally:
        ray.shutdown()
    if failed:
        raise ChildProcessError(
            f"These runs failed: {'; '.join(failed)}. The same command tries them "
            "again, and keeps what has finished."
        )
    return [each.write_page() for each in work][-1]


def _train_one(arguments: list[str], work: CorpusRuns, run: RunSettings):
    """What a worker does, for the command whose arguments these are."""
    sys.argv = arguments
    for error in train_runs(dataclasses.replace(work, runs=[run])):
        raise error
    if RunFolder(work.folder / run.name).metrics() is None:
        raise ValueError("another process works on it")


def _results(ray, names, progress) -> list[str]:
    """Waits for all runs; returns those that failed, and why."""
    failed, pending = [], list(names)
    while pending:
        (done,), pending = ray.wait(pending)
        name = names[done]
        try:
            ray.get(done)
            progress.say(f"{name}: finished; {len(pending)} runs are left")
        except ray.exceptions.RayError as error:
            # The lines before the last are a worker's traceback.
            reason = str(error).strip().splitlines()[-1]
            failed.append(f"{name} ({reason})")
            progress.say(f"{name}: failed: {reason}")
    return failed
