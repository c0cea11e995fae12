import keras
import numpy as np
import pytest
from formula import array_by_formula, set_weights_by_formula

from reprt import models
from reprt.layers import EncoderBlock, FeedForward
from reprt.layers.feed_forward import GATED, activations

X = array_by_formula((2, 3, 8), scale=2.0)


def output(activation):
    layer = FeedForward(6, activation=activation)
    layer.build(X.shape)
    return layer, np.asarray(set_weights_by_formula(layer)(X))


@pytest.mark.parametrize("name", activations())
def test_every_activation_of_keras_is_taken(name):
    layer, y = output(name)
    function = keras.activations.get(GATED.get(name, name))
    hidden = function(
        layer.hidden.kernel.numpy().T @ X[0, 0] + layer.hidden.bias
    )
    if name in GATED:
        hidden = hidden * (
            layer.linear.kernel.numpy().T @ X[0, 0] + layer.linear.bias
        )
    dense = layer.output_dense
    expected = dense.kernel.numpy().T @ np.asarray(hidden) + dense.bias
    np.testing.assert_allclose(y[0, 0], expected, atol=1e-5)
    copy = FeedForward.from_config(layer.get_config())
    assert copy.get_config() == layer.get_config()
    assert models.PRESETS["repe"].changed(activation=name).activation == name


def test_a_function_is_kept_by_its_name():
    layer, y = output(keras.activations.silu)
    np.testing.assert_array_equal(y, output("silu")[1])
    assert layer.get_config()["activation"] == "silu"
    block = EncoderBlock(2, 4, 8, activation=keras.activations.gelu)
    assert block.get_config()["activation"] == "gelu"


def test_an_unknown_activation_is_named_with_those_that_are_known():
    for name in ("sweeglu", "threshold"):  # which needs more than a tensor
        with pytest.raises(ValueError, match=f"'swiglu'.*Received: .*'{name}'"):
            FeedForward(6, activation=name)
        with pytest.raises(ValueError, match=f"'swiglu'.*Received: '{name}'"):
            models.build("repe", 9, 9, activation=name)
