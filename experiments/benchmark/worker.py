"""One peer in a process of its own: takes orders and answers in lines of JSON.

    python worker.py MODULE VARIANT TEXT

Each line on stdin, {"do": NAME, …}, calls that method of `Worker`.
"""

# ruff: noqa: E402
import time

# The imports are timed as well.
START = time.perf_counter()

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
        self.import_seconds = time.perf_counter() - START
        self.text = load(text)
        self.variant = variant

    def build(self, weights=None, **settings):
        """Makes the model, with the weights in a file or initial ones."""
        settings = Settings(
            vocab_sizes=self.text.vocab_sizes, variant=self.variant, **settings
        )
        start = time.perf_counter()
        self.peer = self.peer_class(settings)
        if weights:
            with np.load(weights) as file:
                self.peer.load([file[name] for name in file.files])
        seconds = time.perf_counter() - start
        versions = {"python": platform.python_version()}
        for package in self.peer_class.packages:
            versions[package] = importlib.metadata.version(package)
        return {
            "import": self.import_seconds,
            "build": seconds,
            "versions": versions,
            "parameters": getattr(self.peer, "parameters", None),
        }

    def save(self, path):
        np.savez(path, *self.peer.weights())

    def memory(self):
        # Linux counts in KiB.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def train(self, first, count, size=BATCH_SIZE):
        """Trains on the batches numbered `first` and on; returns their losses."""
        texts = self._batch_texts(first, count, size)
        return [self.peer.step(pairs.batch()) for pairs in texts]

    def step(self, first, count):
        """Measures training steps as `train` takes them."""
        texts = self._batch_texts(first, count)
        batches = [pairs.batch() for pairs in texts]
        seconds = sum(_seconds(self.peer.step, batch) for batch in batches)
        tokens = sum(pairs.target_tokens() for pairs in texts)
        results = {"step": seconds / count, "step_tokens": tokens / seconds}
        if hasattr(self.peer, "operations"):
            operations = sum(self.peer.operations(pairs) for pairs in texts)
            rate = operations / seconds
            results["share"] = rate / self._square_product_rate()
        return results

    def _square_product_rate(self):
        """Returns the operations a second of a product of square matrices."""
        size = self.peer.square
        product = self.peer.square_product(size)
        # The first time may compile.
        seconds = [_seconds(product) for _ in range(6)][1:]
        return 2 * size**3 / float(np.median(seconds))

    def epoch(self, number, count):
        """Measures an epoch of `count` pairs by the peer's own loop.

        The pipeline is made before the clock runs, as it is once for all epochs.
        """
        pairs = self._shuffled(1 + number).first(count)
        batches = self.peer.batches(pairs)
        seconds = _seconds(self.peer.fit, batches)
        return {
            "epoch": seconds,
            "epoch_tokens": pairs.target_tokens() / seconds,
            "memory": self.memory(),
        }

    def pipeline(self, number):
        """Measures going through the whole text's batches, without using them."""
        pairs = self._shuffled(1 + number)
        count = 0
        start = time.perf_counter()
        for _ in self.peer.batches(pairs):
            count += 1
        seconds = time.perf_counter() - start
        return {"pipeline": seconds / count}

    def translate(self, sentences, **sizes):
        """Translates the sentences of these numbers."""
        source = self.text.take(sentences).source
        start = time.perf_counter()
        rows = list(self.peer.translate(source, **sizes))
        seconds = time.perf_counter() - start
        translations = []
        for row in rows:
            translations.append([int(token) for token in row])
        return {"seconds": seconds, "translations": translations}

    def scores(self, sentences):
        """Returns the log-probabilities of the text's own translations."""
        pairs = self.text.take(sentences)
        rows = self.peer.scores(pairs.source, pairs.target)
        return [row.tolist() for row in rows]

    def _shuffled(self, epoch):
        return self.text.shuffled(SEED, epoch)

    def _batch_texts(self, first, count, size=BATCH_SIZE):
        """Returns the pairs of each of some batches; after the last comes the first."""
        text = self._shuffled(0)
        texts = []
        for number in range(first, first + count):
            start = number % (len(text) // size) * size
            texts.append(text.take(range(start, start + size)))
        return texts


def _seconds(function, *arguments):
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


if __name__ == "__main__":
    # The libraries print to stdout, which belongs to the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker(*sys.argv[1:])
    for line in sys.stdin:
        order = json.loads(line)
        answer = getattr(worker, order.pop("do"))(**order)
        print(json.dumps(answer), file=answers, flush=True)
