"""One peer in a process of its own: takes orders and answers in lines of JSON.

    python worker.py PEER[:VARIANT] TEXT.npz

Each line on stdin, {"do": NAME, …}, calls that method of `Worker`.
"""

import time

BEGUN = time.perf_counter()  # before the imports, which are timed as well

import importlib  # noqa: E402
import importlib.metadata  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import platform  # noqa: E402
import resource  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402
from peers.settings import BATCH_SIZE, Settings  # noqa: E402
from text import load  # noqa: E402


class Worker:
    """What a peer can be asked for."""

    def __init__(self, name, text):
        self.name, _, self.variant = name.partition(":")
        self.module = importlib.import_module(f"peers.{self.name}")
        self.import_seconds = time.perf_counter() - BEGUN
        self.text = load(text)
        self.peer = None

    def hello(self):
        versions = map(importlib.metadata.version, self.module.Peer.packages)
        return {
            "import": self.import_seconds,
            "versions": {
                "python": platform.python_version(),
                **dict(zip(self.module.Peer.packages, versions)),
            },
        }

    def build(self, seed, **settings):
        self.seed = seed  # of the order of the sentences as well
        settings = Settings(
            vocab_sizes=self.text.vocab_sizes,
            variant=self.variant,
            seed=seed,
            **settings,
        )
        seconds = _timed(lambda: setattr(self, "peer", self.module.Peer(settings)))
        return {"build": seconds, "parameters": self.peer.parameters}

    def save(self, path):
        np.savez(path, *self.peer.weights())

    def load(self, path):
        with np.load(path) as file:
            self.peer.load([file[name] for name in file.files])

    def steps(self, first, count, size=BATCH_SIZE):
        """Trains on the batches numbered `first` and on; after the last, the first."""
        order = self._shuffled(0)
        names = "seconds", "losses", "target_tokens", "operations"
        answer = {name: [] for name in names}
        for number in range(first, first + count):
            start = number % (len(order) // size) * size
            pairs = order.take(range(start, start + size))
            batch = pairs.batch()
            begun = time.perf_counter()
            loss = self.peer.step(batch)
            answer["seconds"].append(time.perf_counter() - begun)
            answer["losses"].append(loss)
            answer["target_tokens"].append(pairs.target_tokens())
            if hasattr(self.peer, "operations"):
                answer["operations"].append(self.peer.operations(pairs))
        return answer

    def products(self, size=2048, count=5):
        """Returns the operations a second of square products by the peer's library."""
        one = self.peer.ones(size)
        seconds = [_timed(lambda: self.peer.product(one)) for _ in range(count + 1)]
        return {"rate": 2 * size**3 / float(np.median(seconds[1:]))}

    def epoch(self, number, count):
        """Trains on `count` pairs by the peer's own loop; a text may have fewer.

        The pipeline is made before the clock runs, as it is once for all epochs.
        """
        pairs = self._shuffled(1 + number).first(count)
        batches = self.peer.batches(pairs)
        seconds = _timed(lambda: self.peer.fit(batches))
        return {"seconds": seconds, "target_tokens": pairs.target_tokens()}

    def evaluate(self, count):
        """Returns the mean loss of so many pairs, without dropout."""
        return {"loss": self.peer.evaluate(self._shuffled(0).first(count))}

    def pipeline(self, number):
        """Goes through the whole text's batches and does nothing with them."""
        pairs, batches = self._shuffled(1 + number), []
        seconds = _timed(lambda: batches.extend(1 for _ in self.peer.batches(pairs)))
        return {"seconds": seconds, "batches": len(batches)}

    def _shuffled(self, epoch):
        return self.text.shuffled(self.seed, epoch)

    def memory(self):
        # Linux counts in KiB.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _timed(function):
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def main(worker_class):
    """Answers the orders on standard input until there are no more."""
    # The libraries print to stdout, which belongs to the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    name, text = sys.argv[1:]
    worker = worker_class(name, Path(text))
    for line in sys.stdin:
        order = json.loads(line)
        answer = getattr(worker, order.pop("do"))(**order)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(Worker)
