"""The layer harness."""

import inspect
import tempfile

import keras
import numpy as np
import pytest
from keras.src.testing import TestCase


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
    _check_by_keras(make, inputs, output_shapes, weights, call)
    _check_compiled_step(make, inputs, call)
    _check_saving(make, inputs, call)
    for policy in ("float32", "mixed_bfloat16", "mixed_float16"):
        _check_policy(make, inputs, call, policy)


def _check_by_keras(make, inputs, output_shapes, weights, call):
    """What Keras asks of its own layers: config, shapes, weights, mixed precision."""
    names = inspect.signature(make().build).parameters
    shapes = {name: array.shape for name, array in zip(names, inputs)}
    dtypes = {name: array.dtype.name for name, array in zip(names, inputs)}
    if len(inputs) == 1:
        (shapes,), (dtypes,) = shapes.values(), dtypes.values()
    TestCase().run_layer_test(
        make,
        init_kwargs={"name": "given_name"},
        input_shape=shapes,
        input_dtype=dtypes,
        call_kwargs=call,
        expected_output_shape=(
            output_shapes[0] if len(output_shapes) == 1 else tuple(output_shapes)
        ),
        expected_num_trainable_weights=weights,
        expected_num_non_trainable_weights=0,
        # It trains on one input, without masks; the next check trains on all.
        run_training_check=False,
    )
    layer = make()
    serialized = keras.saving.serialize_keras_object(layer)
    assert serialized["registered_name"] == f"reprt>{serialized['class_name']}"
    # What can be asked for is in the config; else a model would come back without it.
    asked = {
        name
        for kind in type(layer).__mro__
        if kind.__module__.startswith("reprt") and "__init__" in vars(kind)
        for name, each in inspect.signature(kind.__init__).parameters.items()
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    }
    assert asked - {"self"} <= layer.get_config().keys()


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
