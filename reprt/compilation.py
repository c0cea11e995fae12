"""Graphs where the backend has them."""

from collections.abc import Callable

import keras


def compiled(function: Callable, model) -> Callable:
    """Returns a function of tensors as the backend runs it fastest.

    TensorFlow makes a graph that soon serves every shape, JAX one for each shape, and
    PyTorch runs the function as it stands. Each call uses the weights that the model
    has by then.

    Args:
        function: takes and returns tensors, or tuples of them.
        model: the model that it calls.
    """
    match keras.backend.backend():
        case "tensorflow":
            import tensorflow as tf

            return tf.function(function, reduce_retracing=True)
        case "jax":
            import jax

            # JAX would take weights for constants, those of the first call.
            @jax.jit
            def with_weights(weights, *arguments):
                mapping = list(zip(model.variables, weights, strict=True))
                with keras.StatelessScope(state_mapping=mapping):
                    return function(*arguments)

            return lambda *arguments: with_weights(
                [variable.value for variable in model.variables], *arguments
            )
    return function
