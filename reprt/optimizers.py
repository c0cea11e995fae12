"""Optimizers and learning rates by name."""

from typing import Any

import keras

from reprt.schedules import CosineSchedule, WarmupSchedule

# Biases, gains, shifts and attention's scale; backends write `bias`, `layer/bias:0`.
NOT_DECAYED = r"(^|/)(bias|gamma|beta|gain|scale)(:0)?$"


def _rate(schedule, model_dim, steps):
    """The learning rate of the settings of `[schedule]`."""
    constants = dict(schedule)
    if constants.pop("name") == "cosine":
        return CosineSchedule(constants.pop("steps") or steps, **constants)
    width = constants.pop("dim") or model_dim
    return WarmupSchedule(None if schedule.peak else width, **constants)


def _adam() -> Any:
    """Returns Keras' Adam; TensorFlow's updates a weight in one pass over it."""
    if keras.backend.backend() != "tensorflow":
        return keras.optimizers.Adam
    import tensorflow as tf

    class InOnePass(keras.optimizers.Adam):
        def update_step(self, gradient, variable, learning_rate):
            index = self._get_variable_index(variable)
            step = tf.cast(self.iterations.value + 1, variable.dtype)
            tf.raw_ops.ResourceApplyAdam(
                var=variable.handle,
                m=self._momentums[index].value.handle,
                v=self._velocities[index].value.handle,
                beta1_power=self.beta_1**step,
                beta2_power=self.beta_2**step,
                lr=tf.cast(learning_rate, variable.dtype),
                beta1=self.beta_1,
                beta2=self.beta_2,
                epsilon=self.epsilon,
                grad=gradient,
            )

    return InOnePass


def make_optimizer(optimizer, schedule, model_dim: int, steps: int | None = None):
    """Returns an optimizer with its learning rate.

    Args:
        optimizer: the settings of `[optimizer]`, such as `AdamSettings()`.
        schedule: those of `[schedule]`.
        model_dim: the width of the model's embedding.
        steps: of the whole run, where a schedule ends with it.

    >>> from reprt.training.settings import AdamSettings, InverseSqrtSettings
    >>> adam = make_optimizer(AdamSettings(), InverseSqrtSettings(), model_dim=64)
    >>> adam.beta_2
    0.98
    """
    # One name in every process, by which a checkpoint finds its variables.
    constants = dict(optimizer, name="optimizer")
    loss_scaling = constants.pop("loss_scaling")
    # Keras' Adam with a `weight_decay` is its AdamW.
    made = _adam()(_rate(schedule, model_dim, steps), **constants)
    made.exclude_from_weight_decay(var_names=[NOT_DECAYED])
    if loss_scaling == "dynamic":
        return keras.optimizers.LossScaleOptimizer(made, name="loss_scaling")
    return made
