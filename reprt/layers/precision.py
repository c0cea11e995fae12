"""What is computed in float32 whatever the dtype policy."""

import keras
from keras import ops


def widened(x):
    """Returns a tensor in float32 at least, as sums and squares need it."""
    return ops.cast(x, keras.backend.result_type(x.dtype, "float32"))
