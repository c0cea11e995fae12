"""Our own models by `compile` and `fit`, on packed batches."""

import queue

import tensorflow as tf
from peers.keras_loop import KerasPeer
from peers.reprt import build, split
from peers.settings import BATCH_SIZE

import reprt
from reprt.data import pack
from reprt.data.batching import batches

IDS = tf.TensorSpec((None, None), tf.int32)


class Peer(KerasPeer):
    """Keras' own loop."""

    packages = ("reprt", *KerasPeer.packages)
    loss, metric = (
        reprt.losses.MaskedCrossentropy(),
        reprt.metrics.TokenAccuracy(),
    )
    schedule = reprt.schedules.WarmupSchedule

    def build(self, settings):
        self.given = queue.SimpleQueue()  # batches for single steps
        given = tf.data.Dataset.from_generator(
            lambda: iter(self.given.get, None),
            output_signature=((IDS, IDS), IDS),
        )
        self.taken = iter(given.map(pack))
        return build(settings)

    def step(self, batch):
        # As `fit` makes it: `train_on_batch` would be traced for many shapes of arrays.
        source, inputs, labels = batch
        self.given.put(((source, inputs), labels))
        self.model.make_train_function()
        self.model.reset_metrics()
        return float(self.model.train_function(self.taken)["loss"])

    def batches(self, pairs):
        return batches(split(pairs), BATCH_SIZE).map(pack).prefetch(2)
