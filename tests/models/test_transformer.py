"""The models: sizes, equations, padding, causality, and the grid between them."""

import collections
import math
import pathlib

import keras
import numpy as np
import oracle
import pytest
from formula import perturb_weights
from variants import ALL, PREFIX, sees_ahead

from reprt import models
from reprt.layers import padding_mask
from reprt.models.presets import preset
from reprt_lab.paper import PARAMETERS

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "presets.md"


def logits(model, source, target, **options):
    return np.asarray(model((source, target), **options))


@pytest.mark.parametrize(
    "name, vocab_sizes, count",
    [
        ("repe", (7765, 7010), PARAMETERS["repe"]),
        ("baseline", (7765, 7010), PARAMETERS["baseline"]),
        ("repe-causal", (7765, 7010), 2_809_768),
        ("transformer-base", (37_000, 37_000), 63_045_632),
        ("transformer-big", (37_000, 37_000), 214_171_648),
        ("transformer-modern", (30_000, 30_000), 74_990_592),
        ("decoder-only", (32_000, 32_000), 76_280_320),
    ],
)
def test_parameters_are_those_of_source_and_page(name, vocab_sizes, count):
    assert models.build(name, *vocab_sizes).count_params() == count
    assert f" {count:,} " in PAGE.read_text("utf-8")


def test_the_big_transformer_is_that_of_its_source():
    big = preset("transformer-big")  # Vaswani et al. 2017, table 3
    assert (big.num_heads, big.key_dim, big.dropout) == (16, 64, 0.3)


def weight_kind(weight):
    if weight.name in ("gamma", "beta"):
        return "gains and shifts"
    if weight.name == "bias" and "/feed_forward/" not in weight.path:
        return (
            "output's bias"
            if weight.shape == (7010,)
            else "projections' biases"
        )
    return "in the equations"


def vocabularies_that_fit(*kinds):
    """The sizes with which the paper's two counts come out, if there are any."""
    sizes_per_piece, fixed_sizes = [], []
    for name in ("repe", "baseline"):
        sizes = collections.Counter()
        for weight in models.build(name, 7765, 7010).weights:
            if weight_kind(weight) not in kinds:
                vocabulary = next(
                    (size for size in weight.shape if size in (7765, 7010)), 1
                )
                sizes[vocabulary] += math.prod(weight.shape) // vocabulary
        sizes_per_piece.append([sizes[7765], sizes[7010]])
        fixed_sizes.append(sizes[1])
    counts = [PARAMETERS[name] for name in ("repe", "baseline")]
    vocabularies = np.linalg.solve(
        sizes_per_piece, np.subtract(counts, fixed_sizes)
    )
    sizes = vocabularies.round()
    return sizes.tolist() if np.allclose(vocabularies, sizes) else None


def test_the_papers_counts_need_biases_but_not_gains_and_shifts():
    """`docs/faithful.md` says so."""
    norms, output = "gains and shifts", "output's bias"
    projections = "projections' biases"
    assert vocabularies_that_fit() == [7765, 7010]
    assert vocabularies_that_fit(norms) == [7805, 7010]
    for kinds in [output], [projections], [output, projections]:
        assert vocabularies_that_fit(*kinds) is None
        assert vocabularies_that_fit(*kinds, norms) is None


@pytest.mark.parametrize("variant", ALL)
def test_equals_the_equations(variant, make_model, ids):
    name, overrides = ALL[variant]
    model = perturb_weights(make_model(name, blocks=2, **overrides))
    y = logits(model, *ids)
    tolerance = 1e-5 * np.abs(y).max()
    kernel, bias = model.projection()
    product = np.asarray(model.states(ids)) @ kernel + (
        0 if bias is None else bias
    )
    np.testing.assert_allclose(product, y, rtol=0, atol=tolerance)
    weights = model.attention_weights(*ids)
    for row, (source, target) in enumerate(zip(*ids)):
        attention_maps = []
        expected = oracle.transformer(model, source, target, attention_maps)
        is_real = target != 0
        np.testing.assert_allclose(
            y[row][is_real], expected[is_real], rtol=0, atol=tolerance
        )
        maps = {
            "encoder": attention_maps[:2],
            "decoder": attention_maps[2::2],
            "cross": attention_maps[3::2],
        }
        for kind, expected_maps in maps.items():
            queries = source != 0 if kind == "encoder" else is_real
            actual_maps = np.asarray(weights[kind])[:, row][:, :, queries]
            expected_maps = np.array(expected_maps)[:, :, queries]
            np.testing.assert_allclose(
                actual_maps, expected_maps, rtol=0, atol=1e-5
            )


@pytest.mark.parametrize("variant", ALL)
def test_who_sees_later_words(variant, make_model, ids):
    """The leak: the published decoder's statistics tell earlier positions of later
    words. The baseline and prefix statistics are causal."""
    source, target = (np.repeat(side[:1], 4, axis=0) for side in ids)
    name, overrides = ALL[variant]
    model, positions = make_model(name, blocks=2, **overrides), (1, 3, 4)
    target[[1, 2, 3], positions] = 9
    unchanged_logits, *changed_logits = logits(model, source, target)
    for position, new_logits in zip(positions, changed_logits):
        old_logits = unchanged_logits[:position]
        new_logits = new_logits[:position]
        if sees_ahead(variant):
            assert np.abs(old_logits - new_logits).max() > 1e-4
        else:
            np.testing.assert_allclose(old_logits, new_logits, atol=1e-6)
    assert model.looks_ahead == sees_ahead(variant)


def test_values_are_dropped_out_once_for_all_blocks(make_model, ids):
    source, _ = ids
    model = make_model("repe", blocks=2, dropout=0.5, dropout_places=["values"])
    seed = model.source_embedding.token_dropout_layer.seed_generator.state
    old_seed = np.array(seed)
    mask = padding_mask(source)
    plain_tokens, states = map(np.asarray, model.source_embedding(source, mask))
    tokens, other_states = map(
        np.asarray, model.source_embedding(source, mask, training=True)
    )
    np.testing.assert_array_equal(other_states, states)
    assert 0.3 < np.mean(tokens == 0) < 0.7
    np.testing.assert_allclose(
        tokens, np.where(tokens == 0, 0, 2 * plain_tokens), atol=1e-6
    )
    seed.assign(old_seed)
    memory = model.encode(source, training=True)
    np.testing.assert_array_equal(
        memory.tokens, tokens
    )  # what the decoder weighs
    expected = model.encoder(states, tokens, padding_mask=mask)
    np.testing.assert_allclose(memory.states, expected, atol=1e-6)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize(
    "variant", ["repe", "baseline", "tied, one table", "repe, causal"]
)
def test_half_precision_is_near_full_precision(
    variant, policy, make_model, ids
):
    name, overrides = ALL[variant]
    expected = logits(make_model(name, blocks=2, **overrides), *ids)
    keras.config.set_dtype_policy(policy)
    try:
        half_model = make_model(name, blocks=2, **overrides)
    finally:
        keras.config.set_dtype_policy("float32")
    outputs = np.asarray(half_model(ids), dtype="float32")
    np.testing.assert_allclose(
        outputs, expected, atol=0.05 * np.abs(expected).max()
    )


@pytest.mark.parametrize(
    "name, settings, message",
    [
        ("rope", {}, r"\('repe', 'baseline', .*'rope'"),
        ("repe", {"heads": 2}, "'heads'.*nearest.*'num_heads'"),
        ("repe", {"num_blocks": 0}, "'num_blocks' .* equal to 1. Received: 0"),
        ("repe", {"position": "learned"}, "'learned'"),
        (
            "repe",
            {"dropout_places": ["inputs"]},
            "'values'. Received: 'inputs'",
        ),
        ("repe", {"position": "rotary", "key_dim": 5}, "pairs of .*key_dim=5"),
        (
            "baseline",
            {"position_dim": 8},
            "='add' has no position_dim.*'untied'",
        ),
        (
            "baseline",
            {"decoder_statistics": "prefix"},
            "='none' has no decoder_",
        ),
        (
            "decoder-only",
            {"decoder_statistics": "prefix"},
            "='none' has no decoder_",
        ),
        ("repe", {"embedding_norm": "rms", **PREFIX}, "='rms' has no decoder_"),
        (
            "repe",
            {"embedding_norm": "rms", "decoder_norm": "rms", **PREFIX},
            "decoder_norm='rms' has no .* set decoder_norm='token_norm'",
        ),
        (
            "repe",
            {"decoder_norm": "rms", **PREFIX},
            "decoder_norm='rms' has no",
        ),
        (
            "repe",
            {"output_tying": "tied"},
            "wider than embeddings.*'projected'",
        ),
        ("repe", {"shared_embedding": True}, "one vocabulary.* of 9 and 8"),
        ("repe", {"dropout_places": []}, "acts nowhere"),
        ("baseline", {"dropout_places": ["values"]}, "acts nowhere"),
    ],
)
def test_impossible_models_are_refused_with_the_reason(name, settings, message):
    with pytest.raises(ValueError, match=message):
        models.build(name, 9, 8, **settings)


def test_fit_traces_its_step_once(make_model, ids, monkeypatch):
    from reprt.losses import MaskedCrossentropy

    traces = []
    model = make_model("repe")
    step = model.train_step
    monkeypatch.setattr(
        model, "train_step", lambda data: traces.append(1) or step(data)
    )
    model.compile("adam", MaskedCrossentropy())
    model.fit(ids, ids[1], epochs=2, verbose=0)
    assert len(traces) == 1
