"""What is computed in float32 whatever the dtype policy."""

import keras
from keras import ops


def widened(x):
    """Returns a tensor in float32 at least.

    Half precision has too few digits for sums over many numbers, and too small a range
    for squares.
    """
    return ops.cast(x, keras.backend.result_type(x.dtype, "float32"))
