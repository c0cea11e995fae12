"""One way to translate in a process of its own, by the protocol of `worker.py`.

    python decoding_worker.py PEER[:VARIANT] TEXT.npz
"""

import worker  # first, since it notes when all began

# isort: split
import importlib
import time

import numpy as np
from decoding_peers.settings import Settings
from text import END, START, load


class Worker(worker.Worker):
    """What a peer can be asked for, besides `hello`, `save` and `memory`."""

    def __init__(self, name, text):
        self.name, _, self.variant = name.partition(":")
        self.module = importlib.import_module(f"decoding_peers.{self.name}")
        self.import_seconds = time.perf_counter() - worker.BEGUN
        self.text = load(text)
        self.peer = None

    def build(self, forbidden, **settings):
        begun = time.perf_counter()
        self.peer = self.module.Peer(
            Settings(
                vocab_sizes=self.text.vocab_sizes,
                variant=self.variant,
                forbidden=tuple(forbidden),
                **settings,
            )
        )
        return {"build": time.perf_counter() - begun}

    def translate(self, sentences, beam_size, max_tokens):
        """Translates the sentences of these numbers."""
        source = self.text.pairs.take(sentences).source
        begun = time.perf_counter()
        translations = self.peer.translate(source, beam_size, max_tokens)
        seconds = time.perf_counter() - begun
        return {
            "seconds": seconds,
            "translations": [[int(token) for token in ids] for ids in translations],
        }

    def scores(self, sentences, targets=None):
        """The log-probabilities of given translations, else of the text's own."""
        pairs = self.text.pairs.take(sentences)
        if targets is not None:
            targets = [np.array([START, *ids, END]) for ids in targets]
        scores = self.peer.scores(pairs.source, targets or pairs.target)
        return [[float(score) for score in row] for row in scores]


if __name__ == "__main__":
    worker.main(Worker)
