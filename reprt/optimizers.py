"""Keras' optimizers by name, with the learning rates of a schedule."""

import math

import keras

from reprt.schedules import WarmupSchedule, cosine

# Biases, gains, shifts and attention's scale; backends write `bias`, `layer/bias:0`.
NOT_DECAYED = r"(^|/)(bias|gamma|beta|gain|scale)(:0)?$"

NAMES = (
    *(
        "Adam",
        "AdamW",
        "Adadelta",
        "Adafactor",
        "Adagrad",
        "Adamax",
        "Ftrl",
        "Lamb",
    ),
    *("Lion", "Muon", "Nadam", "RMSprop", "SGD"),
)
OPTIMIZERS = {name.lower(): getattr(keras.optimizers, name) for name in NAMES}


def _rate(schedule, steps):
    """Returns the learning rate of the settings of `[schedule]`."""
    constants = dict(schedule)
    if constants.pop("name") == "cosine":
        return cosine(constants.pop("steps") or steps, **constants)
    return WarmupSchedule(constants.pop("dim"), **constants)


class SquaredApart(keras.optimizers.Adam):
    """Keras' own Adam, with the sparse gradients of embeddings as TensorFlow has them.

    An id that a batch has several times has several gradients g_1, g_2, … The first
    moment takes their sum; the second takes g_1² + g_2² + …, not the sum's square.

    >>> SquaredApart(beta_2=0.98).beta_2
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
    kind = OPTIMIZERS[optimizer.name]
    if arguments.pop("sparse_gradients", "summed") == "squared_apart":
        _check_sparse()
        kind = SquaredApart  # with a weight decay it is AdamW
    made = kind(_rate(schedule, steps), **arguments)
    made.exclude_from_weight_decay(var_names=[NOT_DECAYED])
    if loss_scaling == "dynamic":
        return keras.optimizers.LossScaleOptimizer(made, name="loss_scaling")
    return made


def _check_sparse():
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            "sparse_gradients = 'squared_apart' takes the backend tensorflow, "
            f"whose gradients are sparse. Received: {keras.backend.backend()}."
        )


def take_dense_gradients(optimizer):
    """Makes TensorFlow add up an id's gradients before an optimizer squares them.

    Keras squares the gradient of each occurrence of an id in a batch. Adam's second
    moment is then a sum of squares, not the square of the sum. Every row of the table
    moves in both cases. `SquaredApart` is left as it is.

    >>> take_dense_gradients(adam := keras.optimizers.Adam())
    >>> "apply" in vars(adam)
    True
    """
    if isinstance(optimizer, SquaredApart):
        return
    if "apply" in vars(optimizer):  # it does already
        return
    import tensorflow as tf

    apply = optimizer.apply

    def apply_dense(grads, trainable_variables=None):
        dense = [None if g is None else tf.convert_to_tensor(g) for g in grads]
        return apply(_finite_for_all(optimizer, dense), trainable_variables)

    optimizer.apply = apply_dense
    inner = getattr(
        optimizer, "inner_optimizer", optimizer
    )  # within loss scaling
    add_up = inner._all_reduce_sum_gradients

    def add_up_of_several(pairs):
        return add_up(pairs) if several_replicas() else pairs

    inner._all_reduce_sum_gradients = add_up_of_several


def several_replicas() -> bool:
    """Returns whether there are several replicas, whose tensors have to be added up.

    A sum over one replica changes nothing, but TensorFlow registers a gradient for it
    that keeps the whole graph in memory.

    >>> several_replicas()
    False
    """
    import tensorflow as tf

    return tf.distribute.get_strategy().num_replicas_in_sync > 1


def _finite_for_all(optimizer, gradients):
    """Makes a gradient NaN on all replicas if any is not finite on one of them.

    Otherwise the replicas would disagree on whether to skip an update.
    """
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    scales = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    if replica is None or not scales or not several_replicas():
        return gradients
    finite = optimizer.check_finite(gradients)
    fault = replica.all_reduce("SUM", tf.where(finite, 0.0, math.nan))
    first = next(
        n for n, gradient in enumerate(gradients) if gradient is not None
    )
    marked = gradients[first] + tf.cast(fault, gradients[first].dtype)
    return [*gradients[:first], marked, *gradients[first + 1 :]]
