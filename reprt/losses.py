"""The masked cross-entropy of section 3.1."""

import keras
from keras import ops

from reprt.constants import PAD_ID


@keras.saving.register_keras_serializable(package="reprt")
class MaskedCrossentropy(keras.losses.Loss):
    """Cross-entropy of logits, averaged over the tokens that are not padding.

        loss = sum_{i: y_i ≠ 0} −log softmax(logits_i)[y_i] / #{i: y_i ≠ 0}

    It is computed in float32 whatever the dtype of the logits. A batch without any real
    token has loss 0. Under a `tf.distribute` strategy Keras takes this mean on each
    replica and averages the replicas; `reprt train` divides the total of
    `sum_and_count` by the tokens of the whole batch instead, so that its gradients do
    not depend on the number of replicas.

    Masking: labels 0 are padding. Sample weights multiply the losses, and count in
    the divisor.

    Args:
        reduction: of the values of all tokens. Defaults to the mean over the real
            ones. `"sum"` and `None` are Keras' own.
        name: name of the loss.
        **kwargs: passed to `keras.losses.Loss`.

    Call arguments:
        y_true: integer labels `(batch, length)`, 0 for padding.
        y_pred: logits `(batch, length, vocab_size)`.
        sample_weight: optional weights, `(batch, length)`.

    Returns:
        Scalar, nats per token.

    Raises:
        ValueError: for labels and logits whose shapes do not match.

    Example:

    >>> import keras, reprt
    >>> logits = keras.ops.zeros((1, 2, 4))
    >>> loss = reprt.losses.MaskedCrossentropy()(keras.ops.array([[3, 0]]), logits)
    >>> round(float(loss), 4)  # ln 4
    1.3863

    Reference: section 3.1 of the paper.
    """

    def __init__(
        self,
        reduction="mean_with_sample_weight",
        name="masked_crossentropy",
        **kwargs,
    ):
        super().__init__(name=name, reduction=reduction, **kwargs)

    def __call__(self, y_true, y_pred, sample_weight=None):
        weight = real_tokens(y_true)
        if sample_weight is not None:
            weight = weight * ops.cast(sample_weight, weight.dtype)
        return super().__call__(y_true, y_pred, weight)

    def call(self, y_true, y_pred):
        """Returns the loss of every token, padding included: `(batch, length)`."""
        if len(y_pred.shape) != 3 or len(y_true.shape) != 2:
            raise ValueError(
                "Expected labels of shape (batch, length), ids and not one-hot, and "
                "logits of shape (batch, length, vocab_size). Received: "
                f"{tuple(y_true.shape)} and "
                f"{tuple(y_pred.shape)}."
            )
        return keras.losses.sparse_categorical_crossentropy(
            ops.cast(y_true, "int32"), ops.cast(y_pred, "float32"), from_logits=True
        )

    def sum_and_count(self, y_true, y_pred):
        """Returns the total loss and the number of real tokens, two scalars.

        Add these over batches or replicas, and divide once.

        Args:
            y_true: integer labels `(batch, length)`, 0 for padding.
            y_pred: logits `(batch, length, vocab_size)`.
        """
        weight = real_tokens(y_true)
        return ops.sum(self.call(y_true, y_pred) * weight), ops.sum(weight)


def real_tokens(y_true):
    """Returns 1.0 on labels that are not padding and 0.0 on padding, in float32.

    Args:
        y_true: integer labels of any shape, 0 for padding.

    Example:

    >>> import keras, reprt
    >>> keras.ops.convert_to_numpy(reprt.losses.real_tokens([[3, 1, 0]])).tolist()
    [[1.0, 1.0, 0.0]]
    """
    return ops.cast(ops.not_equal(y_true, PAD_ID), "float32")
