"""One run over several workers: two processes, with a strategy between them."""

import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest
import tiny_run
from elsewhere import until

from reprt.training.workers import is_chief, several_workers
from reprt_lab.command import main
from reprt_lab.folder import RunFolder

EPOCHS = 10


def free_ports(count):
    servers = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in servers]
    for server in servers:
        server.close()
    return ports


@pytest.fixture
def start(tmp_path, tmp_path_factory, monkeypatch):
    """A function that starts two workers on one run and returns them."""
    base = tmp_path_factory.getbasetemp()
    folder, processes = tiny_run.trained_experiment(base), []
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(tiny_run.RECIPE.replace("size = 33", "size = 2"))
    paths = [str(tiny_run.REPOSITORY), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("REPRT_CACHE", str(tiny_run.cache(base)))

    def start(*options, second_options=()):
        second_options = list(second_options)
        cluster = {"worker": [f"localhost:{port}" for port in free_ports(2)]}
        for index in range(2):
            config = {
                "cluster": cluster,
                "task": {"type": "worker", "index": index},
            }
            command = [sys.executable, "-m", "reprt_lab", "train", str(recipe)]
            command += ["--text", str(folder / "text")]
            command += ["--out", str(tmp_path / "out"), "--only", "repe"]
            command += [*options, *(second_options * index)]
            environment = {
                **os.environ,
                "TF_CONFIG": json.dumps(config),
                "PYTHONPATH": os.pathsep.join(paths),
            }
            with open(tmp_path / f"{index}.log", "w") as log:
                process = subprocess.Popen(
                    command, env=environment, stdout=log, stderr=log
                )
            processes.append(process)
        return processes[-2:]

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.long
def test_two_workers_train_as_one_and_go_on_after_either_was_killed(
    start, tmp_path
):
    options = [
        "--set",
        f"training.epochs={EPOCHS}",
        "--set",
        "models.repe.dropout=0.0",
    ]
    # Slow enough that rounding does not grow.
    options += ["--set", "schedule.warmup_steps=4000"]
    run, log = RunFolder(tmp_path / "out" / "repe"), tmp_path / "0.log"
    for name, epoch in (("the chief", 2), ("another", 5)):
        workers = start(*options)
        message = f"epoch {epoch}/{EPOCHS}, training"
        until(lambda: message in log.read_text(), workers[0], log, seconds=240)
        index = 0 if name == "the chief" else 1
        workers[index].send_signal(signal.SIGKILL)
        assert workers[1 - index].wait(200) == 2
        message = "Another worker was lost. Start all workers again"
        assert message in (tmp_path / f"{1 - index}.log").read_text(), name
        epochs = len(run.log())
        assert epoch <= epochs < EPOCHS

    # The same commands go on.
    assert [worker.wait(240) for worker in start(*options)] == [0, 0]
    rows = run.log()
    assert len(rows) == EPOCHS
    # Written only by the chief.
    starts = run.manifest().starts
    assert [len(record.devices) for record in starts] == [2, 2, 2]
    match = re.search(r"from epoch (\d+), step", log.read_text())
    assert int(match[1]) == epochs + 1

    # And a process by itself comes to the same losses.
    folder = tmp_path / "alone"
    arguments = ["train", str(tmp_path / "tiny.toml"), "--out", str(folder)]
    text = run.settings().text.source
    assert main([*arguments, "--text", text, "--only", "repe", *options]) == 0
    for row, expected in zip(
        rows, RunFolder(folder / "repe").log(), strict=True
    ):
        for column in ("train_loss", "val_loss_per_token"):
            assert row[column] == pytest.approx(expected[column], rel=1e-3)


CHIEF_AND_WORKER = '{"chief": ["a:1"], "worker": ["b:1"]}'
WORKERS = '{"worker": ["a:1", "b:1"]}'


@pytest.mark.parametrize(
    "cluster, task, has_several, chief",
    [
        (None, None, False, True),
        ('{"worker": ["a:1"]}', ("worker", 0), False, True),
        (WORKERS, ("worker", 0), True, True),
        (WORKERS, ("worker", 1), True, False),
        (CHIEF_AND_WORKER, ("chief", 0), True, True),
        (CHIEF_AND_WORKER, ("worker", 0), True, False),
    ],
)
def test_one_of_the_workers_is_the_chief(
    monkeypatch, cluster, task, has_several, chief
):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    if cluster:
        kind, index = task
        task = f'{{"type": "{kind}", "index": {index}}}'
        config = f'{{"cluster": {cluster}, "task": {task}}}'
        monkeypatch.setenv("TF_CONFIG", config)
    assert several_workers() == has_several and is_chief() == chief


@pytest.mark.parametrize(
    "config, expected",
    [
        ("[]", "an object"),
        ("3", "an object"),
        ('{"cluster": 3}', "cluster Input should be"),
        ('{"cluster": ["a:1", "b:1"]}', "cluster Input should be"),
        ('{"cluster": {"worker": "a:1"}}', "cluster.worker Input should be"),
        ('{"cluster": {"worker": [1, 2]}}', "cluster.worker.0 Input should be"),
        (f'{{"cluster": {WORKERS}}}', "there is no task"),
        (f'{{"cluster": {WORKERS}, "task": []}}', "task Input should be"),
        (
            f'{{"cluster": {WORKERS}, "task": {{"type": "worker", "index": 2}}}}',
            "the task has no address",
        ),
        (
            f'{{"cluster": {WORKERS}, "task": {{"type": "ps", "index": 0}}}}',
            "the task has no address",
        ),
        ("{worker", "Invalid JSON"),
    ],
)
def test_what_names_no_cluster_is_refused(monkeypatch, config, expected):
    monkeypatch.setenv("TF_CONFIG", config)
    for function in (several_workers, is_chief):
        with pytest.raises(ValueError, match=expected) as error:
            function()
        assert config in str(error.value) and "\n" not in str(error.value)


@pytest.mark.long
def test_workers_that_would_not_do_the_same_are_stopped(start, tmp_path):
    chief, worker = start(second_options=["--set", "batching.size=4"])
    assert (chief.wait(240), worker.wait(240)) == (2, 2)
    for index in range(2):
        log = (tmp_path / f"{index}.log").read_text()
        assert "The workers do not have the same settings" in log
