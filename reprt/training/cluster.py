"""Many runs at once, one a device, on this machine or on many: Ray hands them out.

Ray is what does it because one mechanism covers both: it gives each run a device of its
own, on one machine as on a hundred, starts it again where a process or machine is lost,
and runs by itself, within Slurm or in a cloud. Runs share nothing but the folder of the
results, which has to be the same on all machines.
"""

import dataclasses
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from reprt.training.job import train_work, write_page
from reprt.training.plan import make_plan
from reprt.training.progress import Progress
from reprt.training.recipe import Recipe
from reprt.training.run_folder import RunFolder
from reprt.training.work import Work, find_work

HERE = "here"
RETRIES = 10  # of a run whose process was lost; each goes on from its last checkpoint
PASSED_ON = ("KERAS_", "REPRT_", "TF_", "TFDS_", "XLA_")


class RunsFailed(ChildProcessError):
    """Some runs of a job did not end; the others did."""


def run_on_ray(
    recipe: Recipe,
    only: Sequence[str] = (),
    out: Path | None = None,
    address: str = HERE,
    cpus: int = 1,
) -> Path:
    """Trains a recipe's runs as `run_job` does, but several at once.

    Args:
        recipe, only, out: as in `run_job`.
        address: of a running Ray cluster; `"auto"` for the one that this machine is
            part of, `"here"` to start one here for this job.
        cpus: cores of each run. A run has a GPU too, if there are any.

    Returns:
        The path of the page.

    Raises:
        ImportError: without Ray.
        RunsFailed: if runs failed, once the others have ended.
    """
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            "Training on Ray needs it: pip install 'reprt[train,cluster]'. Importing "
            f"it failed with: {error}"
        ) from error
    progress = Progress()
    work = find_work(recipe, only, out, progress)
    progress.say(str(make_plan(work, progress)))
    environment = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(PASSED_ON)
    }
    # TensorFlow would take all cores for each run.
    environment["TF_NUM_INTRAOP_THREADS"] = str(cpus)
    ray.init(
        address=None if address == HERE else address,
        runtime_env={"env_vars": environment},
        include_dashboard=False,
        logging_level=logging.WARNING,
    )
    try:
        gpus = 1 if ray.cluster_resources().get("GPU") else 0
        # Each run has a process of its own, whose memory goes with it.
        remote = ray.remote(
            num_cpus=cpus, num_gpus=gpus, max_calls=1, max_retries=RETRIES
        )(_train_one)
        names = {}
        for each in work:
            each = dataclasses.replace(each, folder=each.folder.resolve())
            for run in each.runs:
                one = dataclasses.replace(each, runs=[run])
                names[remote.remote(one, recipe)] = f"{each.corpus.pair} {run.name}"
        failed = _results(ray, names, progress)
    finally:
        ray.shutdown()
    if failed:
        raise RunsFailed(
            f"These runs failed: {'; '.join(failed)}. The same command tries them "
            "again, and leaves alone what has finished."
        )
    for each in work:
        page = write_page(recipe.page, each.folder)
    return page


def _train_one(work: Work, recipe: Recipe):
    """What a worker does; `work` has a single run."""
    train_work(work, recipe, Progress())
    (run,) = work.runs
    if RunFolder(work.folder / run.name).metrics() is None:
        raise ArithmeticError("it diverged, or another process works on it")


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
            # A worker's own error comes with its traceback; the last line is the error.
            reason = str(error).strip().splitlines()[-1]
            failed.append(f"{name} ({reason})")
            progress.say(f"{name}: failed: {reason}")
    return failed
