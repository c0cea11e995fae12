"""Our own models, trained as `reprt train` does on JAX."""

import jax
import keras
import numpy as np
from jax import numpy as jnp
from peers.reprt import build, operations, split
from peers.settings import BATCH_SIZE
from text import Pairs

import reprt
from reprt.data.batch_plan import BatchPlan
from reprt.training.jax_backend import OnJax
from reprt.training.objective import Objective


class JaxPeer:
    """The steps of `reprt train` on JAX, on padded batches of a few lengths."""

    def __init__(self, settings):
        keras.utils.set_random_seed(settings.seed)
        self.steps = OnJax()
        self.model = build(settings)
        rate = reprt.schedules.WarmupSchedule(
            settings.sizes.embedding, settings.warmup_steps
        )
        adam = keras.optimizers.Adam(rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9)
        adam.build(self.model.trainable_variables)
        self.steps.compile(Objective(self.model), adam, split=None)
        self.steps.load()
        self._product = jax.jit(jnp.matmul)

    @property
    def parameters(self):
        return self.model.count_params()

    def operations(self, pairs):
        return operations(self.model, pairs)

    def ones(self, size):
        return jnp.ones((size, size))

    def product(self, matrix):
        return float(self._product(matrix, matrix)[0, 0])

    def weights(self):
        self.steps.store()
        return [np.array(variable) for variable in self.model.trainable_variables]

    def load(self, weights):
        variables = self.model.trainable_variables
        for variable, array in zip(variables, weights, strict=True):
            variable.assign(array)
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
