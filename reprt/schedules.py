"""The warm-up schedule of eq. 25."""

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
            for the baseline, which gives RePE a rate sqrt(2) times higher.
        warmup_steps: N_w, the step of the highest rate. Defaults to 4000.

    Raises:
        ValueError: for an argument that is not positive.

    Example:

    >>> import reprt
    >>> schedule = reprt.schedules.WarmupSchedule(embedding_dim=64)
    >>> [round(float(schedule(step)), 6) for step in (0, 4000, 16000)]
    [0.0, 0.001976, 0.000988]

    Reference: eq. 25 of the paper.
    """

    def __init__(self, embedding_dim, warmup_steps=4000):
        super().__init__()
        if not (embedding_dim > 0 and warmup_steps > 0):
            raise ValueError(
                "Expected embedding_dim and warmup_steps to be positive. Received: "
                f"embedding_dim={embedding_dim}, warmup_steps={warmup_steps}."
            )
        self.embedding_dim = embedding_dim
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        step = ops.cast(step, "float32")
        decay = ops.rsqrt(ops.maximum(step, 1.0))
        return self.embedding_dim**-0.5 * ops.minimum(
            decay, step * self.warmup_steps**-1.5
        )

    def get_config(self):
        return {
            "embedding_dim": self.embedding_dim,
            "warmup_steps": self.warmup_steps,
        }
