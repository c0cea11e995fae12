"""Where a training step goes, now and at an earlier commit: numbers and a picture.

    git worktree add BEFORE e762af1f
    python profile_step.py BEFORE --out experiments/results/benchmark/commits

Every model is profiled by TensorFlow in a process of its own, one operation after the
other, so that times add up. `profile.json` has the means over a few batches of the
fastest of three rounds, in milliseconds a step; `docs/step_profile.svg` shows them.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
ROUNDS = 3
MODELS = ("repe", "repe-causal", "baseline")
# What operations do, by the prefixes of their names; the rest works by element.
KINDS = {
    "products of all tokens": ("MklMatMul", "MklNativeFusedMatMul", "MatMul"),
    "products of attention": ("MklBatchMatMul", "BatchMatMul"),
    "laying tokens out": (
        "Gather",
        "Concat",
        "MklTranspose",
        "Transpose",
        "Slice",
        "Strided",
    ),
    "random numbers": ("StatelessRandom",),
    "masks": ("Select", "GreaterEqual", "Logical", "Bitcast", "Cast"),
}
REST = "sums and products by element"


def profile(model: str, batches=8):
    """Prints the milliseconds of each kind of operation in a step."""
    import tensorflow as tf
    from peers.reprt import Peer
    from peers.settings import BATCH_SIZE, Settings
    from tensorflow.tsl.profiler.protobuf import xplane_pb2
    from text import generate

    tf.config.threading.set_inter_op_parallelism_threads(1)
    text = generate(64 * 2 * batches)
    peer = Peer(Settings(vocab_sizes=text.vocab_sizes, model=model))
    text_batches = []
    for first in range(0, len(text), BATCH_SIZE):
        rows = text.take(range(first, first + BATCH_SIZE))
        text_batches.append(rows.batch())
    for batch in text_batches:
        peer.step(batch)
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            for batch in text_batches[:batches]:
                peer.step(batch)
        [file] = Path(folder).glob("**/*.xplane.pb")
        space = xplane_pb2.XSpace.FromString(file.read_bytes())
    times: collections.Counter = collections.Counter()
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                label = plane.event_metadata[event.metadata_id].name
                name, _, operation = label.rpartition(":")
                # The other events are functions of TensorFlow, or whole graphs.
                is_operation = (
                    name
                    and "::" not in label
                    and operation.strip("_").isalnum()
                    and "Call" not in operation
                )
                if is_operation:
                    times[_kind(operation)] += event.duration_ps / 1e9 / batches
    print(json.dumps(times))


def _kind(operation):
    for kind, prefixes in KINDS.items():
        if operation.lstrip("_").startswith(prefixes):
            return kind
    return REST


def measure(tree: Path, model: str) -> dict:
    """Returns the milliseconds of each kind of operation, of the code in a folder."""
    path = os.pathsep.join([str(tree), str(tree / "experiments" / "benchmark")])
    code = f"import sys; sys.path.append({str(Path(__file__).parent)!r}); "
    code += f"import profile_step; profile_step.profile({model!r})"
    process = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(process.stdout.splitlines()[-1])


def _total(times: dict) -> float:
    return sum(times.values())


def draw(results: dict, path: Path):
    """Draws a bar for each model before and now."""
    import matplotlib
    from matplotlib.figure import Figure

    # The same numbers make the same file.
    matplotlib.rcParams["svg.hashsalt"] = "reprt"
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.subplots()
    labels, steps = [], []
    for model, trees in results["steps"].items():
        for name in ("before", "now"):
            labels.append(f"{model}, {name}")
            steps.append(trees[name])
    left = np.zeros(len(labels))
    for kind in (*KINDS, REST):
        widths = np.array([times.get(kind, 0) for times in steps])
        axes.barh(labels, widths, left=left, label=kind)
        left = left + widths
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds of a training step, one operation at a time")
    axes.legend(loc="lower left", fontsize="small")
    figure.savefig(path, metadata={"Date": None, "Creator": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/profile"))
    options = parser.parse_args()
    from reprt_lab.provenance import provenance

    options.out.mkdir(parents=True, exist_ok=True)
    facts = provenance().as_table() | {"load": os.getloadavg()[0]}
    results = {"provenance": facts, "steps": {}}
    trees = {"before": options.before.resolve(), "now": ROOT}
    for model in MODELS:
        rounds = collections.defaultdict(list)
        for _ in range(ROUNDS):
            for name, tree in trees.items():
                rounds[name].append(measure(tree, model))
        # Other work on the machine only adds to times.
        results["steps"][model] = {
            name: min(rounds[name], key=_total) for name in trees
        }
    text = json.dumps(results, indent=1)
    (options.out / "profile.json").write_text(text + "\n")
    draw(results, ROOT / "docs" / "step_profile.svg")


if __name__ == "__main__":
    main()
