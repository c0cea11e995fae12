"""Optimizers and learning rates by name."""

import dataclasses

import keras

from reprt.schedules import WarmupSchedule

# Each takes the model's own m and the settings of `[schedule]`.
SCHEDULES = {
    "inverse_sqrt": lambda own, dim, warmup_steps: WarmupSchedule(
        dim or own, warmup_steps
    )
}
# Each takes the schedule and the settings of `[optimizer]`.
OPTIMIZERS = {"adam": keras.optimizers.Adam}


def make_optimizer(optimizer, schedule, model_dim: int):
    """Returns an optimizer with its learning rate.

    Args:
        optimizer: settings such as `reprt.runs.run_settings.AdamSettings`, whose `name`
            is one of `OPTIMIZERS`.
        schedule: settings such as `reprt.runs.run_settings.InverseSqrtSettings`, whose
            `name` is one of `SCHEDULES`.
        model_dim: the width of the model's embedding.

    Example:

    >>> from reprt.runs.run_settings import AdamSettings, InverseSqrtSettings
    >>> adam = make_optimizer(AdamSettings(), InverseSqrtSettings(), model_dim=64)
    >>> adam.beta_2
    0.98
    """
    rate = SCHEDULES[schedule.name](model_dim, **_constants(schedule))
    constants = _constants(optimizer)
    loss_scaling = constants.pop("loss_scaling")
    # One name in every process, by which a checkpoint finds its variables.
    made = OPTIMIZERS[optimizer.name](rate, name="optimizer", **constants)
    if loss_scaling == "dynamic":
        return keras.optimizers.LossScaleOptimizer(made, name="loss_scaling")
    return made


def _constants(settings) -> dict:
    constants = dataclasses.asdict(settings)
    del constants["name"]
    return constants
