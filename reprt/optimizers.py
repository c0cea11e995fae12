"""Keras' optimizers by name, with the learning rates of a schedule."""

import math

import keras

from reprt.schedules import WarmupSchedule, cosine

# Biases, gains, shifts and attention's scale; backends write `bias`, `layer/bias:0`.
NOT_DECAYED = r"(^|/)(bias|gamma|beta|gain|scale)(:0)?$"

NAMES = (
    "Adam",
    "AdamW",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adamax",
    "Ftrl",
    "Lamb",
    "Lion",
    "Muon",
    "Nadam",
    "RMSprop",
    "SGD",
)
OPTIMIZERS = {name.lower(): getattr(keras.optimizers, name) for name in NAMES}


def _rate_of(schedule, steps):
    """Returns the learning rate of the settings of `[schedule]`."""
    constants = dict(schedule)
    if constants.pop("name") == "cosine":
        return cosine(constants.pop("steps") or steps, **constants)
    return WarmupSchedule(constants.pop("dim"), **constants)


@keras.saving.register_keras_serializable(package="reprt")
class OccurrenceSquaringAdam(keras.optimizers.Adam):
    """Keras' own Adam, with the sparse gradients of embeddings as TensorFlow has them.

    An id that a batch has several times has several gradients g_1, g_2, … The first
    moment takes their sum; the second takes g_1² + g_2² + …, not the sum's square.

    >>> OccurrenceSquaringAdam(beta_2=0.98).beta_2
    0.98
    """


def make_optimizer(optimizer, schedule, steps: int | None = None):
    """Returns an optimizer with its learning rate.

    Args:
        optimizer: the settings of `[optimizer]`, such as `AdamSettings()`.
        schedule: those of `[schedule]`, with a `dim` or a `peak`.
        steps: of the whole run, where a schedule ends with it.

    >>> from reprt.training.settings import AdamSettings, InverseSqrtSettings
    >>> adam = make_optimizer(AdamSettings(), InverseSqrtSettings(dim=64))
    >>> adam.beta_2
    0.98
    """
    # One name in every process, by which a checkpoint finds its variables.
    arguments = dict(optimizer, name="optimizer")
    loss_scaling = arguments.pop("loss_scaling")
    optimizer_class = OPTIMIZERS[optimizer.name]
    if arguments.pop("sparse_gradients", "summed") == "squared_apart":
        _check_sparse()
        # With a weight decay it is AdamW.
        optimizer_class = OccurrenceSquaringAdam
    keras_optimizer = optimizer_class(_rate_of(schedule, steps), **arguments)
    keras_optimizer.exclude_from_weight_decay(var_names=[NOT_DECAYED])
    if loss_scaling == "dynamic":
        return keras.optimizers.LossScaleOptimizer(
            keras_optimizer, name="loss_scaling"
        )
    return keras_optimizer


def _check_sparse():
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            "sparse_gradients = 'squared_apart' takes the backend tensorflow, "
            f"whose gradients are sparse. Received: {keras.backend.backend()}."
        )


def dense_gradients(optimizer, gradients):
    """Returns gradients as dense tensors, on TensorFlow.

    Those of an id that a batch has several times are summed.

    Keras squares the gradient of each occurrence of an id in a batch. Adam's second
    moment is then a sum of squares, not the square of the sum. Every row of the table
    moves in both cases. Those for a `OccurrenceSquaringAdam` stay as they are.

    >>> import tensorflow as tf
    >>> twice = tf.IndexedSlices(tf.ones((2, 1)), tf.constant([1, 1]), [3, 1])
    >>> [gradient] = dense_gradients(keras.optimizers.Adam(), [twice])
    >>> gradient.numpy().ravel().tolist()
    [0.0, 2.0, 0.0]
    """
    import tensorflow as tf

    if isinstance(optimizer, OccurrenceSquaringAdam):
        return gradients
    dense = []
    for gradient in gradients:
        if gradient is not None:
            gradient = tf.convert_to_tensor(gradient)
        dense.append(gradient)
    return dense


def update(optimizer, gradients, weights):
    """Lets an optimizer take a step of `fit`, on TensorFlow.

    The optimizer adds up the gradients of all replicas. On one replica there is
    nothing to add up, but TensorFlow registers a gradient for that sum, which keeps the
    whole graph in memory. So the optimizer is called where it does not add up, which
    optimizers refuse under a strategy, and those that scale the loss refuse anywhere.

    >>> import keras
    >>> weight = keras.Variable([1.0])
    >>> optimizer = keras.optimizers.SGD(0.5)
    >>> update(optimizer, [keras.ops.ones(1)], [weight])
    >>> weight.numpy().tolist()
    [0.5]
    """
    import tensorflow as tf

    scales_loss = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    gradients = dense_gradients(optimizer, gradients)
    if several_replicas() and scales_loss:
        gradients = _finite_for_all(optimizer, gradients)
    if tf.distribute.has_strategy() or scales_loss:
        optimizer.apply(gradients, weights)
        return

    def apply(strategy):
        optimizer.apply(gradients, weights)

    tf.distribute.get_replica_context().merge_call(apply)


def several_replicas() -> bool:
    """Returns whether there are several replicas, whose tensors have to be added up.

    >>> several_replicas()
    False
    """
    import tensorflow as tf

    return tf.distribute.get_strategy().num_replicas_in_sync > 1


def _finite_for_all(optimizer, gradients):
    """Makes gradients NaN on all replicas if any is not finite on one of them.

    Otherwise the replicas would disagree on whether to skip an update.
    """
    import tensorflow as tf

    finite = optimizer.check_finite(gradients)
    fault = tf.where(finite, 0.0, math.nan)
    fault = tf.distribute.get_replica_context().all_reduce("SUM", fault)
    results = []
    for gradient in gradients:
        if gradient is not None:
            gradient = gradient + tf.cast(fault, gradient.dtype)
        results.append(gradient)
    return results
