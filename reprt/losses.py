"""The masked cross-entropy of section 3.1."""

import math

import keras
from keras import ops

from reprt.constants import PAD_ID
from reprt.gradients import custom_gradient


@keras.saving.register_keras_serializable(package="reprt")
class MaskedCrossentropy(keras.losses.Loss):
    """Cross-entropy of logits, averaged over the tokens that are not padding.

        loss = sum_{i: y_i > 0} −log softmax(logits_i)[y_i] / #{i: y_i > 0}

    It is computed in float32 whatever the dtype of the logits, since half precision has
    no room for labels. A batch without any real token has loss 0. Under a
    `tf.distribute` strategy Keras takes this mean on each replica and averages the
    replicas; `reprt train` divides the whole batch's total loss by its tokens instead,
    so that its gradients do not depend on the number of replicas.

    Masking: labels of 0 and below are padding. Sample weights multiply the losses,
    and count in the divisor.

    Args:
        reduction: of the values of all tokens. Defaults to the mean over the real
            ones. `"sum"` and `None` are Keras' own.
        name: name of the loss.

    Call arguments:
        y_true: integer labels `(batch, length)`, 0 for padding.
        y_pred: logits `(batch, length, vocab_size)`.
        sample_weight: optional weights of tokens, `(batch, length)`, or of sentences,
            `(batch,)` or `(batch, 1)`. `reprt.data.pack` packs them beside labels.

    Returns:
        Scalar, nats per token; with `reduction=None` the losses of all tokens,
        `(batch, length)`.

    Raises:
        ValueError: for shapes of labels and logits that do not match.

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
    ):
        super().__init__(name=name, reduction=reduction, dtype="float32")

    def __call__(self, y_true, y_pred, sample_weight=None):
        # `fit` without labels.
        if y_true is None:
            check_labels(y_true, y_pred)
        weights = token_weights(y_true, sample_weight)
        return super().__call__(y_true, y_pred, weights)

    def call(self, y_true, y_pred):
        """Returns the loss of every token, 0 of padding: `(batch, length)`."""
        check_labels(y_true, y_pred)
        ids = ops.maximum(ops.cast(y_true, "int32"), PAD_ID)
        labels = ops.expand_dims(ids, -1)

        # By hand, because Keras' `sparse_categorical_crossentropy` takes 2.6 times the
        # time for the same numbers on a CPU, 4.4 times with deterministic operations
        # (TensorFlow, 64 sentences of 26 tokens, 7,000 ids).
        @custom_gradient
        def crossentropy(logits):
            p, normalizer, _ = softmax_and_normalizer(logits)
            loss = normalizer - ops.take_along_axis(logits, labels, axis=-1)

            def gradient(*arguments, upstream=None):
                # PyTorch's backend names it, the others do not.
                scale = arguments[0] if upstream is None else upstream
                q = ops.one_hot(labels[..., 0], p.shape[-1], dtype=p.dtype)
                return scale * (p - q)

            return loss, gradient

        losses = crossentropy(ops.cast(y_pred, "float32"))
        # Not by a product, for padding's own may be infinite.
        return ops.where(ids > PAD_ID, ops.squeeze(losses, -1), 0.0)

    def sum_and_count(self, y_true, y_pred):
        """Returns the total loss and the number of real tokens, two scalars.

        Add these over batches or replicas, and divide once.
        """
        losses = self.call(y_true, y_pred)
        return ops.sum(losses), ops.sum(real_tokens(y_true))


def check_labels(y_true, y_pred):
    """Raises a `ValueError` unless labels and logits are those of the same tokens.

    >>> import keras, reprt
    >>> reprt.losses.check_labels(keras.ops.ones((2, 3)), keras.ops.ones((2, 3, 5)))
    """
    if hasattr(y_true, "row_lengths"):
        raise ValueError(
            "Expected labels to be padded with 0, (batch, length). Received: rows of "
            "unequal lengths. labels.to_tensor() pads them."
        )
    # None where no labels are given.
    shape = tuple(getattr(y_true, "shape", ()))
    alike = True
    for labels, logits in zip(shape, y_pred.shape):
        alike = alike and (None in (labels, logits) or labels == logits)
    if len(y_pred.shape) != 3 or len(shape) != 2 or not alike:
        raise ValueError(
            "Expected labels of shape (batch, length), ids and not one-hot, and logits "
            f"of shape (batch, length, vocab_size). Received: {shape} and"
            f" {tuple(y_pred.shape)}. A target's labels are its inputs shifted by one."
        )


def softmax_and_normalizer(logits):
    """Returns `p = softmax(logits)`, the log of its divisor and the largest logit.

    The last two are `(…, 1)`.

    `log p = logits − normalizer`, in fewer passes than `log_softmax` and `exp` take.
    Logits are float32, `(…, vocab_size)`.

    >>> import keras, reprt
    >>> _, normalizer, _ = reprt.losses.softmax_and_normalizer(keras.ops.zeros((1, 4)))
    >>> round(float(normalizer[0, 0]), 4)  # ln 4
    1.3863
    """
    p = ops.softmax(logits)
    # The likeliest one's probability is its share of the sum of exponentials. Where
    # there is no token, a maximum needs its `initial`.
    largest = ops.max(logits, axis=-1, keepdims=True, initial=-math.inf)
    share = ops.max(p, axis=-1, keepdims=True, initial=0.0)
    return p, largest - ops.log(share), largest


def token_weights(y_true, sample_weight=None):
    """Returns what each token counts, 0.0 for padding, in float32.

    Labels and weights are those of `MaskedCrossentropy`.

    >>> import keras, reprt
    >>> found = reprt.losses.token_weights([[3, 1, 0], [1, 0, 0]], [1.0, 0.5])
    >>> keras.ops.convert_to_numpy(found).tolist()
    [[1.0, 1.0, 0.0], [0.5, 0.0, 0.0]]
    """
    weight = real_tokens(y_true)
    if sample_weight is None:
        return weight
    sample_weight = ops.cast(sample_weight, weight.dtype)
    if len(sample_weight.shape) == 1:
        sample_weight = ops.expand_dims(sample_weight, 1)
    # A product would stretch the one row of packed labels to weights of rows;
    # `broadcast_to` refuses them.
    return weight * ops.broadcast_to(sample_weight, ops.shape(weight))


def real_tokens(y_true):
    """Returns 1.0 on labels above 0 and 0.0 on others, which are padding, in float32.

    >>> import keras, reprt
    >>> keras.ops.convert_to_numpy(reprt.losses.real_tokens([[3, 1, 0]])).tolist()
    [[1.0, 1.0, 0.0]]
    """
    return ops.cast(ops.greater(y_true, PAD_ID), "float32")
