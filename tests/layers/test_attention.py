import numpy as np
import pytest
from formula import array_by_formula, set_weights_by_formula

from reprt.layers import PMHA, PMHCA, padding_mask

QUERY = array_by_formula((2, 4, 8), 1)
KEY = array_by_formula((2, 6, 8), 2)
VALUE = array_by_formula((2, 6, 5), 3)
KEY_MASK = np.arange(6)[None, :] < np.array([[6], [3]])


def layer_of(kind, *inputs, **options):
    layer = kind(num_heads=3, key_dim=4, value_dim=2, **options)
    layer.build(*[array.shape for array in inputs])
    return set_weights_by_formula(layer)


@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
def test_how_long_queries_and_keys_were_does_not_matter(policy):
    options = {"use_bias": False, "query_key_norm": True, "dtype": policy}
    layer = layer_of(PMHCA, QUERY, KEY, VALUE, **options)
    layer.scale.assign(3.0)
    _, scores = layer(QUERY, KEY, VALUE, return_attention_scores=True)
    # Squared, lengths like these leave half precision.
    _, longer = layer(3000 * QUERY, 9 * KEY, VALUE, return_attention_scores=True)
    np.testing.assert_allclose(longer, scores, atol=1e-3)
    assert np.std(scores) > 0.05


def test_a_sequence_of_padding_alone_gives_finite_numbers():
    layer = layer_of(PMHA, QUERY, KEY, VALUE)
    assert np.isfinite(layer(QUERY, KEY, VALUE, key_mask=np.zeros((2, 6), bool))).all()


def test_what_keras_quantises_computes_nearly_the_same():
    layer = layer_of(PMHA, QUERY, KEY, VALUE)
    before = np.asarray(layer(QUERY, KEY, VALUE))
    for part in ("query", "key", "value", "output"):
        getattr(layer, f"{part}_dense").quantize("int8")
    after = np.asarray(layer(QUERY, KEY, VALUE))
    assert 0 < np.abs(after - before).max() < 0.05 * np.abs(before).max()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: PMHA(2, 3)(QUERY[0], KEY, VALUE), r"'query': \(4, 8\)"),
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
        (
            lambda: layer_of(PMHA, QUERY, KEY, VALUE)(QUERY[..., :4], KEY, VALUE),
            r"query was built .*\(8,\). Received: \(2, 4, 4\)",
        ),
        (lambda: PMHA(2, 3, position="rotary"), "Positional.*Received: 'rotary'"),
        (lambda: padding_mask(np.ones((2, 3))), "integer.*dtype=float"),
        (lambda: padding_mask(np.array([3, 0])), r"\(batch, length\).*shape=\(2,\)"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
