"""How sublayers are wired, in the call and in the cached step."""

import keras
import numpy as np
import pytest
from formula import array_by_formula, set_weights_by_formula

from reprt.layers import Decoder, DecoderBlock, EncoderBlock

SIZES = {"num_heads": 2, "key_dim": 3, "feed_forward_dim": 16, "value_dim": 5}
STATES, MEMORY = array_by_formula((2, 5, 8), 1), array_by_formula((2, 6, 8), 2)
PLACES = pytest.mark.parametrize("place", ["after", "before"])


def of_formula(layer, *shapes):
    layer.build(*shapes)
    return set_weights_by_formula(layer)


@PLACES
@pytest.mark.parametrize("kind", [EncoderBlock, DecoderBlock])
def test_with_no_output_left_a_block_is_its_norms(kind, place):
    inputs = (STATES,) if kind is EncoderBlock else (STATES, MEMORY)

    def run(*places):
        keras.utils.set_random_seed(1)
        layer = kind(**SIZES, dropout=0.999999, norm_place=place, dropout_places=places)
        layer.build(*(x.shape for x in inputs))
        for weight in layer.weights:
            if "dense" in weight.path or "output" in weight.path:
                weight.assign(array_by_formula(weight.shape, 1))
        return np.asarray(layer(*inputs, training=True))

    expected = STATES
    for _ in range(len(inputs) + 1 if place == "after" else 0):
        expected = np.asarray(keras.layers.LayerNormalization()(expected))
    everywhere = run("attention_output", "feed_forward_output")
    np.testing.assert_allclose(everywhere, expected, atol=1e-5)
    for places in (("attention_weights", "feed_forward_output"), ("attention_output",)):
        assert np.abs(run(*places) - expected).max() > 0.01


@PLACES
def test_a_decoder_without_a_memory_steps_as_it_is_called(place):
    decoder = of_formula(
        Decoder(2, **SIZES, norm_place=place, final_norm=True), STATES.shape
    )
    assert len(decoder.weights) == 2 * (8 + 4 + 4) + 2
    expected, scores = decoder(STATES, return_attention_scores=True)
    assert [across for _, across in scores] == [None, None]
    caches = decoder.start(2, 3)
    for position in range(5):
        states, caches = decoder.step(
            STATES[:, position : position + 1], None, caches, position
        )
        np.testing.assert_allclose(states[:, 0], expected[:, position], atol=1e-5)
        if position == 2:
            caches = tuple(
                cache.extended(2).of_sentences([0, 1], [0, 1]) for cache in caches
            )


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: EncoderBlock(**SIZES, norm_place="inside"),
            "'norm_place' in EncoderBlock.*'inside'",
        ),
        (
            lambda: EncoderBlock(**SIZES, dropout_places=["ffn"]),
            "'dropout_places.0' in EncoderBlock.*'ffn'",
        ),
        (
            lambda: of_formula(DecoderBlock(**SIZES), STATES.shape)(STATES, MEMORY),
            "built without a memory. Received a memory",
        ),
        (
            lambda: of_formula(DecoderBlock(**SIZES), STATES.shape, MEMORY.shape)(
                STATES
            ),
            "built on a memory. Received no memory",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
