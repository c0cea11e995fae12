"""What has a dtype of its own, whatever policy and floatx say."""

import keras
from keras import ops


def at_least_float32(x):
    """Returns a tensor in float32 at least, as sums and squares need it."""
    return ops.cast(x, keras.backend.result_type(x.dtype, "float32"))


def indices(count):
    """Returns 0, 1, … as int32; `ops.arange` itself follows floatx."""
    return ops.arange(count, dtype="int32")
