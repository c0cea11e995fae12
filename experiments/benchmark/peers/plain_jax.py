"""Plain JAX: both models as functions of a list of weights.

Every batch is padded to one length, so that the step is compiled once.
"""

import jax
import numpy as np
from jax import numpy as jnp
from jax import random
from peers.plain_jax_model import logits, shapes
from peers.settings import BATCH_SIZE, SEED, WARMUP_STEPS

LENGTH, RATES, EPSILON = 128, (0.9, 0.98), 1e-9


class Peer:
    """A model and Adam, in one compiled step."""

    packages = ("jax",)

    def __init__(self, settings):
        generator = np.random.default_rng(SEED)
        drawn = [generator.normal(0, 0.05, shape) for shape in shapes(settings)]
        self.settings, self.parameters = settings, sum(map(np.size, drawn))
        self.load(drawn)
        self._step = jax.jit(self._stepped, donate_argnums=0)

    def load(self, weights):
        weights = [jnp.asarray(array, "float32") for array in weights]
        moments = [[jnp.zeros_like(each) for each in weights] for _ in RATES]
        self.state = weights, moments, 0, random.key(SEED)

    def step(self, batch):
        return self.fit([batch])[-1]

    def fit(self, batches):
        losses = []
        for batch in batches:
            batch = [
                np.pad(x, ((0, 0), (0, LENGTH - x.shape[1]))) for x in batch
            ]
            self.state, loss = self._step(self.state, batch)
            losses.append(loss)
        return [float(loss) for loss in losses]

    def batches(self, pairs):
        for first in range(0, len(pairs), BATCH_SIZE):
            yield pairs.take(
                range(first, min(first + BATCH_SIZE, len(pairs)))
            ).batch()

    def _loss(self, weights, batch, key):
        source, inputs, labels = batch
        found = jax.nn.log_softmax(
            logits(weights, source, inputs, self.settings, key)
        )
        losses = -jnp.take_along_axis(found, labels[..., None], axis=2)[..., 0]
        return jnp.sum(losses * (labels > 0)) / jnp.sum(labels > 0)

    def _stepped(self, state, batch):
        weights, moments, step, key = state
        key, now = random.split(key)
        loss, slopes = jax.value_and_grad(self._loss)(weights, batch, now)
        rise = jnp.minimum(
            jnp.maximum(step, 1) ** -0.5, step * WARMUP_STEPS**-1.5
        )
        rate = self.settings.sizes.embedding**-0.5 * rise
        moments = [
            [
                keep * old + (1 - keep) * slope**n
                for old, slope in zip(olds, slopes)
            ]
            for n, (keep, olds) in enumerate(zip(RATES, moments), 1)
        ]
        first, second = (1 - keep ** (step + 1) for keep in RATES)
        weights = [
            weight
            - rate * second**0.5 / first * mean / (jnp.sqrt(square) + EPSILON)
            for weight, mean, square in zip(weights, *moments)
        ]
        return (weights, moments, step + 1, key), loss
