"""Plain JAX: both models as functions of a list of weights.

Every batch is padded to one length, so that the step is compiled once.
"""

import jax
import numpy as np
from jax import numpy as jnp
from jax import random
from peers.plain_jax_model import logits, shapes
from peers.settings import BATCH_SIZE, SEED, WARMUP_STEPS

LENGTH = 128
# Adam's decay of its two moments, and its epsilon.
DECAYS, EPSILON = (0.9, 0.98), 1e-9


class Peer:
    """A model and Adam, in one compiled step."""

    packages = ("jax",)

    def __init__(self, settings):
        generator = np.random.default_rng(SEED)
        weights = [
            generator.normal(0, 0.05, shape) for shape in shapes(settings)
        ]
        self.settings = settings
        self.parameters = sum(weight.size for weight in weights)
        self.load(weights)
        self._compiled_step = jax.jit(self._step, donate_argnums=0)

    def load(self, weights):
        weights = [jnp.asarray(weight, "float32") for weight in weights]
        means = [jnp.zeros_like(weight) for weight in weights]
        squares = [jnp.zeros_like(weight) for weight in weights]
        self.state = weights, (means, squares), 0, random.key(SEED)

    def step(self, batch):
        return self.fit([batch])[-1]

    def fit(self, batches):
        losses = []
        for batch in batches:
            batch = [_pad(ids) for ids in batch]
            self.state, loss = self._compiled_step(self.state, batch)
            losses.append(loss)
        return [float(loss) for loss in losses]

    def batches(self, pairs):
        for first in range(0, len(pairs), BATCH_SIZE):
            end = min(first + BATCH_SIZE, len(pairs))
            yield pairs.take(range(first, end)).batch()

    def _loss(self, weights, batch, key):
        source, inputs, labels = batch
        scores = logits(weights, source, inputs, self.settings, key)
        scores = jax.nn.log_softmax(scores)
        losses = -jnp.take_along_axis(scores, labels[..., None], axis=2)[..., 0]
        return jnp.sum(losses * (labels > 0)) / jnp.sum(labels > 0)

    def _step(self, state, batch):
        weights, (means, squares), step, key = state
        key, step_key = random.split(key)
        loss, slopes = jax.value_and_grad(self._loss)(weights, batch, step_key)
        warmup = step * WARMUP_STEPS**-1.5
        rate = jnp.minimum(jnp.maximum(step, 1) ** -0.5, warmup)
        rate = self.settings.sizes.embedding**-0.5 * rate
        decay, square_decay = DECAYS
        # Both moments start at 0, and these shares correct it.
        share = 1 - decay ** (step + 1)
        square_share = 1 - square_decay ** (step + 1)
        rate = rate * square_share**0.5 / share
        new_weights, new_means, new_squares = [], [], []
        for weight, mean, square, slope in zip(weights, means, squares, slopes):
            mean = decay * mean + (1 - decay) * slope
            square = square_decay * square + (1 - square_decay) * slope**2
            change = rate * mean / (jnp.sqrt(square) + EPSILON)
            new_weights.append(weight - change)
            new_means.append(mean)
            new_squares.append(square)
        return (new_weights, (new_means, new_squares), step + 1, key), loss


def _pad(ids):
    return np.pad(ids, ((0, 0), (0, LENGTH - ids.shape[1])))
