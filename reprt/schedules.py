"""Learning rates as functions of the step: the schedule of eq. 15, and a cosine."""

import math

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="reprt")
class WarmupSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then decay with the inverse square root of the step.

        lr(step) = embedding_dim^-0.5 · min(step^-0.5, step · warmup_steps^-1.5)

    Keras counts steps from 0, so that, as in TensorFlow's tutorial, the first update
    has a rate of 0.

    Args:
        embedding_dim: m. The paper says the embedding's width, 64 for RePE and 128
            for the baseline, which gives RePE a rate sqrt(2) times higher. None
            where `peak` is given.
        warmup_steps: N_w, the step of the highest rate. Defaults to 4000.
        peak: the highest rate, instead of (m · N_w)^-0.5. Defaults to None.

    Raises:
        ValueError: unless one of `embedding_dim` and `peak` is given, and a warm-up.

    >>> import reprt
    >>> schedule = reprt.schedules.WarmupSchedule(peak=6e-4)
    >>> [round(float(schedule(step)), 6) for step in (0, 4000, 16000)]
    [0.0, 0.0006, 0.0003]

    Reference: section 3.1, eq. 15 of the paper.
    """

    def __init__(self, embedding_dim=None, warmup_steps=4000, peak=None):
        super().__init__()
        if (embedding_dim is None) == (peak is None) or warmup_steps < 1:
            raise ValueError(
                "Expected one of embedding_dim and peak, and a step or more of warm-up."
                f" Received: embedding_dim={embedding_dim}, peak={peak}, "
                f"warmup_steps={warmup_steps}."
            )
        if not (peak if embedding_dim is None else embedding_dim) > 0:
            raise ValueError(
                "Expected embedding_dim or peak to be positive. Received: "
                f"embedding_dim={embedding_dim}, peak={peak}."
            )
        self.embedding_dim = embedding_dim
        self.warmup_steps = warmup_steps
        self.peak = peak

    def __call__(self, step):
        step = ops.cast(step, "float32")
        decay = ops.rsqrt(ops.maximum(step, 1.0))
        if self.peak is None:
            factor = self.embedding_dim**-0.5
        else:
            factor = self.peak * self.warmup_steps**0.5
        return factor * ops.minimum(decay, step * self.warmup_steps**-1.5)

    def get_config(self):
        return {
            "embedding_dim": self.embedding_dim,
            "warmup_steps": self.warmup_steps,
            "peak": self.peak,
        }


def cosine(steps, warmup_steps=2000, peak=6e-4, floor=6e-5):
    """Returns Keras' linear warm-up and half cosine, by its ends.

    Keras counts steps from 0, as for `WarmupSchedule`: the first update has a rate of
    0, and the last one nearly the lowest rate.

    Args:
        steps: the length of the whole schedule. `reprt train` takes the run's own.
        warmup_steps: the step of the highest rate. Defaults to 2000.
        peak: the highest rate. Defaults to 6e-4.
        floor: the lowest rate after the warm-up, kept from then on. Defaults to 6e-5.

    Raises:
        ValueError: unless there are more `steps` than of the warm-up, and `floor` is
            at most `peak`.

    >>> import reprt
    >>> schedule = reprt.schedules.cosine(steps=10000)
    >>> [round(float(schedule(step)), 6) for step in (0, 2000, 6000, 10000)]
    [0.0, 0.0006, 0.00033, 6e-05]
    """
    if steps is None or not 0 < warmup_steps < steps < math.inf:
        raise ValueError(
            "Expected more steps than a cosine schedule's warm-up, of one or more. "
            f"Received: steps={steps}, warmup_steps={warmup_steps}. Set fewer "
            "`warmup_steps`, or train for more steps."
        )
    if floor > peak:
        raise ValueError(
            f"Expected `floor` to be at most `peak`. Received: {floor} and {peak}."
        )
    return keras.optimizers.schedules.CosineDecay(
        initial_learning_rate=0.0,
        decay_steps=steps - warmup_steps,
        alpha=floor / peak,
        warmup_target=peak,
        warmup_steps=warmup_steps,
    )
