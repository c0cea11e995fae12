"""Each norm of the registry says truly whether it sees later tokens."""

from typing import get_args

import numpy as np
import pytest
import variants
from formula import array_by_formula, set_weights_by_formula

from reprt import constants
from reprt.layers import RMSNorm
from reprt.layers.embedding_norms import EMBEDDING_NORMS
from reprt.presets import preset

X = array_by_formula((2, 6, 5), scale=2.0)
LAYERS = [name for name in variants.NORMS if not name.startswith("none")]


def layer_of(variant):
    config = preset("repe", **variants.NORMS[variant])
    norm = EMBEDDING_NORMS[config.embedding_norm].of_model(config, "decoder")
    norm.build(X.shape)
    return set_weights_by_formula(norm)


def test_settings_and_layers_know_the_same_names():
    assert set(EMBEDDING_NORMS) == {*get_args(constants.EmbeddingNorm)}
    assert {name.partition(",")[0] for name in variants.NORMS} == set(EMBEDDING_NORMS)


@pytest.mark.parametrize("variant", LAYERS)
@pytest.mark.parametrize("masked", [False, True])
def test_causal_is_what_other_later_tokens_show(variant, masked):
    layer = layer_of(variant)
    mask = np.arange(6)[None, :] < np.array([[6], [5]]) if masked else None
    before, moved = np.asarray(layer(X, mask=mask)), 0.0
    for later in range(1, 6):
        for factor in (-3.0, 0.0, 5.0):
            changed = X.copy()
            changed[:, later] = factor * changed[:, later] + factor
            after = np.asarray(layer(changed, mask=mask))
            moved = max(moved, np.abs(after - before)[:, :later].max())
    assert layer.causal == (moved < 1e-6)
    # A cut sequence tells of a norm that sees only how much follows.
    if layer.causal and not masked:
        np.testing.assert_allclose(layer(X[:, :3]), before[:, :3], atol=1e-6)


@pytest.mark.parametrize("variant", [v for v in LAYERS if layer_of(v).causal])
def test_steps_are_the_rows_of_a_causal_norm(variant):
    layer = layer_of(variant)
    state = layer.start(2, 5)
    for position, expected in enumerate(np.asarray(layer(X)).swapaxes(0, 1)):
        row, state = layer.step(X[:, position : position + 1], position, state)
        np.testing.assert_allclose(row[:, 0], expected, atol=1e-5)


def test_squares_that_leave_half_precision_do_no_harm():
    x = (1000 * X).astype("float16")
    assert np.square(x, dtype="float32").mean() > np.finfo("float16").max
    y = RMSNorm(dtype="mixed_float16")(x)
    assert y.dtype == "float16"
    np.testing.assert_allclose(y, RMSNorm()(X), atol=5e-3)
