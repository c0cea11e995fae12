"""Run folders for tests that need some, made once for all of them."""

import fcntl
import functools
import os
import pathlib
import shutil

import eager
import naive
import pytest
import tiny

from reprt_lab.command import main

REPOSITORY = pathlib.Path(__file__).parents[1]
MODEL = "\n".join(f"{name} = {size}" for name, size in tiny.TINY.items())
TABLES = """
[vocabulary]
size = 150
# All of the text in a batch: an epoch is one step.
[batching]
size = 33
[schedule]
warmup_steps = 4
[training]
epochs = 2
"""
RECIPE = f"""
{TABLES}
[models.baseline]
preset = "baseline"
{MODEL}
[models.repe]
preset = "repe"
{MODEL}
"""


def arguments(folder, *options):
    """What `reprt train` is to be given for the recipe and the text of a folder."""
    text, out = str(folder / "text"), str(folder / "out")
    return [str(folder / "tiny.toml"), "--text", text, "--out", out, *options]


def cache(base):
    """Where the text's vocabularies are kept."""
    return shared_folder(base) / "cache"


def shared_folder(base):
    """The folder of what is trained once, for all processes of the tests."""
    parent = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return parent / "tiny-run"


def write_corpus(folder, **counts):
    """Writes so many generated sentences under `text`, laid out as TED's are."""
    corpus = tiny.corpus(**counts)
    pair_folder = folder / "text" / "datasets" / "pt_to_en"
    pair_folder.mkdir(parents=True)
    for split in ("train", "dev", "test"):
        sentences = getattr(corpus, split)
        for side, lines in (("pt", sentences.source), ("en", sentences.target)):
            (pair_folder / f"{side}.{split}").write_text(
                "\n".join(lines) + "\n", "utf-8"
            )


@functools.cache
def trained_experiment(base):
    """The folder of a recipe, of its text, and of what the command made of them.

    No test changes it. The base is `tmp_path_factory.getbasetemp()`.
    """
    folder = shared_folder(base)
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            _train(base, folder)
            (folder / "done").touch()
    return folder


def _train(base, folder):
    write_corpus(folder, train=33, dev=5, test=6)
    (folder / "tiny.toml").write_text(RECIPE)
    with eager.training(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("reprt.training.trainer.CALIBRATION_STEPS", 1)
        patch.setenv("REPRT_CACHE", str(cache(base)))
        assert main(["train", *arguments(folder)]) == 0


@functools.cache
def randomized_run(base, name):
    """A copy of a run whose translations differ from sentence to sentence."""
    from reprt.models.registry import load_model
    from reprt_lab.folder import RunFolder

    run = base / "randomized-run" / name
    shutil.copytree(trained_experiment(base) / "out" / name, run)
    folder = RunFolder(run)
    folder.save_model(
        naive.randomize(load_model(folder.model), seed=1, end=1.0)
    )
    return run
