"""Graphs of `fit` go with their models; gradients are right in and around graphs."""

import gc

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework.func_graph import FuncGraph
from tensorflow.python.framework.ops import gradient_registry
from tiny import LABELS, SOURCE, TARGET

from reprt.data import pack
from reprt.losses import MaskedCrossentropy


def users_model():
    """A model of Keras' own layers, whose logits our loss takes as they are."""
    layers = keras.layers.Embedding(10, 4), keras.layers.Dense(10)
    model = keras.Sequential(layers)
    model.compile("adam", MaskedCrossentropy())
    return model


def count_graphs():
    gc.collect()
    graphs = sum(isinstance(item, FuncGraph) for item in gc.get_objects())
    return graphs, len(gradient_registry.list())


@pytest.mark.parametrize(
    "kind", ["padded", pytest.param("packed", marks=pytest.mark.long), "users"]
)
def test_fits_leave_no_graph_behind(kind, make_model):
    def fit():
        if kind == "users":
            model, batch = users_model(), (TARGET, LABELS)
        else:
            model, batch = make_model("repe"), ((SOURCE, TARGET), LABELS)
            model.compile("adam", MaskedCrossentropy())
        if kind == "packed":
            batch = pack(*batch)
        batches = tf.data.Dataset.from_tensors(batch)
        model.fit(batches, verbose=0, shuffle=False)
        model.evaluate(batches, verbose=0)

    fit()
    counts = count_graphs()
    fit()
    fit()
    assert count_graphs() == counts


@pytest.mark.parametrize("place", ["within", "around"])
def test_gradients_within_and_around_a_graph_are_those_without_one(place):
    logits = tf.constant(
        np.random.default_rng(0).normal(size=(*TARGET.shape, 10))
    )

    def gradient(loss):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            value = loss(LABELS, logits)
        return tape.gradient(value, logits)

    loss = MaskedCrossentropy()
    if place == "within":
        gradients = tf.function(lambda: gradient(loss))()
    else:
        gradients = gradient(tf.function(loss))
    np.testing.assert_allclose(gradients, gradient(loss), rtol=1e-6)
