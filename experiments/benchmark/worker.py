"""One peer in a process of its own: takes orders and answers in lines of JSON.

    python worker.py MODULE VARIANT TEXT

Each line on stdin, {"do": NAME, …}, calls that method of `Worker`.
"""

# flake8: noqa: E402
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

    def steps(self, first, count, size=BATCH_SIZE):
        """Trains on the batches numbered `first` and on; after the last, the first."""
        order, answers = self._shuffled(0), []
        for number in range(first, first + count):
            start = number % (len(order) // size) * size
            pairs = order.take(range(start, start + size))
            batch = pairs.batch()
            begun = time.perf_counter()
            loss = self.peer.step(batch)
            answer = {"seconds": time.perf_counter() - begun, "losses": loss}
            answer["target_tokens"] = pairs.target_tokens()
            if hasattr(self.peer, "operations"):
                answer["operations"] = self.peer.operations(pairs)
            answers.append(answer)
        return {name: [answer[name] for answer in answers] for name in answers[0]}

    def products(self, size=2048, count=5):
        """Returns the operations a second of square products by the peer's library."""
        product = self.peer.square_product(size)
        seconds = [_timed(product) for _ in range(count + 1)]
        return 2 * size**3 / float(np.median(seconds[1:]))

    def epoch(self, number, count):
        """Trains on `count` pairs by the peer's own loop.

        The pipeline is made before the clock runs, as it is once for all epochs.
        """
        pairs = self._shuffled(1 + number).first(count)
        batches = self.peer.batches(pairs)
        seconds = _timed(lambda: self.peer.fit(batches))
        return {"seconds": seconds, "target_tokens": pairs.target_tokens()}

    def evaluate(self, count):
        """Returns the mean loss of `count` pairs, without dropout."""
        return self.peer.evaluate(self._shuffled(0).first(count))

    def pipeline(self, number):
        """Returns the seconds a batch of going through the whole text's batches."""
        pairs, batches = self._shuffled(1 + number), []
        seconds = _timed(lambda: batches.extend(1 for _ in self.peer.batches(pairs)))
        return seconds / len(batches)

    def translate(self, sentences, **sizes):
        """Translates the sentences of these numbers."""
        source, found = self.text.take(sentences).source, []
        seconds = _timed(lambda: found.extend(self.peer.translate(source, **sizes)))
        ids = [[int(token) for token in row] for row in found]
        return {"seconds": seconds, "translations": ids}

    def scores(self, sentences):
        """Returns the log-probabilities of the text's own translations."""
        pairs = self.text.take(sentences)
        return [row.tolist() for row in self.peer.scores(pairs.source, pairs.target)]

    def _shuffled(self, epoch):
        return self.text.shuffled(SEED, epoch)


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
