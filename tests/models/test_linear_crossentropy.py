"""The loss in chunks against the loss of the logits."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from formula import array_by_formula

from reprt.linear_crossentropy import CHUNKS, linear_crossentropy
from reprt.losses import MaskedCrossentropy, real_tokens

WIDTH, VOCABULARY = 6, 11
KERNEL = array_by_formula((WIDTH, VOCABULARY), 1, scale=2)
BIAS = array_by_formula((VOCABULARY,), 2, scale=2)


def weights(labels):
    """1, 2 or 3 for a token, and 0 for padding."""
    return real_tokens(labels) * (1 + tf.cast(labels, "float32") % 3)


def loss_from_logits(states, kernel, bias, labels, smoothing=0.0):
    logits, weight = tf.matmul(states, kernel) + bias, weights(labels)
    loss = tf.reduce_sum(
        MaskedCrossentropy().call(labels[None], logits[None]) * weight
    )
    smoothed_losses = keras.losses.categorical_crossentropy(
        tf.one_hot(labels, VOCABULARY), logits, True, smoothing
    )
    hits = tf.argmax(logits, -1) == tf.cast(labels, tf.int64)
    return tf.reduce_sum(smoothed_losses * weight), loss, hits


def loss_in_chunks(states, kernel, bias, labels, smoothing=0.0):
    weight = weights(labels)
    return linear_crossentropy(states, kernel, bias, labels, weight, smoothing)


def example(tokens):
    states = array_by_formula((tokens, WIDTH), 3, scale=2)
    labels = (
        np.arange(tokens, dtype="int32") * 7 % VOCABULARY
    )  # some are padding
    return states, KERNEL, BIAS, labels


def with_gradients(function, arrays, labels, smoothing=0.0, scale=0.3):
    tensors = [tf.constant(array) for array in arrays]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        outputs = function(*tensors, tf.constant(labels), smoothing)
        objective = scale * outputs[0]
    return [*outputs, *tape.gradient(objective, tensors)]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("tokens", [0, 1, CHUNKS - 1, CHUNKS, CHUNKS + 1, 50])
def test_losses_hits_and_gradients_are_those_of_the_logits(tokens, smoothing):
    *arrays, labels = example(tokens)
    for output, expected in zip(
        with_gradients(loss_in_chunks, arrays, labels, smoothing),
        with_gradients(loss_from_logits, arrays, labels, smoothing),
        strict=True,
    ):
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_counts_a_frequent_label(dtype):
    """A sum of ones in bfloat16 stands still at 256."""
    tokens = 5000
    arrays = np.zeros((tokens, WIDTH)), np.zeros((WIDTH, 4)), np.zeros(4)
    arrays = [array.astype("float32") for array in arrays]
    arrays[0] += 1
    labels = np.full(tokens, 2, "int32")
    expected = with_gradients(loss_in_chunks, arrays, labels, 0.1, scale=1.0)
    tensors = [tf.cast(array, dtype) for array in arrays]
    outputs = with_gradients(loss_in_chunks, tensors, labels, 0.1, scale=1.0)
    for gradient, expected_gradient in zip(
        outputs[-2:], expected[-2:], strict=True
    ):
        np.testing.assert_allclose(
            tf.cast(gradient, "float32"), expected_gradient, rtol=0.01
        )


def test_very_unlikely_labels_have_a_finite_loss():
    kernel = KERNEL * 0
    bias = np.where(np.arange(VOCABULARY) == 3, 200.0, 0.0).astype("float32")
    states = array_by_formula((2, WIDTH))
    loss, _, hits = loss_in_chunks(states, kernel, bias, np.array([5, 3]))
    assert float(loss) == pytest.approx(3 * 200) and list(hits) == [False, True]


@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "XLA"])
def test_no_tensor_has_the_logits_of_all_tokens(jit_compile):
    tokens, vocabulary = 400, 300

    @tf.function(jit_compile=jit_compile)
    def step(states, kernel, bias, labels):
        with tf.GradientTape() as tape:
            tape.watch((states, kernel, bias))
            loss, *_ = loss_in_chunks(states, kernel, bias, labels, 0.1)
        return tape.gradient(loss, (states, kernel, bias))

    arguments = (
        tf.ones((tokens, 8)),
        tf.ones((8, vocabulary)),
        tf.ones(vocabulary),
        tf.ones(tokens, tf.int32),
    )
    graph = step.get_concrete_function(*arguments).graph
    sizes = [
        output.shape.num_elements()
        for operation in graph.get_operations()
        for output in operation.outputs
        if output.shape.is_fully_defined()
    ]
    assert max(sizes) <= -(-tokens // CHUNKS) * vocabulary
    step(*arguments)
