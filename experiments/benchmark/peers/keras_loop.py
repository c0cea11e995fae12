"""How one trains such a model in Keras: tf.data, compile and fit."""

import keras
import numpy as np
import tensorflow as tf
from peers.keras_model import KerasModel
from peers.keras_parts import DenseAdam, WarmUp, masked_accuracy, masked_loss
from peers.settings import BATCH_SIZE, SEED


class KerasPeer(KerasModel):
    """A Keras model on `(source, target)` ids, trained by `compile` and `fit`."""

    loss = staticmethod(masked_loss)
    metric = staticmethod(masked_accuracy)
    schedule = WarmUp

    def __init__(self, settings):
        keras.utils.set_random_seed(SEED)
        self.model = self.build(settings)
        adam_class = DenseAdam if settings.dense else keras.optimizers.Adam
        rate = self.schedule(settings.sizes.embedding)
        adam = adam_class(rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9)
        self.model.compile(adam, loss=self.loss, metrics=[self.metric])
        # The first call makes the weights.
        ids = np.ones((1, 2), "int32")
        self.model((ids, ids))

    def step(self, batch):
        source, inputs, labels = batch
        return float(self.model.train_on_batch((source, inputs), labels)[0])

    def fit(self, batches):
        self.model.fit(batches, verbose=0)

    def batches(self, pairs):
        sides = _ragged(pairs.source), _ragged(pairs.target)
        dataset = tf.data.Dataset.from_tensor_slices(sides).batch(BATCH_SIZE)
        # Tuning is off: its thread keeps the end of so short a pass waiting for longer
        # than the pass takes. One worker is faster than any step.
        options = tf.data.Options()
        options.autotune.enabled = False
        return dataset.map(_pad).prefetch(2).with_options(options)


def _ragged(rows):
    lengths = [len(row) for row in rows]
    return tf.RaggedTensor.from_row_lengths(np.concatenate(rows), lengths)


def _pad(source, target):
    inputs = target[:, :-1].to_tensor()
    labels = target[:, 1:].to_tensor()
    return (source.to_tensor(), inputs), labels
