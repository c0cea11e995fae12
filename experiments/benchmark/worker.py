"""One peer in a process of its own: takes orders and answers in lines of JSON.

    python worker.py MODULE VARIANT TEXT

Each line on stdin, {"do": NAME, …}, calls that method of `Worker`.
"""

# ruff: noqa: E402
import time

BEGUN = time.perf_counter()  # before the imports, which are timed as well

import importlib.metadata
import json
import os
import platform
import resource
import sys

import numpy as np
from peers.settings import BATCH_SIZE, SEED, Settings
from text import load


class Worker:
    """What a peer can be asked for: to build a model, then to train or to translate."""

    def __init__(self, module, variant, text):
        self.peer_class = importlib.import_module(f"peers.{module}").Peer
        self.import_seconds = time.perf_counter() - BEGUN
        self.text, self.variant = load(text), variant

    def build(self, weights=None, **settings):
        """Makes the model, of the weights in this file or of initial ones."""
        sizes, packages = self.text.vocab_sizes, self.peer_class.packages
        settings = Settings(vocab_sizes=sizes, variant=self.variant, **settings)
        begun = time.perf_counter()
        self.peer = self.peer_class(settings)
        if weights:
            with np.load(weights) as file:
                self.peer.load([file[name] for name in file.files])
        seconds = time.perf_counter() - begun
        versions = {name: importlib.metadata.version(name) for name in packages}
        return {
            "import": self.import_seconds,
            "build": seconds,
            "versions": {"python": platform.python_version(), **versions},
            "parameters": getattr(self.peer, "parameters", None),
        }

    def save(self, path):
        np.savez(path, *self.peer.weights())

    def memory(self):
        # Linux counts in KiB.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def train(self, first, count, size=BATCH_SIZE):
        """Trains on the batches numbered `first` and on; returns their losses."""
        few = self._few(first, count, size)
        return [self.peer.step(pairs.batch()) for pairs in few]

    def step(self, first, count):
        """Measures training steps as `train` takes them."""
        few = self._few(first, count)
        batches = [pairs.batch() for pairs in few]
        seconds = sum(
            _timed(lambda: self.peer.step(batch)) for batch in batches
        )
        tokens = sum(pairs.target_tokens() for pairs in few)
        found = {"step": seconds / count, "step_tokens": tokens / seconds}
        if hasattr(self.peer, "operations"):
            size = (
                self.peer.square
            )  # of the product that ours are compared with
            product = self.peer.square_product(size)
            usual = float(np.median([_timed(product) for _ in range(6)][1:]))
            operations = sum(map(self.peer.operations, few))
            found["share"] = operations / seconds * usual / (2 * size**3)
        return found

    def epoch(self, number, count):
        """Measures an epoch of `count` pairs by the peer's own loop.

        The pipeline is made before the clock runs, as it is once for all epochs.
        """
        pairs = self._shuffled(1 + number).first(count)
        batches = self.peer.batches(pairs)
        seconds = _timed(lambda: self.peer.fit(batches))
        tokens = pairs.target_tokens() / seconds
        return {
            "epoch": seconds,
            "epoch_tokens": tokens,
            "memory": self.memory(),
        }

    def pipeline(self, number):
        """Measures going through the whole text's batches, which nobody uses."""
        pairs, batches = self._shuffled(1 + number), []
        seconds = _timed(
            lambda: batches.extend(1 for _ in self.peer.batches(pairs))
        )
        return {"pipeline": seconds / len(batches)}

    def translate(self, sentences, **sizes):
        """Translates the sentences of these numbers."""
        source, found = self.text.take(sentences).source, []
        seconds = _timed(
            lambda: found.extend(self.peer.translate(source, **sizes))
        )
        ids = [[int(token) for token in row] for row in found]
        return {"seconds": seconds, "translations": ids}

    def scores(self, sentences):
        """Returns the log-probabilities of the text's own translations."""
        pairs = self.text.take(sentences)
        return [
            row.tolist() for row in self.peer.scores(pairs.source, pairs.target)
        ]

    def _shuffled(self, epoch):
        return self.text.shuffled(SEED, epoch)

    def _few(self, first, count, size=BATCH_SIZE):
        """Batches of a shuffled text; after the last comes the first."""
        order = self._shuffled(0)
        numbers = (
            n % (len(order) // size) for n in range(first, first + count)
        )
        return [order.take(range(n * size, (n + 1) * size)) for n in numbers]


def _timed(function):
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


if __name__ == "__main__":
    # The libraries print to stdout, which belongs to the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker(*sys.argv[1:])
    for line in sys.stdin:
        order = json.loads(line)
        answer = getattr(worker, order.pop("do"))(**order)
        print(json.dumps(answer), file=answers, flush=True)
