"""The paper's attentions: Keras' own, for the cases that both have, and beyond."""

import keras
import numpy as np
import pytest
from formula import array_by_formula, set_weights_by_formula
from test_harness import called

from reprt.layers import (
    PMHA,
    PMHCA,
    PMMHA,
    Decoder,
    DecoderBlock,
    Encoder,
    EncoderBlock,
    padding_mask,
)
from reprt.layers.dropout import Dropout

TARGETS, SOURCES = (
    array_by_formula((2, 4, 8), 1),
    array_by_formula((2, 6, 8), 2),
)
TOKENS = array_by_formula((2, 6, 5), 3)
KEY_MASK = np.arange(6)[None, :] < np.array([[6], [3]])
EVEN = (np.arange(6) % 2 == 0)[None, None, :]
HOLES = np.arange(24).reshape(1, 4, 6) % 5 > 1
ACROSS, WITHIN = (TARGETS, SOURCES, TOKENS), (SOURCES, SOURCES, TOKENS)
SIZES = {"num_heads": 3, "key_dim": 4, "value_dim": 2}
BLOCK = {"num_heads": 2, "key_dim": 3, "feed_forward_dim": 16}

# Of the layer, its inputs, and the masks by our names; Keras has one for all.
CASES = {
    "self-attention": (PMHA, (SOURCES, SOURCES, SOURCES), {}),
    "values of their own": (PMHA, WITHIN, {}),
    "another length": (PMHCA, ACROSS, {}),
    "padding": (PMHCA, ACROSS, {"key_mask": KEY_MASK}),
    "a mask of each pair": (PMHCA, ACROSS, {"attention_mask": HOLES}),
    "both": (PMHA, ACROSS, {"attention_mask": HOLES, "key_mask": KEY_MASK}),
    "causal": (PMMHA, WITHIN, {}),
    "causal, padding": (PMMHA, WITHIN, {"key_mask": KEY_MASK}),
    "causal, others": (
        PMMHA,
        WITHIN,
        {"attention_mask": EVEN | np.eye(6, dtype=bool)},
    ),
    "all masks": (
        PMMHA,
        WITHIN,
        {"attention_mask": EVEN, "key_mask": KEY_MASK},
    ),
}


def pair(kind, inputs, **options):
    """Our layer and Keras', with the same weights and the same dropout to come."""
    query, key, value = (array.shape for array in inputs)
    ours, theirs = kind(**options), keras.layers.MultiHeadAttention(**options)
    ours.build(query, key, value)
    theirs.build(query, value, key)
    theirs.set_weights(set_weights_by_formula(ours).get_weights())
    if options.get("dropout"):
        # Keras draws other random numbers.
        theirs._dropout_layer.__class__ = Dropout
        for dropout in (ours.dropout_layer, theirs._dropout_layer):
            dropout.seed_generator.state.assign([0, 7])
    return ours, theirs


def attended(layer, inputs, **call):
    query, key, value = inputs
    return layer(query, key=key, value=value, **call)


def both(case, wanted, of_call, **options):
    """What our layer and Keras' return."""
    kind, (query, key, value), masks = CASES[case]
    ours, theirs = pair(kind, (query, key, value), **SIZES, **options)
    call = {"return_attention_scores": wanted, **of_call}
    found = ours(query, key=key, value=value, **masks, **call)
    every = np.ones((1, 1, 1), dtype=bool)
    allowed = masks.get("attention_mask", every)
    allowed = allowed & masks.get("key_mask", every[0])[:, None]
    theirs_call = {
        "attention_mask": allowed,
        "use_causal_mask": kind is PMMHA,
        **call,
    }
    return found, theirs(query, value, key, **theirs_call)


@pytest.mark.parametrize(
    "dropout, training", [(0, True), (0.4, False), (0.4, True)]
)
@pytest.mark.parametrize("case", CASES)
def test_outputs_and_scores_are_those_of_keras(case, dropout, training):
    call = {"training": training}
    alone, expected_alone = both(case, False, call, dropout=dropout)
    found, expected = both(case, True, call, dropout=dropout)
    for output in (alone, found[0], expected_alone):
        np.testing.assert_allclose(output, expected[0], atol=1e-6)
    scores = np.asarray(expected[1])
    if (
        dropout and training
    ):  # Keras returns the weights from before the dropout.
        scores = np.where(found[1], scores / (1 - dropout), 0)
    np.testing.assert_allclose(found[1], scores, atol=1e-6)


@pytest.mark.parametrize("kind", [PMHA, PMMHA])
def test_masks_that_keras_attached_are_heeded_and_handed_on_as_by_keras(kind):
    ids = np.array([[1, 2, 3, 0], [3, 3, 1, 1], [1, 0, 0, 0]])
    embedding = keras.layers.Embedding(4, 8, mask_zero=True)
    states, mask = embedding(ids), ids != 0
    ours, theirs = pair(kind, (states, states, states), **SIZES)
    found = ours(states, key=states)
    # The last one called, for Keras takes the mask away from its arguments.
    expected = theirs(states, states, use_causal_mask=kind is PMMHA)
    for output in (found, expected):
        np.testing.assert_array_equal(output._keras_mask, mask)
    # To Keras, padding attends nowhere either; its rows mean nothing to both.
    np.testing.assert_allclose(
        np.asarray(found)[mask], np.asarray(expected)[mask], atol=1e-6
    )


@pytest.mark.parametrize(
    "make, inputs",
    [
        (lambda: PMHA(**SIZES), ACROSS),
        (lambda: PMMHA(**SIZES), WITHIN),
        (lambda: EncoderBlock(**BLOCK), (SOURCES, TOKENS)),
        (lambda: Encoder(2, **BLOCK), (SOURCES,)),
        (lambda: DecoderBlock(**BLOCK), (TARGETS, SOURCES)),
        (lambda: Decoder(2, **BLOCK), (TARGETS, SOURCES)),
        (lambda: Decoder(2, **BLOCK), (TARGETS,)),
    ],
    ids="PMHA PMMHA EncoderBlock Encoder DecoderBlock Decoder alone".split(),
)
def test_functional_models_have_scores_as_well(make, inputs):
    symbols = [keras.Input(array.shape[1:], len(array)) for array in inputs]
    found, expected = (
        called(make(), each, return_attention_scores=True)
        for each in (symbols, inputs)
    )
    keras.tree.assert_same_structure(found, expected)
    for symbol, tensor in zip(*map(keras.tree.flatten, (found, expected))):
        assert symbol.shape == tensor.shape and symbol.dtype == tensor.dtype


def layer_of(kind, **options):
    layer = kind(**SIZES, **options)
    layer.build(*[array.shape for array in ACROSS])
    return set_weights_by_formula(layer)


@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
def test_how_long_queries_and_keys_were_does_not_matter(policy):
    options = {"use_bias": False, "query_key_norm": True, "dtype": policy}
    layer = layer_of(PMHCA, **options)
    layer.scale.assign(3.0)
    call = {"return_attention_scores": True}
    _, scores = attended(layer, ACROSS, **call)
    # Squared, lengths like these leave half precision.
    _, longer = attended(layer, (3000 * TARGETS, 9 * SOURCES, TOKENS), **call)
    np.testing.assert_allclose(longer, scores, atol=1e-3)
    assert np.std(scores) > 0.05


def test_what_keras_quantises_computes_nearly_the_same():
    layer = layer_of(PMHA)
    before = np.asarray(attended(layer, ACROSS))
    for part in ("query", "key", "value", "output"):
        getattr(layer, f"{part}_dense").quantize("int8")
    after = np.asarray(attended(layer, ACROSS))
    assert 0 < np.abs(after - before).max() < 0.05 * np.abs(before).max()


@pytest.mark.parametrize("kind", [PMHA, PMMHA, PMHCA])
def test_keys_and_values_are_named_but_in_files_of_older_versions(kind):
    layer = layer_of(kind)
    inputs = WITHIN if kind is PMMHA else ACROSS
    expected = attended(layer, inputs)
    with pytest.raises(
        ValueError, match="by name.*other order. Received: 2 arguments"
    ):
        layer(*inputs)
    symbols = [keras.Input(array.shape[1:]) for array in inputs]
    config = keras.Model(symbols, attended(layer, symbols)).get_config()
    [node] = config["layers"][-1]["inbound_nodes"]
    by_name = node["kwargs"]
    node["args"] = (*node["args"], by_name.pop("key"), by_name.pop("value"))
    again = keras.Model.from_config(config)
    again.set_weights(layer.get_weights())
    np.testing.assert_allclose(again(list(inputs)), expected, atol=1e-6)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: attended(PMHA(2, 3), (TARGETS[0], SOURCES, TOKENS)),
            r"'query': \(4, 8\)",
        ),
        (
            lambda: attended(
                PMHA(2, 3), ACROSS, attention_mask=np.ones((2, 4, 6))
            ),
            "`attention_mask`.*boolean.*dtype=float",
        ),
        (
            lambda: attended(PMHA(2, 3), ACROSS, attention_mask=KEY_MASK),
            r"broadcasts to \(batch, targets, sources\).*shape=\(2, 6\)",
        ),
        (
            lambda: attended(PMHA(2, 3), ACROSS, key_mask=KEY_MASK[:, None]),
            r"`key_mask`.*\(batch, sources\).*shape=\(2, 1, 6\)",
        ),
        (
            lambda: attended(
                layer_of(PMHA), (TARGETS[..., :4], SOURCES, TOKENS)
            ),
            r"query was built .*\(8,\). Received: \(2, 4, 4\)",
        ),
        (
            lambda: PMHA(2, 3, position="rotary"),
            "Positional.*Received: 'rotary'",
        ),
        (
            lambda: PMHA(0, 3),
            "`num_heads` to be 1 or more. Received: num_heads=0",
        ),
        (
            lambda: PMMHA(2, 3)(SOURCES, SOURCES),
            "key and value by name.*Received: 1 ",
        ),
        (lambda: padding_mask(np.ones((2, 3))), "integer.*dtype=float"),
        (
            lambda: padding_mask(np.array([3, 0])),
            r"\(batch, length\).*shape=\(2,\)",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
