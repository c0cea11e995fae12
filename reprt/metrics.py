"""How often the most likely next token is the right one."""

import math

import keras
from keras import ops

from reprt.constants import PAD_ID
from reprt.losses import check_labels, token_weights


@keras.saving.register_keras_serializable(package="reprt")
class TokenAccuracy(keras.metrics.Metric):
    """Share of the tokens that are not padding whose label has the highest logit.

    Of several equal logits each counts as the highest, unlike in Keras' accuracy: with
    constant logits the share is 1. Half precision makes more logits equal. Correct and
    counted tokens are added up over batches and replicas and divided once. Without any
    real token the result is 0.

    Masking: labels of 0 and below are padding.

    Args:
        name: name of the metric.
        **kwargs: passed to `keras.metrics.Metric`.

    >>> import keras, reprt
    >>> metric = reprt.metrics.TokenAccuracy()
    >>> logits = keras.ops.one_hot(keras.ops.array([[1, 2, 3]]), 4)
    >>> metric.update_state(keras.ops.array([[1, 3, 0]]), logits)
    >>> float(metric.result())
    0.5
    """

    def __init__(self, name="token_accuracy", **kwargs):
        super().__init__(name=name, **kwargs)
        self.correct = self.add_variable(
            (),
            "zeros",
            dtype="float32",
            name="correct",
        )
        self.count = self.add_variable(
            (),
            "zeros",
            dtype="float32",
            name="count",
        )

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true = ops.convert_to_tensor(y_true)
        y_pred = ops.convert_to_tensor(y_pred)
        check_labels(y_true, y_pred)
        weight = token_weights(y_true, sample_weight)
        correct = correct_tokens(y_true, y_pred) * weight
        self.correct.assign_add(ops.sum(correct))
        self.count.assign_add(ops.sum(weight))

    def result(self):
        return ops.divide_no_nan(self.correct, self.count)


def correct_tokens(y_true, y_pred):
    """Returns 1.0 where no token is likelier than the label, else 0.0, in float32.

    Args:
        y_true: integer labels; padding is compared like any other.
        y_pred: logits, of the labels' shape and an axis more.

    >>> import keras, reprt
    >>> logits = keras.ops.one_hot([[3, 2]], 4)
    >>> correct = reprt.metrics.correct_tokens([[3, 1]], logits)
    >>> keras.ops.convert_to_numpy(correct).tolist()
    [[1.0, 0.0]]
    """
    labels = ops.maximum(ops.cast(y_true, "int32"), PAD_ID)
    scores = ops.take_along_axis(y_pred, labels[..., None], axis=-1)
    # Keras' `argmax` takes five times as long as a maximum.
    largest = ops.max(y_pred, axis=-1, initial=-math.inf)
    return ops.cast(scores[..., 0] >= largest, "float32")
