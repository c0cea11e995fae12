"""Our own models, trained as `reprt train` does, and by `compile` and `fit`.

Variants: `fit` is `model.fit` on packed batches; `bucketed` puts sentences of like
length into a batch (of an epoch; single steps are given their batches), `bfloat16` has
products of matrices in bfloat16, `padded` does without packing, and `jax` trains on
JAX.
"""

import queue

import keras
import numpy as np
import tensorflow as tf
from peers.keras_loop import KerasModel, KerasPeer
from peers.settings import BATCH_SIZE

import reprt
from reprt.data import pack
from reprt.data.batching import batches, bucketed_order
from reprt.data.encoding import EncodedSplit
from reprt.presets import preset
from reprt.training.objective import Objective
from reprt.training.tensorflow_backend import Steps, mirrored_strategy, shared

IDS = tf.TensorSpec((None, None), tf.int32)
PACKAGES = ("reprt", *KerasPeer.packages)


def Peer(settings):
    """The peer that the variant asks for."""
    if settings.variant == "jax":
        from peers.reprt_on_jax import JaxPeer

        return JaxPeer(settings)
    in_fit = settings.variant in ("fit", "padded")
    return FitPeer(settings) if in_fit else StepsPeer(settings)


Peer.packages = PACKAGES


def build(settings):
    precision = "mixed_bfloat16" if settings.variant == "bfloat16" else "float32"
    config = preset(settings.model, dropout=settings.dropout)
    model = reprt.models.Transformer(*settings.vocab_sizes, config, dtype=precision)
    model.build()
    return model


def split(pairs):
    return EncodedSplit(pairs.source, pairs.target)


class FitPeer(KerasPeer):
    """Keras' own loop."""

    loss, metric = reprt.losses.MaskedCrossentropy(), reprt.metrics.TokenAccuracy()
    schedule = reprt.schedules.WarmupSchedule

    def build(self, settings):
        self.packed = settings.variant == "fit"
        self.given = queue.SimpleQueue()  # batches for single steps
        given = tf.data.Dataset.from_generator(
            lambda: iter(self.given.get, None), output_signature=((IDS, IDS), IDS)
        )
        self.taken = iter(given.map(pack) if self.packed else given)
        return build(settings)

    def step(self, batch):
        # As `fit` makes it: `train_on_batch` would be traced for many shapes of arrays.
        source, inputs, labels = batch
        self.given.put(((source, inputs), labels))
        self.model.make_train_function()
        self.model.reset_metrics()
        return float(self.model.train_function(self.taken)["loss"])

    def batches(self, pairs):
        dataset = batches(split(pairs), BATCH_SIZE)
        return dataset.map(pack).prefetch(2) if self.packed else dataset


class TrainPeer(KerasModel):
    """What `reprt train` has on every backend: a model and a built optimizer."""

    def make(self, settings):
        self.model = build(settings)
        width = preset(settings.model).embedding_dim
        rate = reprt.schedules.WarmupSchedule(width, settings.warmup_steps)
        self.adam = keras.optimizers.Adam(rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9)
        self.adam.build(self.model.trainable_variables)

    def operations(self, pairs):
        return 6 * int(self.model.multiply_adds(*split(pairs).tokens).sum())

    def ones(self, size):
        return keras.ops.ones((size, size))

    def product(self, matrix):
        return float(keras.ops.matmul(matrix, matrix)[0, 0])


class StepsPeer(TrainPeer):
    """The steps of `reprt train`."""

    def __init__(self, settings):
        keras.utils.set_random_seed(settings.seed)
        self.settings, self.strategy = settings, mirrored_strategy()
        with self.strategy.scope():
            self.make(settings)
        objective, ids = Objective(self.model), ((IDS, IDS), IDS)
        self.steps = Steps(objective, self.adam, self.strategy, ids)
        self.epochs = 0

    def step(self, batch):
        source, inputs, labels = map(tf.constant, batch)
        _, loss, tokens, _ = self.steps.train(((source, inputs), labels))
        return float(loss) / float(tokens)

    def fit(self, batches):
        sums = [self.steps.train(batch) for batch in batches]
        # As `reprt train` does, which looks at losses now and then.
        np.array(sums)

    def evaluate(self, pairs):
        sums = np.zeros(4)
        for batch in shared(batches(split(pairs), BATCH_SIZE), self.strategy):
            sums += np.array(self.steps.evaluate(batch))
        return sums[1] / sums[2]

    def batches(self, pairs):
        order = None
        self.epochs += 1
        if self.settings.variant == "bucketed":
            lengths = split(pairs).lengths
            order = bucketed_order(lengths, BATCH_SIZE, self.settings.seed, self.epochs)
        return shared(batches(split(pairs), BATCH_SIZE, order), self.strategy)
