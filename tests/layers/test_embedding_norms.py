import keras
import numpy as np
import oracle
import pytest
import tensorflow as tf
import variants
from formula import array_by_formula, set_weights_by_formula

from reprt.layers import RMSNorm, TokenNorm
from reprt.layers.embedding_norms import EMBEDDING_NORMS
from reprt.models import parts
from reprt.models.presets import preset

X = array_by_formula((3, 7, 5), scale=2.0) + 1.0
MASK = np.arange(7)[None, :] < np.array([[7], [4], [1]])
LAYERS = [name for name in variants.NORMS if not name.startswith("none")]


def make_norm(variant):
    config = preset("repe", **variants.NORMS[variant])
    norm = parts.embedding_norm(config, "decoder")
    norm.build(X.shape)
    return set_weights_by_formula(norm)


def test_every_registered_norm_is_a_setting():
    assert {name.partition(",")[0] for name in variants.NORMS} == set(
        EMBEDDING_NORMS
    )


@pytest.mark.parametrize("variant", LAYERS)
@pytest.mark.parametrize("is_masked", [False, True])
def test_causal_is_what_other_later_tokens_show(variant, is_masked):
    layer = make_norm(variant)
    mask = MASK if is_masked else None
    old_outputs = np.asarray(layer(X, mask=mask))
    difference = 0.0
    for position in range(1, 7):
        for factor in (-3.0, 0.0, 5.0):
            inputs = X.copy()
            inputs[:, position] = factor * inputs[:, position] + factor
            new_outputs = np.asarray(layer(inputs, mask=mask))
            differences = np.abs(new_outputs - old_outputs)[:, :position]
            difference = max(difference, differences.max())
    assert layer.causal == (difference < 1e-6)
    # A cut sequence tells of a norm that sees only how much follows.
    if layer.causal and not is_masked:
        np.testing.assert_allclose(
            layer(X[:, :3]), old_outputs[:, :3], atol=1e-6
        )


def test_squares_that_leave_half_precision_do_no_harm():
    x = (1000 * X).astype("float16")
    assert np.square(x, dtype="float32").mean() > np.finfo("float16").max
    y = RMSNorm(dtype="mixed_float16")(x)
    assert y.dtype == "float16"
    np.testing.assert_allclose(y, RMSNorm()(X), atol=5e-3)


def apply_norm(x, mask=None, **options):
    return np.asarray(TokenNorm(**options)(x, mask=mask))


@pytest.mark.parametrize("statistics", ["sequence", "prefix"])
@pytest.mark.parametrize("mask", [None, MASK], ids=["unmasked", "masked"])
def test_equals_the_equations(statistics, mask):
    expected = [
        oracle.token_norm(x, None if mask is None else is_real, statistics)
        for x, is_real in zip(X, MASK)
    ]
    np.testing.assert_allclose(
        apply_norm(X, mask, statistics=statistics), expected, atol=2e-5
    )


@pytest.mark.parametrize("statistics", ["sequence", "prefix"])
def test_gradients_are_finite_whatever_padding_holds(statistics):
    layer = TokenNorm(statistics)
    x = np.where(MASK[..., None], X, np.inf).astype("float32")
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(layer(x, mask=tf.constant(MASK)) ** 3)
    assert np.isfinite(tape.gradient(total, x)).all()


@pytest.mark.parametrize("statistics", ["sequence", "prefix"])
def test_long_sequences_with_a_large_mean_stay_exact(statistics):
    x = (
        np.random.default_rng(0)
        .normal(1e4, 1.0, (1, 5000, 2))
        .astype("float32")
    )
    expected = oracle.token_norm(x[0], statistics=statistics)
    # A float32 near 1e4 is itself known to 5e-4 only.
    np.testing.assert_allclose(
        apply_norm(x, statistics=statistics)[0], expected, atol=1e-3
    )
    # So do sentences with padding in front.
    padded = np.pad(x, ((0, 0), (1, 0), (0, 0)))
    mask = np.arange(5001)[None] > 0
    outputs = apply_norm(padded, mask=mask, statistics=statistics)
    np.testing.assert_allclose(outputs[0, 1:], expected, atol=1e-3)


@pytest.mark.parametrize("statistics", ["sequence", "prefix"])
@pytest.mark.parametrize("shape", [(0, 0, 4), (2, 0, 4)])
def test_a_batch_may_be_empty(statistics, shape):
    x, mask = np.ones(shape, "float32"), np.ones(shape[:2], bool)
    assert apply_norm(x, mask, statistics=statistics).shape == shape


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("statistics", ["sequence", "prefix"])
def test_statistics_are_float32_whatever_the_policy(policy, statistics):
    # The squares of these numbers overflow float16, and bfloat16 cannot add them up.
    # Multiples of 256 are exact in all three types.
    x = 256.0 * np.round(np.random.default_rng(0).normal(0, 3, (1, 300, 4)))
    outputs = TokenNorm(statistics, dtype=policy)(x.astype("float32"))
    np.testing.assert_allclose(
        np.asarray(outputs, dtype="float32"),
        apply_norm(x.astype("float32"), statistics=statistics),
        atol=0.02,
    )


def test_an_attached_mask_is_used_and_stays_attached():
    tokens = keras.layers.Embedding(9, 4, mask_zero=True)(np.array([[5, 6, 0]]))
    layer = TokenNorm()
    y = layer(tokens)
    expected = layer(np.asarray(tokens), np.array([[True, True, False]]))
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(y._keras_mask, tokens._keras_mask)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: TokenNorm("causal"),
            r"one of \('sequence', 'prefix'\).*'causal'",
        ),
        (lambda: TokenNorm()(X[0]), r"\(batch, tokens, features\).*\(7, 5\)"),
        (
            lambda: TokenNorm()(X, mask=MASK.astype("float32")),
            "`mask`.*boolean.*dtype=float32",
        ),
        (lambda: TokenNorm()(X, mask=MASK[..., None]), r"shape=\(3, 7, 1\)"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
