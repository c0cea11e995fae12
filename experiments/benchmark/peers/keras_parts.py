"""What a Keras user writes for such a model: schedule, optimizer, loss and metric."""

import keras
import tensorflow as tf
from keras import ops
from peers.settings import WARMUP_STEPS


class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
    """The schedule of "Attention is all you need", counted from step 0."""

    def __init__(self, width):
        self.width = width

    def __call__(self, step):
        step = ops.cast(step, "float32")
        rising = step * WARMUP_STEPS**-1.5
        return self.width**-0.5 * ops.minimum(ops.rsqrt(step), rising)


class DenseAdam(keras.optimizers.Adam):
    """Adam that adds up an id's gradients before it squares them, as PyTorch's does."""

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
    predictions = ops.argmax(logits, axis=-1)
    real = ops.cast(labels != 0, "float32")
    labels = ops.cast(labels, predictions.dtype)
    hits = ops.cast(labels == predictions, "float32")
    return ops.sum(hits * real) / ops.sum(real)
