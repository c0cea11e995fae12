import numpy as np
import oracle
import pytest
from formula import array_by_formula
from keras import ops

from reprt.layers import (
    PMHA,
    AddPositional,
    AlibiPositional,
    ConcatPositional,
    RelativePositional,
    RotaryPositional,
    UntiedPositional,
    sinusoidal_table,
)

X = array_by_formula((2, 6, 8))


def test_learned_positions_start_near_zero():
    layer = AddPositional("learned", 500)
    layer.build(X.shape)
    assert 0.018 < np.std(layer.encoding) < 0.022


def test_buckets_of_distances_are_those_of_the_formula():
    for both_directions in (True, False):
        layer = RelativePositional(2, both_directions)
        layer.build(X.shape)
        layer.table.assign(np.arange(32.0)[:, None] * [1, 1])
        keys = np.arange(601, dtype="int32")[None]
        biases = layer.bias(keys[:, 300:301], keys)[0, 0, 0]
        expected = [oracle.bucket(d, both_directions) for d in range(-300, 301)]
        np.testing.assert_array_equal(biases, expected)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_angles_and_biases_are_rounded_only_once(policy):
    heads, places = array_by_formula((1, 1000, 2, 4)), np.arange(1000)[None]
    expected = np.asarray(RotaryPositional().turn(heads, places))
    layer = RotaryPositional(dtype=policy)
    rotations = layer.turn(ops.cast(heads, layer.compute_dtype), places)
    step = 2**-10 if policy == "mixed_float16" else 2**-7
    assert (
        np.abs(np.asarray(ops.cast(rotations, "float32")) - expected).max()
        < 2 * step
    )
    bias = AlibiPositional(2, dtype=policy).bias(places, places)
    assert bias.dtype == "float32"


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_positions_are_rounded_only_once(policy):
    layer = ConcatPositional(dtype=policy)
    encoding = np.asarray(layer(np.zeros((1, 1000, 8))), dtype="float32")[
        0, :, 8:
    ]
    expected = sinusoidal_table(1000, 8)
    # Were the angles half precision, the largest error would be near 2.
    rounding = 2**-11 if policy == "mixed_float16" else 2**-8
    assert np.abs(encoding - expected).max() <= rounding


def attend(position, key_dim=4):
    return PMHA(2, key_dim, position=position)(X, key=X)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: sinusoidal_table(5, 7), "even depth.*depth=7"),
        (lambda: sinusoidal_table(5, 8, "fairseq"), "'fairseq'"),
        (lambda: AddPositional("rotary"), "'rotary'"),
        (lambda: ConcatPositional(max_length=5)(X), "at most 5.*sequence of 6"),
        (
            lambda: AddPositional(max_length=8)(X, offset=3),
            "at most 8.*sequence of 9",
        ),
        (
            lambda: attend(UntiedPositional(2, 4, max_length=5)),
            "at most 5.* 6",
        ),
        (lambda: attend(AlibiPositional(3)), "2 heads.*num_heads=3"),
        (lambda: attend(RotaryPositional(), 5), "even.*key_dim=5"),
        (
            lambda: AddPositional()(X[0]),
            r"\(batch, tokens, features\).*\(6, 8\)",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
