import numpy as np
import oracle
import pytest
from formula import array_by_formula

from reprt.layers import AddPositional, ConcatPositional, sinusoidal_table

X = array_by_formula((2, 6, 8))


@pytest.mark.parametrize("kind", ["tutorial", "paper"])
def test_table_equals_its_formula(kind):
    np.testing.assert_allclose(
        sinusoidal_table(50, 10, kind), oracle.table(50, 10, kind), atol=1e-6
    )


def test_values_worked_out_by_hand():
    # Tutorial: position 3, depth 6, exponents 0, 1/3, 2/3.
    angle = np.array([3, 3 / 10000 ** (1 / 3), 3 / 10000 ** (2 / 3)])
    np.testing.assert_allclose(
        sinusoidal_table(4, 6)[3], [*np.sin(angle), *np.cos(angle)], atol=1e-6
    )
    # Paper: row i = 1, m = 4: sin(1/10^2), sin(1/10^4), cos(1/10^6), cos(1/10^8).
    np.testing.assert_allclose(
        sinusoidal_table(1, 4, "paper")[0], [0.0099998, 0.0001, 1, 1], atol=1e-7
    )


@pytest.mark.parametrize("kind", ["tutorial", "paper"])
def test_add_and_concat(kind):
    encoding = np.broadcast_to(oracle.table(6, 8, kind), X.shape)
    np.testing.assert_allclose(AddPositional(kind)(X), X + encoding, atol=1e-6)
    np.testing.assert_allclose(
        ConcatPositional(kind)(X), np.concatenate([X, encoding], -1), atol=1e-6
    )


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_positions_are_rounded_only_once(policy):
    layer = ConcatPositional(dtype=policy)
    encoding = np.asarray(layer(np.zeros((1, 1000, 8))), dtype="float32")[0, :, 8:]
    exact = sinusoidal_table(1000, 8)
    # Were the angles half precision, the largest error would be near 2.
    rounding = 2**-11 if policy == "mixed_float16" else 2**-8
    assert np.abs(encoding - exact).max() <= rounding


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: sinusoidal_table(5, 7), "even depth.*depth=7"),
        (lambda: sinusoidal_table(5, 8, "fairseq"), "'fairseq'"),
        (lambda: AddPositional("rotary"), "'rotary'"),
        (lambda: ConcatPositional(max_length=5)(X), "at most 5.*sequence of 6"),
        (lambda: AddPositional(max_length=8)(X, start=3), "at most 8.*sequence of 9"),
        (lambda: AddPositional()(X[..., :3]), "even depth.*depth=3"),
        (lambda: AddPositional()(X[0]), r"\(batch, tokens, features\).*\(6, 8\)"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
