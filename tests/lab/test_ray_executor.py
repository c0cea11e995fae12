"""Many runs at once: two workers of Ray, one of which is killed."""

import os
import re
import shlex
import subprocess
import sys

import psutil
import pytest
import tiny_run
from elsewhere import until

from reprt_lab.folder import RunFolder

RECIPE = (
    tiny_run.RECIPE.replace("size = 33", "size = 16")
    + """
[trials]
seeds = [0, 1]
"""
)
# A run has more epochs than end between a checkpoint and the kill.
EPOCHS = 16


def workers(driver):
    """The processes that train for a driver, by Ray's name for them."""
    ours = psutil.Process(driver.pid).children(recursive=True)
    # Which passes over processes that have ended since.
    named = [p for p in psutil.process_iter(["cmdline"]) if p in ours]
    return [
        p
        for p in named
        if "ray::_train_one" in " ".join(p.info["cmdline"] or ())
    ]


@pytest.mark.long
def test_a_killed_worker_goes_on(tmp_path, tmp_path_factory, monkeypatch):
    base = tmp_path_factory.getbasetemp()
    text = tiny_run.trained(base) / "text"
    recipe = tmp_path / "tiny.toml"
    out, log = tmp_path / "out", tmp_path / "log"
    recipe.write_text(RECIPE)
    monkeypatch.setenv("REPRT_CACHE", str(tiny_run.cache(base)))
    # Other tests would come first.
    monkeypatch.setenv("RAY_worker_niceness", "0")
    path = [str(tiny_run.REPOSITORY), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
    command = [sys.executable, "-m", "reprt_lab", "train", str(recipe)]
    command += ["--ray", "local"]
    command += ["--text", str(text), "--out", str(out), "--only", "repe"]
    command += ["--set", f"training.epochs={EPOCHS}"]
    with open(log, "w") as file:
        driver = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        runs = [out / f"repe.{seed}" for seed in (0, 1)]
        begun = "repe.*/checkpoints/step-*.npz"
        until(lambda: any(out.glob(begun)), driver, log, seconds=300)
        killed = workers(driver)
        assert killed
        for process in killed:
            process.kill()
        assert driver.wait(300) == 0, log.read_text()
    finally:
        driver.kill()
        driver.wait()
    text = log.read_text()
    assert "Together" in text and text.count("finished; ") == 2
    starts = [RunFolder(run).manifest().starts for run in runs]
    # It is the user's command, and not Ray's.
    for start in sum(starts, []):
        assert start.command == shlex.join(["reprt", *command[3:]])
    assert all(RunFolder(run).metrics().epochs == EPOCHS for run in runs)
    # What was killed began again, and not from the beginning.
    assert max(map(len, starts)) >= 2
    begun = re.findall(r"from epoch (\d+), step", text)
    assert max(map(int, begun)) > 1
    assert (out / "comparison.md").exists()


def test_what_ray_needs_is_told(monkeypatch, tmp_path):
    from reprt_lab.ray_executor import run_on_ray
    from reprt_lab.recipe import load_recipe

    (tmp_path / "tiny.toml").write_text(tiny_run.RECIPE)
    recipe = load_recipe(tmp_path / "tiny.toml")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[train,cluster\]'"):
        run_on_ray(recipe, [], tmp_path, "local", 1)
