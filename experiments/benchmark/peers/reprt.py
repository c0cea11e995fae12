"""Our own models, trained as `reprt train` does.

Variants: `jax`, `cpu` (of a machine that has more), `bfloat16`, and `bucketed` (epochs
of batches of like length).
"""

from pathlib import Path

import keras
import numpy as np
from peers.keras_model import KerasModel
from peers.settings import BATCH_SIZE, SEED

from reprt.data.batching import BatchPlan
from reprt.data.encoding import EncodedSplit
from reprt.models.presets import preset
from reprt.models.registry import make
from reprt.optimizers import make_optimizer
from reprt.training.objective import Objective
from reprt.training.settings import AdamSettings, InverseSqrtSettings
from reprt.training.trainer import backend


def build(settings):
    """Returns the model of a preset or, by RECIPE:MODEL, of a recipe."""
    recipe, _, name = settings.model.rpartition(":")
    if recipe:
        # Only a recipe needs this import, and imports are timed.
        from reprt_lab.recipe import load_recipe

        config = load_recipe(Path(recipe)).runs([name])[0].model
    else:
        config = preset(name)
    config = config.changed(dropout=settings.dropout)
    dtype = "mixed_bfloat16" if settings.variant == "bfloat16" else "float32"
    return make(config, *settings.vocab_sizes, dtype=dtype)


def split(pairs):
    return EncodedSplit(pairs.source, pairs.target)


class Peer(KerasModel):
    """The steps of `reprt train`."""

    def __init__(self, settings):
        keras.utils.set_random_seed(SEED)
        self.by_length = settings.variant == "bucketed"
        self.backend = backend(deterministic=False)
        # The size of the matrices whose product ours are compared with.
        self.square = 8192 if self.backend.accelerators else 2048
        with self.backend.scope():
            self.model = build(settings)
            schedule = InverseSqrtSettings(dim=self.model.config.embedding_dim)
            adam = make_optimizer(AdamSettings(), schedule)
            adam.build(self.model.trainable_variables)
        ids = [np.ones(2, "int32")]
        self.backend.compile(
            Objective(self.model), adam, EncodedSplit(ids, ids)
        )
        self.backend.load()

    def weights(self):
        self.backend.store()
        return super().weights()

    def load(self, weights):
        super().load(weights)
        self.backend.load()

    def step(self, batch):
        source, inputs, labels = batch
        # The backend of JAX pads to lengths of its own.
        if keras.backend.backend() == "jax":
            source = [row[row > 0] for row in source]
            target = []
            for row, next_row in zip(inputs, labels):
                target.append(np.append(row[:1], next_row[next_row > 0]))
            pairs = EncodedSplit(source, target)
            [batch] = self.batches(pairs, size=len(source))
        else:
            tensor = keras.ops.convert_to_tensor
            batch = (tensor(source), tensor(inputs)), tensor(labels)
        [(_, loss, tokens, _)] = self.fit([batch])
        return loss / tokens

    def fit(self, batches):
        results = [self.backend.train(batch) for batch in batches]
        return self.backend.read(results)

    def batches(self, pairs, size=BATCH_SIZE):
        plan = BatchPlan(split(pairs).lengths, size, by_length=self.by_length)
        seed = 1 if self.by_length else None
        return self.backend.batches(split(pairs), plan, seed)

    def operations(self, pairs):
        return 6 * int(self.model.multiply_adds(*split(pairs).tokens).sum())

    def square_product(self, size):
        matrix = keras.ops.ones((size, size), self.model.compute_dtype)
        return lambda: float(keras.ops.matmul(matrix, matrix)[0, 0])
