"""The layer harness."""

import json
import tempfile

import keras
import numpy as np
import pytest


def _symbolic(array):
    return keras.KerasTensor(array.shape, array.dtype)


def _shapes(outputs):
    return [tuple(output.shape) for output in keras.tree.flatten(outputs)]


def check_layer(make, inputs, output_shapes, weights, call=None):
    """Holds one layer against what every layer owes its users.

    Args:
        make: from keyword arguments of `keras.layers.Layer` to the layer.
        inputs: NumPy arrays, the layer's positional call arguments.
        output_shapes: of the layer's flattened outputs.
        weights: the number of weight tensors.
        call: call arguments by name.
    """
    call = call or {}
    _check_config(make)
    layer = make()
    outputs = layer(*inputs, **call)
    assert _shapes(outputs) == output_shapes
    assert len(layer.weights) == weights
    if not call:
        symbolic = make()(*[_symbolic(np.asarray(array)) for array in inputs])
        assert _shapes(symbolic) == output_shapes
    _check_compiled_step(make, inputs, call)
    _check_saving(make, inputs, call)
    for policy in ("float32", "mixed_bfloat16", "mixed_float16"):
        _check_policy(make, inputs, call, policy)


def _check_config(make):
    layer = make(name="given_name")
    config = json.loads(json.dumps(layer.get_config()))
    again = type(layer).from_config(config)
    assert again.get_config() == layer.get_config()
    assert set(dir(again)) == set(dir(layer))
    serialized = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
    assert serialized["registered_name"] == f"reprt>{type(layer).__name__}"
    revived = keras.saving.deserialize_keras_object(serialized)
    assert revived.get_config() == layer.get_config()


def _check_compiled_step(make, inputs, call):
    """One step of `fit`, compiled by XLA, which finds Python that needs values."""

    class Wrapper(keras.Model):
        def __init__(self):
            super().__init__()
            self.layer = make()
            self.scale = self.add_weight(shape=(), initializer="ones")

        def call(self, arrays):
            outputs = keras.tree.flatten(self.layer(*arrays, **call))
            means = [keras.ops.mean(output, axis=(1, 2)) for output in outputs]
            return self.scale * sum(means)

    model = Wrapper()
    model.compile("sgd", "mse", jit_compile=True)
    arrays = [np.asarray(array) for array in inputs]
    history = model.fit(arrays, np.ones(len(arrays[0])), verbose=0)
    assert np.isfinite(history.history["loss"]).all()


def _check_saving(make, inputs, call):
    arguments = [
        keras.Input(array.shape[1:], dtype=np.asarray(array).dtype.name)
        for array in inputs
    ]
    model = keras.Model(arguments, make()(*arguments, **call))
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.keras")
        revived = keras.saving.load_model(f"{folder}/model.keras")
    for before, after in zip(
        keras.tree.flatten(model(list(inputs))),
        keras.tree.flatten(revived(list(inputs))),
        strict=True,
    ):
        np.testing.assert_array_equal(before, after)


def _check_policy(make, inputs, call, policy):
    layer = make(dtype=policy)
    outputs = keras.tree.flatten(layer(*inputs, **call))
    for output in outputs:
        dtype = keras.backend.standardize_dtype(output.dtype)
        assert dtype == layer.compute_dtype
        assert np.isfinite(np.asarray(output, dtype="float32")).all()
    assert all(weight.dtype == "float32" for weight in layer.weights)
    for sublayer in layer._flatten_layers():
        assert sublayer.dtype_policy.name == policy, sublayer.name


@pytest.fixture
def harness():
    return check_layer
