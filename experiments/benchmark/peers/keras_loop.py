"""How one trains such a model in Keras: tf.data, compile and fit."""

import keras
import numpy as np
import tensorflow as tf
from keras import ops
from peers.settings import BATCH_SIZE


class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
    """The schedule of "Attention is all you need", counted from step 0."""

    def __init__(self, width, warmup_steps):
        self.width, self.warmup_steps = width, warmup_steps

    def __call__(self, step):
        step = ops.cast(step, "float32")
        rising = step * self.warmup_steps**-1.5
        return self.width**-0.5 * ops.minimum(ops.rsqrt(step), rising)


class DenseAdam(keras.optimizers.Adam):
    """Adam that moves every row of an embedding, as that of other libraries."""

    def apply(self, grads, trainable_variables=None):
        grads = [tf.convert_to_tensor(grad) for grad in grads]
        return super().apply(grads, trainable_variables)


def masked_loss(labels, logits):
    """Cross-entropy, averaged over the batch's tokens that are not padding."""
    real = ops.cast(labels != 0, logits.dtype)
    loss = keras.losses.sparse_categorical_crossentropy(
        labels, logits, from_logits=True
    )
    return ops.sum(loss * real) / ops.sum(real)


def masked_accuracy(labels, logits):
    """Share of the batch's tokens that are not padding whose prediction is right."""
    predicted = ops.argmax(logits, axis=-1)
    real = ops.cast(labels != 0, "float32")
    right = ops.cast(ops.cast(labels, predicted.dtype) == predicted, "float32")
    return ops.sum(right * real) / ops.sum(real)


def sinusoids(length, width):
    """Returns the table of positions: sines in the left half, cosines in the right."""
    frequency = 10000 ** -(np.arange(width // 2) / (width // 2))
    angle = np.arange(length)[:, None] * frequency
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=1).astype("float32")


class KerasModel:
    """What every peer does that has a Keras `model`."""

    @property
    def parameters(self):
        return self.model.count_params()

    def variables(self):
        """Returns the variables in the order that the peers have agreed on."""
        return self.model.trainable_variables

    def weights(self):
        return [np.asarray(variable) for variable in self.variables()]

    def load(self, weights):
        for variable, array in zip(self.variables(), weights, strict=True):
            variable.assign(array)


class KerasPeer(KerasModel):
    """A Keras model on `(source, target)` ids, trained by `compile` and `fit`."""

    packages = ("keras", "tensorflow")
    loss, metric = staticmethod(masked_loss), staticmethod(masked_accuracy)
    schedule = WarmUp

    def __init__(self, settings):
        keras.utils.set_random_seed(settings.seed)
        self.model = self.build(settings)
        adam = DenseAdam if settings.dense else keras.optimizers.Adam
        rate = self.schedule(settings.sizes.embedding, settings.warmup_steps)
        self.model.compile(
            adam(rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9),
            loss=self.loss,
            metrics=[self.metric],
        )
        ids = np.ones((1, 2), "int32")
        self.model((ids, ids))  # makes the weights

    def step(self, batch):
        source, inputs, labels = batch
        return float(self.model.train_on_batch((source, inputs), labels)[0])

    def fit(self, batches):
        self.model.fit(batches, verbose=0)

    def evaluate(self, pairs):
        return self.model.evaluate(self.batches(pairs), verbose=0)[0]

    def batches(self, pairs):
        sides = tuple(map(_ragged, (pairs.source, pairs.target)))
        dataset = tf.data.Dataset.from_tensor_slices(sides).batch(BATCH_SIZE)
        # Without tuning, whose thread keeps the end of so short a pass waiting for
        # longer than the pass takes. One worker is faster than any step.
        options = tf.data.Options()
        options.autotune.enabled = False
        return dataset.map(_padded).prefetch(2).with_options(options)


def _ragged(rows):
    lengths = [len(row) for row in rows]
    return tf.RaggedTensor.from_row_lengths(np.concatenate(rows), lengths)


def _padded(source, target):
    inputs, labels = target[:, :-1].to_tensor(), target[:, 1:].to_tensor()
    return (source.to_tensor(), inputs), labels
