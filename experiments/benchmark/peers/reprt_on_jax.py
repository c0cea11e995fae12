"""Our own models, trained as `reprt train` does on JAX."""

import keras
import numpy as np
from peers.reprt import TrainPeer, split
from peers.settings import BATCH_SIZE
from text import Pairs

from reprt.data.batch_plan import BatchPlan
from reprt.training.jax_backend import OnJax
from reprt.training.objective import Objective


class JaxPeer(TrainPeer):
    """The steps of `reprt train` on JAX, on padded batches of a few lengths."""

    def __init__(self, settings):
        keras.utils.set_random_seed(settings.seed)
        self.steps = OnJax()
        self.make(settings)
        self.steps.compile(Objective(self.model), self.adam, split=None)
        self.steps.load()

    def weights(self):
        self.steps.store()
        return super().weights()

    def load(self, weights):
        super().load(weights)
        self.steps.load()

    def step(self, batch):
        source, inputs, labels = ([row[row > 0] for row in side] for side in batch)
        target = [np.append(ids[:1], rest) for ids, rest in zip(inputs, labels)]
        (padded,) = self.batches(Pairs(source, target), size=len(source))
        [(_, loss, tokens, _)] = self.steps.read([self.steps.train(padded)])
        return loss / tokens

    def fit(self, batches):
        self.steps.read([self.steps.train(batch) for batch in batches])

    def evaluate(self, pairs):
        sums = [self.steps.evaluate(batch) for batch in self.batches(pairs)]
        losses = np.array(self.steps.read(sums))
        return losses[:, 1].sum() / losses[:, 2].sum()

    def batches(self, pairs, size=BATCH_SIZE):
        text = split(pairs)
        return self.steps.batches(text, BatchPlan(text.lengths, size))
