"""Where the time of our training step goes, by TensorFlow's profiler.

    python profile_step.py baseline
    python profile_step.py baseline --fit

Each kind of operation has its share of the time that threads spend in operations. A
page fault is a page of 4 KiB that the process gets from the system.
"""

import argparse
import collections
import resource
import tempfile
from pathlib import Path

import tensorflow as tf
from peers.reprt import Peer
from peers.settings import BATCH_SIZE, Settings
from results import table
from tensorflow.tsl.profiler.protobuf import xplane_pb2
from text import generate

KINDS = {
    "products of matrices": ("MatMul", "BatchMatMul", "FusedMatMul", "Einsum"),
    "laying sentences out, and back": (
        *("Gather", "Concat", "Transpose", "Slice", "UnsortedSegmentSum", "Scatter"),
        *("Split", "Pack", "Unpack", "Pad", "Where", "Tile", "BroadcastTo"),
    ),
    "dropout and masks": (
        *("StatelessRandom", "Select", "Less", "Bitwise", "Logical"),
        *("Equal", "NotEqual", "Greater"),
    ),
    "softmax and loss": ("Softmax", "Exp", "ArgMax", "Log", "Max"),
}
# Their time is that of the operations within, or of the wait for a batch.
CALLS = ("PartitionedCall", "StatefulPartitionedCall", "While", "PyFunc")
REST = "element by element, and sums: optimizer, biases, norms"


def kind(operation: str) -> str:
    name = operation.removeprefix("_Mkl").removeprefix("Native")
    for found, prefixes in KINDS.items():
        if name.startswith(prefixes):
            return found
    return REST


def faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def profiled(model: str, fit: bool, warm: int = 8, steps: int = 6):
    """Returns nanoseconds and counts by operation, of all steps, and a step's faults.

    The faults are those of half of the warm steps, without the profiler's own.
    """
    text = generate(BATCH_SIZE * (warm + steps), seed=0)
    variant = "fit" if fit else ""
    peer = Peer(Settings(model=model, vocab_sizes=text.vocab_sizes, variant=variant))
    pairs = text.shuffled(0)
    batches = [
        pairs.take(range(start, start + BATCH_SIZE)).batch()
        for start in range(0, len(pairs), BATCH_SIZE)
    ]
    for number, batch in enumerate(batches[:warm]):
        if number == warm // 2:
            begun = faults()
        peer.step(batch)
    faulted = (faults() - begun) / (warm - warm // 2)
    with tempfile.TemporaryDirectory() as folder:
        options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2)
        with tf.profiler.experimental.Profile(folder, options):
            for batch in batches[warm:]:
                peer.step(batch)
        (file,) = Path(folder).rglob("*.xplane.pb")
        space = xplane_pb2.XSpace.FromString(file.read_bytes())
    times, counts = collections.Counter(), collections.Counter()
    for plane in space.planes:
        for event in (event for line in plane.lines for event in line.events):
            # An operation's event is NAME:TYPE#details.
            name = plane.event_metadata[event.metadata_id].name
            operation = name.split("#")[0].rpartition(":")[2]
            known = operation.startswith("_Mkl") or hasattr(tf.raw_ops, operation)
            of_operation = ":" in name and "::" not in name
            if of_operation and known and operation not in CALLS:
                times[operation] += event.duration_ps / 1000
                counts[operation] += 1
    return times, counts, steps, faulted


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=("baseline", "repe"))
    parser.add_argument("--fit", action="store_true", help="by `model.fit`")
    arguments = parser.parse_args()
    times, counts, steps, faulted = profiled(arguments.model, arguments.fit)
    shares, numbers = collections.Counter(), collections.Counter()
    for operation, time in times.items():
        shares[kind(operation)] += time / times.total()
        numbers[kind(operation)] += counts[operation] / steps
    rows = [
        [name, f"{share:.0%}", f"{numbers[name]:,.0f}"]
        for name, share in shares.most_common()
    ]
    print(table(["operations", "share of the time", "a step"], rows))
    print(f"\npage faults: {faulted:,.0f} a step")
