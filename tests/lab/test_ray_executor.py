"""Many runs at once: workers of Ray that are killed, and a node that is lost."""

import contextlib
import os
import re
import shlex
import subprocess
import sys

import psutil
import pytest
import tiny_run
from elsewhere import until
from ray.cluster_utils import Cluster

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


def raylet(node):
    """The process that is a node of a cluster."""
    return node.all_processes["raylet"][0].process.pid


def workers(pid):
    """The processes that train under another, by Ray's name for them."""
    children = psutil.Process(pid).children(recursive=True)
    # Which passes over processes that have ended since.
    processes = []
    for process in psutil.process_iter(["cmdline"]):
        command = " ".join(process.info["cmdline"] or ())
        if process in children and "ray::_train_one" in command:
            processes.append(process)
    return processes


@pytest.fixture
def start_training(tmp_path, tmp_path_factory, monkeypatch):
    """A context in which the command trains a recipe's runs, on a cluster of Ray."""
    base = tmp_path_factory.getbasetemp()
    text = tiny_run.trained_experiment(base) / "text"
    (tmp_path / "tiny.toml").write_text(RECIPE)
    monkeypatch.setenv("REPRT_CACHE", str(tiny_run.cache(base)))
    # Other tests would come first.
    monkeypatch.setenv("RAY_worker_niceness", "0")
    path = [str(tiny_run.REPOSITORY), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
    command = [sys.executable, "-m", "reprt_lab", "train"]
    command += [str(tmp_path / "tiny.toml"), "--text", str(text)]
    command += ["--out", str(tmp_path / "out"), "--only", "repe"]
    command += ["--set", f"training.epochs={EPOCHS}"]

    @contextlib.contextmanager
    def start(address):
        with open(tmp_path / "log", "w") as file:
            driver = subprocess.Popen(
                [*command, "--ray", address], stdout=file, stderr=file
            )
        try:
            yield driver
        finally:
            driver.kill()
            driver.wait()

    return start


def wait_for_checkpoints(driver, tmp_path, count):
    """Waits until so many runs can go on where they are."""
    pattern = "repe.*/checkpoints/step-*.npz"

    def are_written():
        folders = {path.parent for path in (tmp_path / "out").glob(pattern)}
        return len(folders) >= count

    until(are_written, driver, tmp_path / "log", seconds=300)


def assert_finished(driver, tmp_path):
    """Waits for the end of the command, and returns each run's starts."""
    text = tmp_path / "log"
    assert driver.wait(300) == 0, text.read_text()
    text = text.read_text()
    assert "Together" in text and text.count("finished; ") == 2
    runs = [RunFolder(tmp_path / "out" / f"repe.{seed}") for seed in (0, 1)]
    assert all(run.metrics().epochs == EPOCHS for run in runs)
    # What was lost began again, and not from the beginning.
    starts = [run.manifest().starts for run in runs]
    assert max(map(len, starts)) >= 2
    epochs = re.findall(r"from epoch (\d+), step", text)
    assert max(map(int, epochs)) > 1
    assert (tmp_path / "out" / "comparison.md").exists()
    return starts


@pytest.mark.long
def test_a_killed_worker_goes_on(tmp_path, start_training):
    with start_training("local") as driver:
        wait_for_checkpoints(driver, tmp_path, 1)
        processes = workers(driver.pid)
        assert processes
        for process in processes:
            process.kill()
        starts = assert_finished(driver, tmp_path)
    # It is the user's command, and not Ray's.
    for start in sum(starts, []):
        assert start.command == shlex.join(["reprt", *driver.args[3:]])


@pytest.mark.long
def test_runs_of_a_lost_node_go_on_elsewhere(tmp_path, start_training):
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
        cluster.wait_for_nodes()
        with start_training(cluster.address) as driver:
            wait_for_checkpoints(driver, tmp_path, 2)
            # A node has one of the two runs, or none.
            parents = {process.ppid() for process in workers(os.getpid())}
            lost_node = next(node for node in nodes if raylet(node) in parents)
            cluster.remove_node(lost_node, allow_graceful=False)
            assert_finished(driver, tmp_path)
    finally:
        cluster.shutdown()


def test_what_ray_needs_is_told(monkeypatch, tmp_path):
    from reprt_lab.ray_executor import run_on_ray
    from reprt_lab.recipe import load_recipe

    (tmp_path / "tiny.toml").write_text(tiny_run.RECIPE)
    recipe = load_recipe(tmp_path / "tiny.toml")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[train,cluster\]'"):
        run_on_ray(recipe, [], tmp_path, "local", 1)
