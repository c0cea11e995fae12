"""Optimizers and learning rates by name."""

from collections.abc import Callable
from typing import Any

import keras

from reprt.schedules import CosineSchedule, WarmupSchedule

# Biases, gains, shifts and attention's learnt scale, as each backend names variables:
# `bias`, `layer/bias:0`.
NOT_DECAYED = r"(^|/)(bias|gamma|beta|gain|scale)(:0)?$"


def _inverse_sqrt(own_dim, run_steps, *, dim, peak, **constants):
    width = (dim or own_dim) if peak is None else None
    return WarmupSchedule(width, peak=peak, **constants)


def _cosine(own_dim, run_steps, *, steps, **constants):
    return CosineSchedule(steps or run_steps, **constants)


def _in_one_pass(kind: Any) -> Any:
    """Returns a Keras Adam whose update of a weight is one pass over it."""
    if keras.backend.backend() != "tensorflow":
        return kind
    import tensorflow as tf

    class InOnePass(kind):
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


_ADAM, _ADAMW = map(_in_one_pass, (keras.optimizers.Adam, keras.optimizers.AdamW))


def _adamw(*arguments, **constants):
    made = _ADAMW(*arguments, **constants)
    made.exclude_from_weight_decay(var_names=[NOT_DECAYED])
    return made


# Each takes the model's own m, the steps of the run and the settings of `[schedule]`.
SCHEDULES: dict[str, Callable] = {"inverse_sqrt": _inverse_sqrt, "cosine": _cosine}
# Each takes the schedule and the settings of `[optimizer]`.
OPTIMIZERS: dict[str, Callable] = {"adam": _ADAM, "adamw": _adamw}


def make_optimizer(optimizer, schedule, model_dim: int, steps: int | None = None):
    """Returns an optimizer with its learning rate.

    Args:
        optimizer: settings whose `name` is one of `OPTIMIZERS`.
        schedule: settings whose `name` is one of `SCHEDULES`.
        model_dim: the width of the model's embedding.
        steps: of the whole run, where a schedule ends with it.

    >>> from reprt.training.settings import AdamSettings, InverseSqrtSettings
    >>> adam = make_optimizer(AdamSettings(), InverseSqrtSettings(), model_dim=64)
    >>> adam.beta_2
    0.98
    """
    of_schedule, constants = dict(schedule), dict(optimizer)
    schedule_name, name = of_schedule.pop("name"), constants.pop("name")
    loss_scaling = constants.pop("loss_scaling")
    rate = SCHEDULES[schedule_name](model_dim, steps, **of_schedule)
    # One name in every process, by which a checkpoint finds its variables.
    made = OPTIMIZERS[name](rate, name="optimizer", **constants)
    if loss_scaling == "dynamic":
        return keras.optimizers.LossScaleOptimizer(made, name="loss_scaling")
    return made
