"""The recurrent model against its equations, and what every model here promises."""

import numpy as np
import pytest
from formula import set_weights_by_formula
from oracle import dense, softmax
from tiny import RECURRENT

from reprt import models

VARIANTS = {
    "additive": {"output_tying": "tied"},
    "multiplicative": {"attention": "multiplicative", "output_tying": "none"},
    "one layer, one table": {
        "num_layers": 1,
        "output_tying": "tied",
        "shared_embedding": True,
    },
}


def build(**overrides):
    model = models.build("recurrent", 10, 10, **{**RECURRENT, **overrides})
    return set_weights_by_formula(model)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(cell, inputs, state):
    """The states after each input; gates are the columns' thirds: z, r, candidate."""
    kernel, recurrent_kernel, bias = (
        np.array(w, "float64") for w in cell.weights
    )
    states = []
    for x in inputs:
        x_z, x_r, x_h = np.split(x @ kernel + bias[0], 3)
        h_z, h_r, h_h = np.split(state @ recurrent_kernel + bias[1], 3)
        z, r = sigmoid(x_z + h_z), sigmoid(x_r + h_r)
        state = z * state + (1 - z) * np.tanh(x_h + r * h_h)
        states.append(state)
    return np.array(states)


def recurrent(model, source, target):
    """Logits and attention weights of one sentence pair without padding."""

    def table(embedding):
        return np.array(embedding.embedding.embeddings, "float64")

    def product(layer, x):
        return x @ np.array(layer.kernel, "float64")

    n = model.config.hidden_dim
    h = table(model.source_embedding)[source]
    for layer in model.encoder:
        forward_states = gru(layer.forward_layer.cell, h, np.zeros(n))
        backward_states = gru(layer.backward_layer.cell, h[::-1], np.zeros(n))
        backward_states = backward_states[::-1]
        h = np.concatenate([forward_states, backward_states], axis=1)
    starts = np.tanh(product(model.start_dense, backward_states[0]))
    starts = starts.reshape(-1, n)
    s = table(model.target_embedding)[target]
    for layer, start in zip(model.decoder, starts, strict=True):
        s = gru(layer.cell, s, start)
    outputs, weights = [], []
    for state in s:
        if model.config.attention == "additive":
            query = product(model.query_dense, state)
            hidden = np.tanh(query + product(model.key_dense, h))
            scores = product(model.score_dense, hidden)[:, 0]
        else:
            scores = product(model.key_dense, h) @ state
        weights.append(softmax(scores))
        features = np.concatenate([weights[-1] @ h, state])
        outputs.append(np.tanh(product(model.combined_dense, features)))
    if model.config.output_tying == "none":
        return dense(model.output_dense, np.array(outputs)), np.array(weights)
    return np.array(outputs) @ table(model.target_embedding).T, np.array(
        weights
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_is_its_equations(variant, ids):
    model, (source, target) = build(**VARIANTS[variant]), ids
    logits = np.array(model(ids))
    weights = np.array(model.attention_weights(source, target)["cross"])
    assert weights.shape == (1, 2, 1, target.shape[1], source.shape[1])
    for number, (x, y) in enumerate(zip(source, target)):
        x, y = x[x != 0], y[y != 0]
        expected, attention = recurrent(model, x, y)
        np.testing.assert_allclose(
            logits[number, : len(y)], expected, atol=1e-5
        )
        pair_weights = weights[0, number, 0, : len(y)]
        np.testing.assert_allclose(
            pair_weights[:, : len(x)], attention, atol=1e-5
        )
        assert not pair_weights[:, len(x) :].any()


def test_multiply_adds_are_those_of_the_products():
    sources, targets, m, n, words = 5, 3, 8, 6, 10
    encoder = sources * 2 * 3 * n * ((m + n) + (2 * n + n))
    decoder = targets * 3 * n * ((m + n) + (n + n)) + 2 * n * n
    scores = sources * 2 * n * n + targets * n * n + targets * sources * n
    outputs = targets * (sources * 2 * n + 3 * n * m + m * words)
    total = encoder + decoder + scores + outputs
    assert build().multiply_adds(sources, targets) == total
    luong = build(attention="multiplicative")
    assert luong.multiply_adds(sources, targets) == total - targets * n * n


def test_its_weights_may_be_of_half_precision():
    model = models.Recurrent(9, 9, build().config, dtype="bfloat16")
    model.build()
    assert {weight.dtype for weight in model.weights} == {"bfloat16"}
