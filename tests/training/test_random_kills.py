"""A hundred kills at random moments; after each the same command goes on.

A process that has imported everything, and computed nothing, is copied for each start:
of what is killed, imports would be most. Steps are neither traced nor packed. The gate
leaves this test to `make test-all`, for it takes minutes.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny_run
from test_resume import RECIPE
from tiny import losses

from reprt.lab.folder import RunFolder

KILLS = 100
SCRIPT = """
import json, os, random, signal, sys, time
from pathlib import Path

folder, kills = Path(sys.argv[1]), int(sys.argv[2])
sys.path[:0] = sys.argv[3:]
import matplotlib.figure, matplotlib.backends.backend_agg
import tensorflow as tf
import tensorflow_text
import reprt.lab.train, reprt.lab.pages.report, reprt.training.tensorflow_backend
from reprt.training import trainer
from reprt_command import main
from reprt.models import Transformer

trainer.CALIBRATION_STEPS, Transformer.packed_layout = 1, None


def start(out):
    process = os.fork()
    if process:
        return process
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1), os.dup2(log, 2)
    tf.config.run_functions_eagerly(True)
    arguments = [str(folder / "tiny.toml"), "--text", str(folder / "text")]
    os._exit(main(["train", *arguments, "--out", str(out)]))

def ended(process):
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

assert ended(start(folder / "alone")) == 0
begun = time.monotonic()
assert ended(start(folder / "alone-again")) == 0
usual = time.monotonic() - begun
moments, chains, killed = random.Random(0), 0, 0
while killed < kills:
    out, chains = folder / f"killed-{chains}", chains + 1
    while True:
        process = start(out)
        if killed < kills:
            time.sleep(moments.uniform(0, usual))
        done, status = os.waitpid(process, os.WNOHANG if killed < kills else 0)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            break
        os.kill(process, signal.SIGKILL)
        killed += ended(process) == -signal.SIGKILL
print(json.dumps({"chains": chains, "killed": killed}))
"""


def result(run: Path):
    """What a run ends with, without times: weights, Adam's moments, the log."""
    newest = max(run.glob("checkpoints/step-*.npz"))
    with np.load(newest) as saved:
        arrays = {name: saved[name].tolist() for name in saved.files}
    del arrays["state"]
    files = sorted(path.name for path in run.iterdir())
    return newest.name, arrays, losses(RunFolder(run)), files


@pytest.mark.long
def test_chains_of_kills_at_random_moments_end_with_the_same_bits(tmp_path):
    tiny_run.write_corpus(tmp_path, train=8, dev=2, test=2)
    (tmp_path / "tiny.toml").write_text(RECIPE)
    here = [str(Path(__file__).parents[1]), str(tiny_run.REPOSITORY)]
    finished = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), str(KILLS), *here],
        capture_output=True,
        text=True,
        env={**os.environ, "REPRT_CACHE": str(tmp_path / "cache")},
    )
    log = (tmp_path / "log").read_text()
    assert finished.returncode == 0, finished.stderr + log
    told = json.loads(finished.stdout.splitlines()[-1])
    assert told["killed"] == KILLS
    expected = result(tmp_path / "alone" / "repe")
    for number in range(told["chains"]):
        assert result(tmp_path / f"killed-{number}" / "repe") == expected, number
