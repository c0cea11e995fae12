"""Graphs where the backend has them."""

from collections.abc import Callable

import keras


def compiled(function: Callable) -> Callable:
    """Returns a function of tensors as the backend runs it fastest.

    TensorFlow makes a graph that soon serves every shape, JAX one for each shape, and
    PyTorch runs the function as it stands.
    """
    match keras.backend.backend():
        case "tensorflow":
            import tensorflow as tf

            return tf.function(function, reduce_retracing=True)
        case "jax":
            import jax

            return jax.jit(function)
    return function
