"""Where the time of our training step goes: `python profile_step.py baseline [--fit]`.

Each kind of operation has its share of the time that threads spend in operations. A
page fault is a page of 4 KiB that the process gets from the system.
"""

import collections
import re
import resource
import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from pages import table
from peers import reprt, reprt_by_fit
from peers.settings import BATCH_SIZE, Settings
from tensorflow.tsl.profiler.protobuf import xplane_pb2
from text import generate

# What is left is element by element, and sums: optimizer, biases, norms. The time of
# calls is that of the operations within, or of the wait for a batch.
KINDS = {
    None: "(Stateful)?PartitionedCall|While|PyFunc",
    "products of matrices": "(Fused|Batch)?MatMul|Einsum",
    "laying sentences out, and back": "Gather|Concat|Transpose|Slice|Scatter|Split|Pack"
    "|Unpack|UnsortedSegmentSum|Pad|Where|Tile|BroadcastTo",
    "dropout and masks": "StatelessRandom|Select|Less|Greater|Bitwise|Logical|Equal"
    "|NotEqual",
    "softmax and loss": "Softmax|Exp|ArgMax|Log|Max",
    "the rest": "",
}


def kind(event: str) -> str | None:
    """The kind of an operation, whose event is NAME:TYPE#details; None of others."""
    operation = event.split("#")[0].rpartition(":")[2]
    known = operation.startswith("_Mkl") or hasattr(tf.raw_ops, operation)
    if ":" not in event or "::" in event or not known:
        return None
    name = re.sub("^(_Mkl)?(Native)?", "", operation)
    return next(found for found, names in KINDS.items() if re.match(names, name))


def main(model, fit=None, warm=24):
    text = generate(BATCH_SIZE * (warm + 6)).shuffled(0)
    settings = Settings(model=model, vocab_sizes=text.vocab_sizes)
    peer = (reprt_by_fit if fit else reprt).Peer(settings)
    starts = range(0, len(text), BATCH_SIZE)
    batches = [text.take(range(n, n + BATCH_SIZE)).batch() for n in starts]
    faults, shares = [], collections.Counter()
    for batch in batches[:warm]:
        peer.step(batch)
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
    with tempfile.TemporaryDirectory() as folder:
        options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2)
        with tf.profiler.experimental.Profile(folder, options):
            for batch in batches[warm:]:
                peer.step(batch)
        [file] = Path(folder).rglob("*.xplane.pb")
        space = xplane_pb2.XSpace.FromString(file.read_bytes())
    for plane in space.planes:
        for event in (event for line in plane.lines for event in line.events):
            name = plane.event_metadata[event.metadata_id].name
            shares[kind(name)] += event.duration_ps
    del shares[None]
    columns = {"share of the time": lambda time: f"{time / shares.total():.0%}"}
    print(table(columns, dict(shares.most_common()), "operations"))
    # Graphs are made in the first steps, and memory grows now and then.
    print(f"\npage faults: {np.median(np.diff(faults)[warm // 2 :]):,.0f} a step")


if __name__ == "__main__":
    main(*sys.argv[1:])
