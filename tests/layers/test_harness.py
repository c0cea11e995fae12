"""Every layer through the harness."""

import functools

import keras
import numpy as np
import pytest
from variants import BEFORE, NORMS

from reprt import layers
from reprt.constants import IN_ATTENTION
from reprt.layers.embedding_norms import EMBEDDING_NORMS
from reprt.layers.positions import POSITIONS
from reprt.presets import preset

STATES = np.linspace(-1, 1, 2 * 5 * 8, dtype="float32").reshape(2, 5, 8)
MEMORY = np.linspace(1, -1, 2 * 6 * 8, dtype="float32").reshape(2, 6, 8)
TOKENS, MEMORY_TOKENS = STATES[..., :4], MEMORY[..., :4]
IDS = np.array([[2, 5, 6, 3, 0], [2, 7, 3, 0, 0]], dtype="int32")
MASK = IDS != 0
MEMORY_MASK = np.ones((2, 6), dtype=bool)
NUMBERS = {"relative": 1, "untied": 2}  # of weights
SIZES = {"num_heads": 2, "key_dim": 3, "feed_forward_dim": 16, "value_dim": 5}
ATTENTION = {"num_heads": 2, "key_dim": 3, "value_dim": 5, "dropout": 0.1}


def embedding(**options):
    return layers.TokenAndPositionEmbedding(
        9,
        4,
        positional=layers.ConcatPositional(dtype=options.get("dtype")),
        token_norm=layers.TokenNorm("prefix", dtype=options.get("dtype")),
        scale="inverse_sqrt",
        dropout=0.1,
        token_dropout=0.1,
        **options,
    )


def positional(method, /, **options):
    """A method of positions as an encoder has it."""
    config = preset("repe", num_heads=2, key_dim=4, position=method)
    return POSITIONS[method].of_model(config, "encoder", **options)


def attention_with(method, /, **options):
    position = positional(method, dtype=options.get("dtype"))
    return layers.PMHA(**{**ATTENTION, "key_dim": 4}, position=position, **options)


def norm_case(settings):
    """A norm of embeddings as a decoder has it, and masked if it sees ahead."""
    config = preset("repe", epsilon=1e-5, **settings)
    norm = EMBEDDING_NORMS[config.embedding_norm]

    def make(**options):
        return norm.of_model(config, "decoder", **options)

    layer = make()
    layer.build(STATES.shape)
    call = {} if layer.causal else {"mask": MASK}
    name = f"{norm.__name__}, {config.decoder_statistics}"
    return name, (make, (STATES,), [(2, 5, 8)], len(layer.weights), call)


CASES = {
    **dict(
        norm_case(settings)
        for settings in NORMS.values()
        if settings["embedding_norm"] != "none"
    ),
    "AddPositional": (
        lambda **options: layers.AddPositional("paper", 50, **options),
        (STATES,),
        [(2, 5, 8)],
        0,
        {},
    ),
    "ConcatPositional": (
        lambda **options: layers.ConcatPositional("paper", 50, **options),
        (STATES,),
        [(2, 5, 16)],
        0,
        {},
    ),
    "Positional": (layers.Positional, (STATES,), [(2, 5, 8)], 0, {}),
    **{
        f"{POSITIONS[name].__name__}, in PMHA": (
            functools.partial(attention_with, name),
            (STATES, STATES, TOKENS),
            [(2, 5, 8)],
            8 + NUMBERS.get(name, 0),
            {"key_mask": MASK},
        )
        for name in IN_ATTENTION
    },
    "PMHA": (
        lambda **options: layers.PMHA(**ATTENTION, **options),
        (STATES, STATES, TOKENS),
        [(2, 5, 8)],
        8,
        {},
    ),
    "PMHA, queries and keys normed": (
        lambda **options: layers.PMHA(**ATTENTION, query_key_norm=True, **options),
        (STATES, STATES, TOKENS),
        [(2, 5, 8)],
        9,
        {},
    ),
    "PMMHA": (
        lambda **options: layers.PMMHA(**ATTENTION, **options),
        (STATES, STATES, TOKENS),
        [(2, 5, 8)],
        8,
        {"attention_mask": np.ones((1, 5, 5), dtype=bool)},
    ),
    "PMHCA": (
        lambda **options: layers.PMHCA(**ATTENTION, **options),
        (STATES, MEMORY, MEMORY_TOKENS),
        [(2, 5, 8)],
        8,
        {"key_mask": MEMORY_MASK},
    ),
    "FeedForward": (
        lambda **options: layers.FeedForward(16, dropout=0.1, **options),
        (STATES,),
        [(2, 5, 8)],
        4,
        {},
    ),
    "TokenAndPositionEmbedding": (embedding, (IDS,), [(2, 5, 4), (2, 5, 8)], 1, {}),
    "EncoderBlock": (
        lambda **options: layers.EncoderBlock(**SIZES, dropout=0.1, **options),
        (STATES, TOKENS),
        [(2, 5, 8)],
        16,
        {},
    ),
    "Encoder": (
        lambda **options: layers.Encoder(
            num_blocks=2, **SIZES, **BEFORE, final_norm=True, **options
        ),
        (STATES,),
        [(2, 5, 8)],
        34,
        {"padding_mask": MASK},
    ),
    "DecoderBlock": (
        lambda **options: layers.DecoderBlock(**SIZES, **options),
        (STATES, MEMORY, TOKENS, MEMORY_TOKENS),
        [(2, 5, 8)],
        26,
        {},
    ),
    "Decoder": (
        lambda **options: layers.Decoder(num_blocks=2, **SIZES, **options),
        (STATES, MEMORY),
        [(2, 5, 8)],
        52,
        {"padding_mask": MASK, "memory_padding_mask": MEMORY_MASK},
    ),
    "Decoder, without a memory": (
        lambda **options: layers.Decoder(
            1, **SIZES, dropout=0.1, dropout_places=["attention_output"], **options
        ),
        (STATES,),
        [(2, 5, 8)],
        16,
        {},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_layer_keeps_the_contract(case, harness):
    make, inputs, shapes, weights, call = CASES[case]
    harness(make, inputs, shapes, weights, call)


def test_every_public_layer_is_held_against_the_contract():
    public = {
        name
        for name in layers.__all__
        if isinstance(getattr(layers, name), type)
        and issubclass(getattr(layers, name), keras.layers.Layer)
    }
    assert public == {name.partition(",")[0] for name in CASES}
