import warnings

import keras
import numpy as np
import oracle
import pytest
from formula import array_by_formula, set_weights_by_formula

from reprt.layers import PMHA, PMHCA, PMMHA, causal_mask, padding_mask

QUERY = array_by_formula((2, 4, 8), 1)
KEY = array_by_formula((2, 6, 8), 2)
VALUE = array_by_formula((2, 6, 5), 3)
KEY_MASK = np.arange(6)[None, :] < np.array([[6], [3]])


def layer_of(kind, *inputs, **options):
    layer = kind(num_heads=3, key_dim=4, value_dim=2, **options)
    layer.build(*[array.shape for array in inputs])
    return set_weights_by_formula(layer)


def expected(layer, query, key, value, allowed):
    rows = [
        oracle.attention(layer, *arrays) for arrays in zip(query, key, value, allowed)
    ]
    return [np.array(part) for part in zip(*rows)]


@pytest.mark.parametrize("kind", [PMHA, PMHCA])
def test_equals_the_equations(kind):
    layer = layer_of(kind, QUERY, KEY, VALUE)
    outputs, scores = expected(layer, QUERY, KEY, VALUE, KEY_MASK[:, None, :])
    y, weights = layer(
        QUERY, KEY, VALUE, key_mask=KEY_MASK, return_attention_scores=True
    )
    np.testing.assert_allclose(y, outputs, atol=1e-5)
    np.testing.assert_allclose(weights, scores, atol=1e-6)


def test_masked_attention_equals_the_equations():
    layer = layer_of(PMMHA, KEY, KEY, VALUE)
    allowed = np.tri(6, dtype=bool) & KEY_MASK[:, None, :]
    outputs, scores = expected(layer, KEY, KEY, VALUE, allowed)
    y, weights = layer(KEY, KEY, VALUE, key_mask=KEY_MASK, return_attention_scores=True)
    np.testing.assert_allclose(y, outputs, atol=1e-5)
    np.testing.assert_allclose(weights, scores, atol=1e-6)


def test_asking_for_scores_or_training_without_dropout_changes_nothing():
    """Keras takes another road through its code for each of these."""
    plain = layer_of(PMMHA, KEY, KEY, VALUE)
    dropout = layer_of(PMMHA, KEY, KEY, VALUE, dropout=0.5)
    y = plain(KEY, KEY, VALUE)
    for other in (
        plain(KEY, KEY, VALUE, return_attention_scores=True)[0],
        plain(KEY, KEY, VALUE, training=True),
        dropout(KEY, KEY, VALUE, training=False),
    ):
        np.testing.assert_allclose(y, other, atol=1e-6)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("scores", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_causality_holds_on_every_road(dropout, scores, masked):
    layer = layer_of(PMMHA, KEY, KEY, VALUE, dropout=dropout)
    mask = np.ones((2, 6), dtype=bool) if masked else None

    def run(key, value):
        keras.utils.set_random_seed(1)
        options = {"return_attention_scores": scores, "training": False}
        y = layer(key, key, value, key_mask=mask, **options)
        return np.asarray(y[0] if scores else y)

    changed_key, changed_value = KEY.copy(), VALUE.copy()
    changed_key[:, 3] += 1
    changed_value[:, 3] += 1
    before, after = run(KEY, VALUE), run(changed_key, changed_value)
    np.testing.assert_array_equal(before[:, :3], after[:, :3])
    assert np.abs(before[:, 3:] - after[:, 3:]).max() > 1e-3


def test_masks_combine_to_where_all_allow():
    layer = layer_of(PMMHA, KEY, KEY, VALUE)
    even = (np.arange(6) % 2 == 0)[None, None, :]
    _, scores = layer(
        KEY,
        KEY,
        VALUE,
        attention_mask=even,
        key_mask=KEY_MASK,
        return_attention_scores=True,
    )
    allowed = even & np.tri(6, dtype=bool) & KEY_MASK[:, None, :]
    np.testing.assert_array_equal(np.asarray(scores[:, 0]) > 0, allowed)


def test_a_mask_that_keras_attached_to_the_key_is_used_and_left_where_it_is():
    embedded = keras.layers.Embedding(9, 8, mask_zero=True)(np.array([[4, 5, 0]]))
    value = np.asarray(embedded)[..., :5]
    layer = layer_of(PMHA, embedded, embedded, value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = layer(embedded, embedded, value)
    explicit = layer(
        np.asarray(embedded),
        np.asarray(embedded),
        value,
        key_mask=np.array([[True, True, False]]),
    )
    np.testing.assert_allclose(y, explicit, atol=1e-6)
    # Keras' own attention would have taken it away from the caller's tensor.
    assert embedded._keras_mask is not None


def test_a_sequence_of_padding_alone_gives_finite_numbers():
    layer = layer_of(PMHA, QUERY, KEY, VALUE)
    assert np.isfinite(layer(QUERY, KEY, VALUE, key_mask=np.zeros((2, 6), bool))).all()


def test_masks_are_made_from_ids():
    ids = np.array([[3, 0, 0], [3, 4, 5]])
    np.testing.assert_array_equal(padding_mask(ids), ids != 0)
    np.testing.assert_array_equal(causal_mask(3)[0], np.tri(3, dtype=bool))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: PMHA(2, 3)(QUERY[0], KEY, VALUE), r"'query': \(4, 8\)"),
        (lambda: PMHA(2, 3)(QUERY, KEY, VALUE[:, :5]), "6 keys and 5 values"),
        (
            lambda: PMHA(2, 3)(QUERY, KEY, VALUE, attention_mask=np.ones((2, 4, 6))),
            "`attention_mask`.*boolean.*dtype=float",
        ),
        (
            lambda: PMHA(2, 3)(QUERY, KEY, VALUE, attention_mask=KEY_MASK),
            r"broadcasts to \(batch, targets, sources\).*shape=\(2, 6\)",
        ),
        (
            lambda: PMHA(2, 3)(QUERY, KEY, VALUE, key_mask=KEY_MASK[:, None]),
            r"`key_mask`.*\(batch, sources\).*shape=\(2, 1, 6\)",
        ),
        (lambda: PMHA(0, 3), "num_heads"),
        (lambda: PMHA(1, 3, value_dim=0), "value_dim"),
        (lambda: padding_mask(np.ones((2, 3))), "integer.*dtype=float"),
        (lambda: padding_mask(np.array([3, 0])), r"\(batch, length\).*shape=\(2,\)"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
