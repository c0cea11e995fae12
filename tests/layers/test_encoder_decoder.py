import keras
import numpy as np
import pytest
from formula import array_by_formula

from reprt.layers import Decoder, DecoderBlock, EncoderBlock, RotaryPositional

SIZES = {"num_heads": 2, "key_dim": 3, "feed_forward_dim": 16, "value_dim": 5}
STATES, MEMORY = array_by_formula((2, 5, 8), 1), array_by_formula((2, 6, 8), 2)


@pytest.mark.parametrize("place", ["after", "before"])
@pytest.mark.parametrize("kind", [EncoderBlock, DecoderBlock])
def test_with_no_output_left_a_block_is_its_norms(kind, place):
    inputs = (STATES,) if kind is EncoderBlock else (STATES, MEMORY)

    def run(*places):
        keras.utils.set_random_seed(1)
        layer = kind(
            **SIZES, dropout=0.999999, norm_place=place, dropout_places=places
        )
        layer.build(*(x.shape for x in inputs))
        for weight in layer.weights:
            if "dense" in weight.path or "output" in weight.path:
                weight.assign(array_by_formula(weight.shape, 1))
        return np.asarray(layer(*inputs, training=True))

    expected = STATES
    for _ in range(len(inputs) + 1 if place == "after" else 0):
        expected = np.asarray(keras.layers.LayerNormalization()(expected))
    outputs = run("attention_output", "feed_forward_output")
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    for places in (
        ("attention_weights", "feed_forward_output"),
        ("attention_output",),
    ):
        assert np.abs(run(*places) - expected).max() > 0.01


def test_a_memory_is_given_where_it_was_before():
    cross_block, self_block = DecoderBlock(**SIZES), DecoderBlock(**SIZES)
    cross_block(STATES, MEMORY), self_block(STATES)
    for call in (
        lambda: cross_block(STATES),
        lambda: self_block(STATES, MEMORY),
    ):
        with pytest.raises(
            ValueError, match="a `memory` where the block was built"
        ):
            call()


def test_a_step_needs_no_mask_of_the_beginning():
    decoder = Decoder(1, **{**SIZES, "key_dim": 4}, position=RotaryPositional())
    expected, memory = decoder(STATES), decoder.begin(STATES[:, :4])
    caches, token = decoder.start(2, 1), STATES[:, 4:]
    output, _ = decoder.step(token, None, caches, 0, memory, offset=4)
    np.testing.assert_allclose(output, expected[:, 4:], atol=1e-5)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"num_heads": 0}, "`num_heads` to be 1 or more"),
        ({"activation": "foo"}, "Received: activation='foo'"),
        (
            {"dropout_places": "values"},
            "a list of places. Received: .*'values'",
        ),
    ],
)
def test_a_blocks_arguments_are_checked_when_it_is_made(changes, message):
    for kind in (EncoderBlock, DecoderBlock):
        with pytest.raises(ValueError, match=message):
            kind(**{**SIZES, **changes})
