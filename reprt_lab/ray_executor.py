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
from reprt_lab.job import train_with_pages, write_page_on
from reprt_lab.plan import make_plan
from reprt_lab.recipe import Recipe
from reprt_lab.work import CorpusRuns, find_work

# How often a run begins again whose process was lost, each time from its last
# checkpoint.
RETRIES = 10
# Workers get the variables of the environment that begin so.
FORWARDED_PREFIXES = ("JAX_", "KERAS_", "REPRT_", "TF_", "TFDS_", "XLA_")


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
    progress = Progress()
    work = []
    for part in find_work(recipe, only, out, progress):
        # Workers have another working directory.
        path = part.folder.resolve()
        work.append(dataclasses.replace(part, folder=path))
    # TensorFlow would take all cores for each run.
    environment = {"TF_NUM_INTRAOP_THREADS": str(cpus)}
    for name, value in os.environ.items():
        if name.startswith(FORWARDED_PREFIXES):
            environment.setdefault(name, value)
    handler = signal.getsignal(signal.SIGTERM)
    ray.init(
        address=address,
        runtime_env={"env_vars": environment},
        include_dashboard=False if address == "local" else None,
        logging_level=logging.WARNING,
    )
    # Ray has taken the signal for itself.
    signal.signal(signal.SIGTERM, handler)
    try:
        gpus = 1 if ray.cluster_resources().get("GPU") else 0
        # Each task has a process of its own, whose memory goes with it. The plan has
        # one too: its models hold on to a device.
        remote = ray.remote(
            max_calls=1,
            max_retries=RETRIES,
            num_cpus=cpus,
            num_gpus=gpus,
        )
        # Workers may be on machines that share only the folder of the results.
        work = [
            dataclasses.replace(part, corpus=part.corpus.in_memory())
            for part in work
        ]
        progress.say(ray.get(remote(make_plan).remote(work)))
        train = remote(_train_one)
        names = {}
        for part in work:
            text = ray.put(part)
            for run, folder in zip(part.runs, part.folders):
                another = folder.holds_another(run, part.corpus)
                # Another run is refused where it would be trained.
                if another or not folder.is_finished(run):
                    task = train.remote(sys.argv, text, run)
                    names[task] = f"{part.corpus.pair} {run.name}"
        failures = _failures(ray, names, progress)
    finally:
        ray.shutdown()
    if failures:
        raise ChildProcessError(
            f"These runs failed: {'; '.join(failures)}. The same command tries them "
            "again, and keeps what has finished."
        )
    for part in work:
        page = write_page_on(part)
    return page


def _train_one(arguments: list[str], work: CorpusRuns, run: RunSettings):
    """What a worker does, for the command whose arguments these are."""
    sys.argv = arguments
    portion = dataclasses.replace(work, runs=[run])
    for error in train_with_pages(portion):
        raise error
    if portion.folders[0].metrics() is None:
        raise ValueError("another process works on it")


def _failures(ray, names, progress) -> list[str]:
    """Waits for all runs; returns those that failed, and why."""
    failures = []
    pending = list(names)
    while pending:
        (task,), pending = ray.wait(pending)
        name = names[task]
        try:
            ray.get(task)
            progress.say(f"{name}: finished; {len(pending)} runs are left")
        except ray.exceptions.RayError as error:
            # The lines before the last are a worker's traceback.
            reason = str(error).strip().splitlines()[-1]
            failures.append(f"{name} ({reason})")
            progress.say(f"{name}: failed: {reason}")
    return failures
