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
    loss = reprt.losses.MaskedCrossentropy()
    metric = reprt.metrics.TokenAccuracy()
    schedule = reprt.schedules.WarmupSchedule

    def build(self, settings):
        # Single steps put their batches into a queue, from which the dataset has them.
        self.queue = queue.SimpleQueue()
        dataset = tf.data.Dataset.from_generator(
            self._queued_batches, output_signature=((IDS, IDS), IDS)
        )
        self.packed_batches = iter(dataset.map(pack))
        return build(settings)

    def _queued_batches(self):
        while True:
            yield self.queue.get()

    def step(self, batch):
        # `fit` takes steps so; `train_on_batch` would be traced for many shapes.
        source, inputs, labels = batch
        self.queue.put(((source, inputs), labels))
        self.model.make_train_function()
        self.model.reset_metrics()
        results = self.model.train_function(self.packed_batches)
        return float(results["loss"])

    def batches(self, pairs):
        return batches(split(pairs), BATCH_SIZE).map(pack).prefetch(2)
