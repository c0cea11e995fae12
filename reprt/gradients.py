"""Functions whose gradients are better than those that Keras' operations have."""

import functools

import keras
from keras import ops

# The axes of a tensor of four, with the last two exchanged.
SWAPPED = (0, 1, 3, 2)
# The name of the one gradient in TensorFlow's registry.
NAME = "ReprtCustomGradient"


def custom_gradient(function):
    """Returns a function with a gradient of its own, as `keras.ops.custom_gradient`.

    TensorFlow's own decorator registers the gradient of each call in a graph under a
    new name. It never empties that registry, so every graph stays in memory. Here the
    graph itself holds its gradients, and the registry holds one function that looks
    them up.

    Args:
        function: takes tensors by position and returns a tensor, or a tuple of them,
            and a function from their gradients to those of the arguments.

    >>> from keras import ops
    >>> from reprt.gradients import custom_gradient
    >>> doubled = custom_gradient(lambda x: (2 * x, lambda upstream: 2 * upstream))
    >>> float(doubled(ops.array(3.0)))
    6.0
    """
    if keras.backend.backend() != "tensorflow":
        return ops.custom_gradient(function)
    import tensorflow as tf

    def call(*arguments):
        if tf.executing_eagerly():
            return tf.custom_gradient(function)(*arguments)
        return _in_graph(function, arguments)

    return call


def times_transposed(x, y):
    """Returns x yᵀ of the last two of four axes.

    Keras' product takes yᵀ as a tensor, and the gradient of y would be transposed once
    more. TensorFlow's takes the transposition as a flag, in gradients as well.

    >>> from keras import ops
    >>> product = times_transposed(ops.ones((1, 1, 2, 3)), ops.ones((1, 1, 4, 3)))
    >>> tuple(product.shape)
    (1, 1, 2, 4)
    """
    if keras.backend.backend() != "tensorflow":
        return ops.matmul(x, ops.transpose(y, SWAPPED))
    import tensorflow as tf

    return tf.matmul(x, y, transpose_b=True)


def _in_graph(function, arguments):
    """What `tf.custom_gradient` does in a graph, except where the gradient is held."""
    import tensorflow as tf

    # TensorFlow has no public name for what tells a `tf.GradientTape` of a gradient.
    from tensorflow.python.eager import record

    _register()
    arguments = [tf.identity(argument) for argument in arguments]
    # A tape around this one, for second derivatives, records what the function does.
    results, gradient = function(*arguments)
    flat = tf.nest.flatten(results)
    inputs = [*flat, *arguments]
    graph = inputs[0].graph
    with graph.gradient_override_map({"IdentityN": NAME}):
        outputs = tf.identity_n(inputs)

    def backward(*upstream):
        gradients = tf.nest.flatten(gradient(*upstream[: len(flat)]))
        # The results themselves are inputs, through which no gradient goes.
        return [None] * len(flat) + gradients

    if not hasattr(graph, "reprt_gradients"):
        graph.reprt_gradients = {}
    graph.reprt_gradients[outputs[0].op.name] = backward
    record.record_operation(NAME, outputs, inputs, backward)
    return tf.nest.pack_sequence_as(results, outputs[: len(flat)])


@functools.cache
def _register():
    import tensorflow as tf

    @tf.RegisterGradient(NAME)
    def gradient(operation, *upstream):
        return operation.graph.reprt_gradients[operation.name](*upstream)
