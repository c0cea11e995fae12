"""Functions with gradients of their own, whose graphs do not outlive their use."""

import functools

import keras
from keras import ops

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


def _in_graph(function, arguments):
    """What `tf.custom_gradient` does in a graph, except where the gradient is held."""
    import tensorflow as tf

    # TensorFlow has no public name for what tells a `tf.GradientTape` of a gradient.
    from tensorflow.python.eager import record

    _register()
    arguments = [tf.identity(argument) for argument in arguments]
    with record.stop_recording():
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
