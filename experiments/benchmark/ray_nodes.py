"""Times twelve small runs on clusters of Ray with one node or more.

    .venv/bin/python experiments/benchmark/ray_nodes.py 1 2 3

The nodes are processes of this machine, with one core each: they show what Ray costs,
and how runs are shared out. More nodes than the machine has cores bring nothing.
"""

import os
import subprocess
import sys
import tempfile
import time

from ray.cluster_utils import Cluster

RUNS = 12
SETTINGS = [
    "training.steps=60",
    "schedule.warmup_steps=10",
    "training.bleu=false",
    f"trials.seeds={list(range(RUNS))}",
]
TRAIN = [sys.executable, "-m", "reprt_lab", "train", "pt_to_en_embedded"]
TRAIN += ["--only", "repe-causal"]
for setting in SETTINGS:
    TRAIN += ["--set", setting]


def seconds_on(nodes: int) -> float:
    """Returns the seconds of the whole command on so many nodes."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        for _ in range(nodes - 1):
            cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        with tempfile.TemporaryDirectory() as out:
            command = [*TRAIN, "--ray", cluster.address, "--out", out]
            start = time.monotonic()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            return time.monotonic() - start
    finally:
        cluster.shutdown()


def main(counts: list[int]):
    for nodes in counts:
        seconds = seconds_on(nodes)
        print(
            f"{RUNS} runs, {nodes} node(s), {os.cpu_count()} cores: "
            f"{seconds:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main([int(count) for count in sys.argv[1:]])
