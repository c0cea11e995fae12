"""The paper's attentions: Keras' own, for the cases that both have, and beyond."""

import keras
import numpy as np
import pytest
from formula import array_by_formula, set_weights_by_formula
from test_harness import call_layer

from reprt.data import pack
from reprt.layers import (
    PMHA,
    PMHCA,
    PMMHA,
    AddPositional,
    Decoder,
    DecoderBlock,
    Encoder,
    EncoderBlock,
    RotaryPositional,
    TokenNorm,
    padding_mask,
)
from reprt.layers.dropout import Dropout

TARGETS = array_by_formula((2, 4, 8), 1)
SOURCES = array_by_formula((2, 6, 8), 2)
TOKENS = array_by_formula((2, 6, 5), 3)
KEY_MASK = np.arange(6)[None, :] < np.array([[6], [3]])
EVEN_MASK = (np.arange(6) % 2 == 0)[None, None, :]
PAIR_MASK = np.arange(24).reshape(1, 4, 6) % 5 > 1
CROSS_INPUTS = (TARGETS, SOURCES, TOKENS)
SELF_INPUTS = (SOURCES, SOURCES, TOKENS)
SIZES = {"num_heads": 3, "key_dim": 4, "value_dim": 2}
BLOCK = {"num_heads": 2, "key_dim": 3, "feed_forward_dim": 16}

# Of the layer, its inputs, and the masks by our names; Keras has one for all.
CASES = {
    "self-attention": (PMHA, (SOURCES, SOURCES, SOURCES), {}),
    "values of their own": (PMHA, SELF_INPUTS, {}),
    "another length": (PMHCA, CROSS_INPUTS, {}),
    "padding": (PMHCA, CROSS_INPUTS, {"key_mask": KEY_MASK}),
    "a mask of each pair": (PMHCA, CROSS_INPUTS, {"attention_mask": PAIR_MASK}),
    "both": (
        PMHA,
        CROSS_INPUTS,
        {"attention_mask": PAIR_MASK, "key_mask": KEY_MASK},
    ),
    "causal": (PMMHA, SELF_INPUTS, {}),
    "causal, padding": (PMMHA, SELF_INPUTS, {"key_mask": KEY_MASK}),
    "causal, others": (
        PMMHA,
        SELF_INPUTS,
        {"attention_mask": EVEN_MASK | np.eye(6, dtype=bool)},
    ),
    "all masks": (
        PMMHA,
        SELF_INPUTS,
        {"attention_mask": EVEN_MASK, "key_mask": KEY_MASK},
    ),
}


def make_pair(kind, inputs, **options):
    """Our layer and Keras', with the same weights and the same dropout to come."""
    query, key, value = (array.shape for array in inputs)
    layer = kind(**options)
    keras_layer = keras.layers.MultiHeadAttention(**options)
    layer.build(query, key, value)
    keras_layer.build(query, value, key)
    keras_layer.set_weights(set_weights_by_formula(layer).get_weights())
    if options.get("dropout"):
        # Keras draws other random numbers.
        keras_layer._dropout_layer.__class__ = Dropout
        for dropout in (layer.dropout_layer, keras_layer._dropout_layer):
            dropout.seed_generator.state.assign([0, 7])
    return layer, keras_layer


def attend(layer, inputs, **call):
    query, key, value = inputs
    return layer(query, key=key, value=value, **call)


def both_outputs(case, with_scores, call_options, **options):
    """What our layer and Keras' return."""
    kind, (query, key, value), masks = CASES[case]
    layer, keras_layer = make_pair(
        kind, (query, key, value), **SIZES, **options
    )
    call = {"return_attention_scores": with_scores, **call_options}
    outputs = layer(query, key=key, value=value, **masks, **call)
    ones = np.ones((1, 1, 1), dtype=bool)
    mask = masks.get("attention_mask", ones)
    mask = mask & masks.get("key_mask", ones[0])[:, None]
    keras_options = {
        "attention_mask": mask,
        "use_causal_mask": kind is PMMHA,
        **call,
    }
    return outputs, keras_layer(query, value, key, **keras_options)


@pytest.mark.parametrize(
    "dropout, training", [(0, True), (0.4, False), (0.4, True)]
)
@pytest.mark.parametrize("case", CASES)
def test_outputs_and_scores_are_those_of_keras(case, dropout, training):
    call = {"training": training}
    plain_output, expected_output = both_outputs(
        case, False, call, dropout=dropout
    )
    outputs, expected = both_outputs(case, True, call, dropout=dropout)
    for output in (plain_output, outputs[0], expected_output):
        np.testing.assert_allclose(output, expected[0], atol=1e-6)
    scores = np.asarray(expected[1])
    # Keras returns the weights from before the dropout.
    if dropout and training:
        scores = np.where(outputs[1], scores / (1 - dropout), 0)
    np.testing.assert_allclose(outputs[1], scores, atol=1e-6)


@pytest.mark.parametrize("kind", [PMHA, PMMHA])
def test_masks_that_keras_attached_are_heeded_and_handed_on_as_by_keras(kind):
    ids = np.array([[1, 2, 3, 0], [3, 3, 1, 1], [1, 0, 0, 0]])
    embedding = keras.layers.Embedding(4, 8, mask_zero=True)
    states, mask = embedding(ids), ids != 0
    layer, keras_layer = make_pair(kind, (states, states, states), **SIZES)
    outputs = layer(states, key=states)
    # The last one called, for Keras takes the mask away from its arguments.
    expected = keras_layer(states, states, use_causal_mask=kind is PMMHA)
    for output in (outputs, expected):
        np.testing.assert_array_equal(output._keras_mask, mask)
    # To Keras, padding attends nowhere either; its rows mean nothing to both.
    np.testing.assert_allclose(
        np.asarray(outputs)[mask], np.asarray(expected)[mask], atol=1e-6
    )


@pytest.mark.parametrize(
    "make, inputs",
    [
        (lambda: PMHA(**SIZES), CROSS_INPUTS),
        (lambda: PMMHA(**SIZES), SELF_INPUTS),
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
    symbolic_outputs, expected = (
        call_layer(make(), arguments, return_attention_scores=True)
        for arguments in (symbols, inputs)
    )
    keras.tree.assert_same_structure(symbolic_outputs, expected)
    for symbol, tensor in zip(
        *map(keras.tree.flatten, (symbolic_outputs, expected))
    ):
        assert symbol.shape == tensor.shape and symbol.dtype == tensor.dtype


def make_layer(kind, **options):
    layer = kind(**SIZES, **options)
    layer.build(*[array.shape for array in CROSS_INPUTS])
    return set_weights_by_formula(layer)


@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
def test_how_long_queries_and_keys_were_does_not_matter(policy):
    options = {"use_bias": False, "query_key_norm": True, "dtype": policy}
    layer = make_layer(PMHCA, **options)
    layer.scale.assign(3.0)
    call = {"return_attention_scores": True}
    _, scores = attend(layer, CROSS_INPUTS, **call)
    # Squared, lengths like these leave half precision.
    _, long_scores = attend(
        layer, (3000 * TARGETS, 9 * SOURCES, TOKENS), **call
    )
    np.testing.assert_allclose(long_scores, scores, atol=1e-3)
    assert np.std(scores) > 0.05


def test_what_keras_quantises_computes_nearly_the_same():
    layer = make_layer(PMHA)
    old_outputs = np.asarray(attend(layer, CROSS_INPUTS))
    for part in ("query", "key", "value", "output"):
        getattr(layer, f"{part}_dense").quantize("int8")
    new_outputs = np.asarray(attend(layer, CROSS_INPUTS))
    difference = np.abs(new_outputs - old_outputs).max()
    assert 0 < difference < 0.05 * np.abs(old_outputs).max()


@pytest.mark.parametrize("kind", [PMHA, PMMHA, PMHCA])
def test_keys_and_values_are_named(kind):
    layer = make_layer(kind)
    inputs = SELF_INPUTS if kind is PMMHA else CROSS_INPUTS
    symbols = [keras.Input(array.shape[1:]) for array in inputs]
    for each in (layer, kind.from_config(layer.get_config())):
        for arguments in (inputs, symbols):
            with pytest.raises(
                ValueError, match="by name.*other order. Received: 2 arguments"
            ):
                each(*arguments)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: attend(PMHA(2, 3), (TARGETS[0], SOURCES, TOKENS)),
            r"'query': \(4, 8\)",
        ),
        (
            lambda: attend(
                PMHA(2, 3), CROSS_INPUTS, attention_mask=np.ones((2, 4, 6))
            ),
            "`attention_mask`.*boolean.*dtype=float",
        ),
        (
            lambda: attend(PMHA(2, 3), CROSS_INPUTS, attention_mask=KEY_MASK),
            r"broadcasts to \(batch, targets, sources\).*shape=\(2, 6\)",
        ),
        (
            lambda: attend(
                PMHA(2, 3), CROSS_INPUTS, key_mask=KEY_MASK[:, None]
            ),
            r"`key_mask`.*\(batch, sources\).*shape=\(2, 1, 6\)",
        ),
        (
            lambda: attend(
                make_layer(PMHA), (TARGETS[..., :4], SOURCES, TOKENS)
            ),
            r"query was built .*\(8,\). Received: \(2, 4, 4\)",
        ),
        (
            lambda: PMHA(2, 3, position="rotary"),
            "`position`.*Positional.*Received: 'rotary'",
        ),
        (
            lambda: PMHCA(2, 4, position=RotaryPositional()),
            "`position` to be None.*Received: a RotaryPositional",
        ),
        (
            lambda: PMHA(2, 4, position=RotaryPositional())(
                TARGETS[:, :1], key=TARGETS
            ),
            "query and the key to be of one sequence.* lengths 1 and 4",
        ),
        (
            lambda: PMMHA(2, 4)(TARGETS[:, :1], key=TARGETS),
            "query and the key to be of one sequence.* lengths 1 and 4",
        ),
        (
            lambda: PMHA(0, 3),
            "`num_heads` to be 1 or more. Received: num_heads=0",
        ),
        (lambda: PMHA(None, 3), "Received: num_heads=None"),
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


def test_packed_keys_take_no_mask_of_pairs():
    ids = np.ones((1, 6), int)
    (_, _, packing, _), _ = pack((ids, ids), ids)
    packed = np.ones((1, 64, 8), "float32")
    with pytest.raises(ValueError, match="`attention_mask` to be None"):
        PMHA(2, 4)(
            packed,
            key=packed,
            key_mask=packing.layout(2),
            attention_mask=np.ones((1, 6, 6), bool),
        )


@pytest.mark.parametrize(
    "make",
    [
        lambda: PMHA(2, 4, position=RotaryPositional()),
        lambda: TokenNorm(),
        lambda: AddPositional(),
    ],
)
def test_ids_are_masks_in_a_graph(make):
    """What is not 0 means True; eagerly such a mask is refused."""
    layer = make()
    x = array_by_formula((1, 5, 8), scale=1.0)
    ids = np.array([[7, 5, 9, 0, 0]])

    def call(x, mask):
        if isinstance(layer, PMHA):
            return layer(x, key=x, key_mask=mask)
        return layer(x, mask=mask)

    inputs = keras.Input((5, 8)), keras.Input((5,), dtype="int32")
    model = keras.Model(inputs, call(*inputs))
    expected = call(x, ids > 0)
    np.testing.assert_allclose(
        model.predict((x, ids), verbose=0), expected, atol=1e-5
    )
    with pytest.raises(ValueError, match="to be a boolean tensor"):
        call(x, ids)
