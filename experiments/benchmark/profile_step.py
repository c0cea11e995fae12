"""Where the time of our training step goes, by TensorFlow's profiler.

    python profile_step.py baseline [--fit]

Each kind of operation has its share of the time that threads spend in operations. A
page fault is a page of 4 KiB that the process gets from the system.
"""

import collections
import re
import resource
import sys
import tempfile
from pathlib import Path

import tensorflow as tf
from pages import table
from peers import reprt, reprt_by_fit
from peers.settings import BATCH_SIZE, Settings
from tensorflow.tsl.profiler.protobuf import xplane_pb2
from text import generate

KINDS = {
    "products of matrices": "MatMul|BatchMatMul|FusedMatMul|Einsum",
    "laying sentences out, and back": "Gather|Concat|Transpose|Slice|Scatter|Split|Pack"
    "|UnsortedSegmentSum|Unpack|Pad|Where|Tile|BroadcastTo",
    "dropout and masks": "StatelessRandom|Select|Less|Bitwise|Logical|Equal|NotEqual"
    "|Greater",
    "softmax and loss": "Softmax|Exp|ArgMax|Log|Max",
    "element by element, and sums: optimizer, biases, norms": "",
}
# Their time is that of the operations within, or of the wait for a batch.
CALLS = ("PartitionedCall", "StatefulPartitionedCall", "While", "PyFunc")
WARM, STEPS = 8, 6


def kind(operation: str) -> str:
    name = operation.removeprefix("_Mkl").removeprefix("Native")
    return next(found for found, names in KINDS.items() if re.match(names, name))


def times(folder: Path):
    """Yields the operations that TensorFlow's profiler wrote, each with its seconds."""
    [file] = folder.rglob("*.xplane.pb")
    for plane in xplane_pb2.XSpace.FromString(file.read_bytes()).planes:
        for event in (event for line in plane.lines for event in line.events):
            # An operation's event is NAME:TYPE#details.
            name = plane.event_metadata[event.metadata_id].name
            operation = name.split("#")[0].rpartition(":")[2]
            known = operation.startswith("_Mkl") or hasattr(tf.raw_ops, operation)
            of_operation = ":" in name and "::" not in name
            if of_operation and known and operation not in CALLS:
                yield operation, event.duration_ps / 1e12


def main(model, fit=None):
    text = generate(BATCH_SIZE * (WARM + STEPS)).shuffled(0)
    peer = (reprt_by_fit if fit else reprt).Peer(
        Settings(model=model, vocab_sizes=text.vocab_sizes)
    )
    starts = range(0, len(text), BATCH_SIZE)
    batches = [text.take(range(n, n + BATCH_SIZE)).batch() for n in starts]
    faults = []
    for batch in batches[:WARM]:
        peer.step(batch)
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
    shares = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2)
        with tf.profiler.experimental.Profile(folder, options):
            for batch in batches[WARM:]:
                peer.step(batch)
        for operation, seconds in times(Path(folder)):
            shares[kind(operation)] += seconds
    columns = {"share of the time": lambda seconds: f"{seconds / shares.total():.0%}"}
    print(table(columns, dict(shares.most_common()), "operations"))
    print(f"\npage faults: {(faults[-1] - faults[3]) / (WARM - 4):,.0f} a step")


if __name__ == "__main__":
    main(*sys.argv[1:])
