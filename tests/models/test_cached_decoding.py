"""Steps through `start` and `step` give what decoding each prefix alone gives."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from formula import shaken
from variants import FAMILY, ONE_SEQUENCE, POSITIONED, PREFIX, REPE, sees_ahead

from reprt.decoding.beam_search import BeamSearch
from reprt.layers import FeedForward, TokenNorm
from reprt.models.prefixes import CachedPrefixes, RecomputedPrefixes

BLOCKS = 2
CACHED = {
    "baseline": ("baseline", {}),
    "baseline, tokens": ("baseline", {"value": "tokens"}),
    "baseline, concat": ("baseline", {"position": "concat"}),
    "prefix": ("repe", PREFIX),
    "prefix, add": ("repe", {**PREFIX, "position": "add"}),
    "prefix, add, states": ("repe", {**PREFIX, "position": "add", "value": "states"}),
    "prefix, states": ("repe", {**PREFIX, "value": "states"}),
    "prefix on both sides": ("repe", {**PREFIX, "encoder_statistics": "prefix"}),
    "prefix, padding counts": ("repe", {**PREFIX, "padding_in_statistics": True}),
    **{variant: FAMILY[variant] for variant in FAMILY if not sees_ahead(variant)},
    **POSITIONED,
    **ONE_SEQUENCE,
    "one sequence": ("decoder-only", {}),
    "one sequence, restart": ("decoder-only", {"target_positions": "restart"}),
    "one sequence, queries and keys normed": ("decoder-only", {"query_key_norm": True}),
}
RECOMPUTED = {
    "published": ("repe", {}),
    "published, add, states": ("repe", {"position": "add", "value": "states"}),
    "published, padding counts": ("repe", {"padding_in_statistics": True}),
    **{variant: FAMILY[variant] for variant in FAMILY if sees_ahead(variant)},
    "one sequence, published": ("decoder-only", REPE),
    "one sequence, prefix": ("decoder-only", {**REPE, **PREFIX}),
}
SOURCE = np.array(
    [[2, 9, 5, 7, 4, 3], [2, 6, 8, 3, 0, 0], [2, 5, 10, 9, 3, 0]], dtype="int32"
)


@pytest.fixture
def build(tiny):
    """Makes a variant."""

    def make(variant):
        name, settings = {**CACHED, **RECOMPUTED}[variant]
        return shaken(tiny(name, **settings))

    return make


class Walk:
    """Hypotheses that go on by random words, beside the prefixes that they stand for.

    Args:
        model: the model that is stepped through.
        beams: hypotheses of each sentence.
        capacity: how many tokens there is room for at first.
    """

    def __init__(self, model, beams, capacity):
        self.model, self.beams = model, beams
        self.random = np.random.default_rng(0)
        self.kept = model.start(model.encode(SOURCE, training=False), beams, capacity)
        self.sentences = np.arange(len(SOURCE))
        self.words = np.zeros((len(SOURCE) * beams, 0), "int32")

        # A graph for any length, so that the reference costs little.
        ids = tf.TensorSpec([None, None], "int32")
        self.read = tf.function(
            lambda source, prefix: model((source, prefix), training=False)[:, -1],
            input_signature=[ids, ids],
        )

    def step(self):
        """Takes a word more, and compares the logits with those of the prefixes."""
        words = self.random.integers(1, 10, len(self.words), dtype="int32")
        position = self.words.shape[1]
        logits, self.kept = self.model.step(words, position, self.kept)
        self.words = np.column_stack([self.words, words])
        sources = np.repeat(SOURCE[self.sentences], self.beams, axis=0)
        expected = np.array(self.read(sources, self.words))
        np.testing.assert_allclose(
            np.array(logits), expected, rtol=0, atol=2e-6 * np.abs(expected).max()
        )

    def reorder(self):
        """Lets some hypotheses take the place of others of their sentence."""
        chosen = self.random.integers(0, self.beams, (len(self.sentences), self.beams))
        chosen += self.beams * np.arange(len(self.sentences))[:, None]
        self.kept = self.kept.of_hypotheses(chosen.ravel())
        self.words = self.words[chosen.ravel()]

    def select(self, sentences):
        """Keeps these sentences, in this order."""
        chosen = np.array(sentences)
        hypotheses = self.beams * chosen[:, None] + np.arange(self.beams)
        self.kept = self.kept.of_sentences(chosen, hypotheses.ravel())
        self.words = self.words[hypotheses.ravel()]
        self.sentences = self.sentences[chosen]

    @property
    def room(self):
        if isinstance(self.kept, RecomputedPrefixes):
            return self.kept.ids.shape[1]
        block = self.kept.blocks[0]
        return sum(values.shape[2] for _, values in (block.past, block.recent))

    def extend(self, tokens):
        before = self.room
        self.kept = self.kept.extended(tokens)
        assert self.room == before + tokens


@pytest.mark.parametrize("variant", [*CACHED, *RECOMPUTED])
def test_each_step_is_its_prefix_decoded_alone(variant, build):
    walk = Walk(build(variant), beams=3, capacity=4)
    kind = CachedPrefixes if variant in CACHED else RecomputedPrefixes
    assert isinstance(walk.kept, kind) and walk.room == 4
    for _ in range(2):
        walk.step()
    walk.reorder()
    for _ in range(2):
        walk.step()
    walk.extend(3)
    walk.step()
    walk.select([2, 0])
    walk.step()
    walk.reorder()
    walk.select([1])
    walk.step()
    walk.extend(1)
    walk.step()
    assert isinstance(walk.kept, kind) and walk.words.shape == (3, 8)


def test_fifty_words_later_nothing_has_drifted(build):
    walk = Walk(build("prefix"), beams=2, capacity=16)
    for position in range(50):
        if position == walk.room:
            walk.extend(max(16, position // 2))
        if position == 30:
            walk.select([0, 2])
        walk.step()
        if position % 7 == 0:
            walk.reorder()


@pytest.mark.parametrize("variant", ["baseline", "prefix", "prefix, add, states"])
def test_steps_are_the_positions_of_teacher_forcing(variant, build):
    """Unless the model looks ahead, which the next test shows."""
    model, target = build(variant), np.array([[2, 4, 7, 5, 6, 9, 9, 3]] * 3, "int32")
    assert not model.looks_ahead
    forced = np.array(model((SOURCE, target)))
    kept = model.start(model.encode(SOURCE), 1, 8)
    for position in range(8):
        logits, kept = model.step(target[:, position], position, kept)
        np.testing.assert_allclose(logits, forced[:, position], rtol=0, atol=1e-4)


def test_the_published_model_sees_in_teacher_forcing_what_no_step_sees(build):
    model, target = build("published"), np.array([[2, 4, 7, 5, 6, 9]] * 3, "int32")
    assert model.looks_ahead
    forced = np.array(model((SOURCE, target)))
    kept, apart = model.start(model.encode(SOURCE), 1, 8), []
    for position in range(6):
        logits, kept = model.step(target[:, position], position, kept)
        apart.append(np.abs(logits - forced[:, position]).max())
    assert min(apart[:-1]) > 0.1 and apart[-1] < 1e-4


@pytest.mark.parametrize(
    "variant, policy",
    [
        ("baseline", "mixed_bfloat16"),
        ("prefix", "mixed_float16"),
        ("published", "mixed_float16"),
        ("repe, causal", "mixed_bfloat16"),
    ],
)
def test_half_precision_is_near_full_precision(variant, policy, build):
    full = build(variant)
    keras.config.set_dtype_policy(policy)
    try:
        half = build(variant)
    finally:
        keras.config.set_dtype_policy("float32")
    words = np.array([[2, 4, 7], [2, 9, 8], [2, 5, 1]], "int32")
    kept = half.start(half.encode(SOURCE), 1, 3)
    for position in range(3):
        logits, kept = half.step(words[:, position], position, kept)
    alone = np.array(full((SOURCE, words)), "float32")[:, -1]
    np.testing.assert_allclose(
        np.array(logits, "float32"), alone, rtol=0, atol=0.05 * np.abs(alone).max()
    )


@pytest.fixture
def lengths_seen(monkeypatch):
    """The lengths of all that a position-wise network is given, in the making.

    Nine tenths of a step's work is done there and in projections of the same states.
    """
    seen, call = [], FeedForward.call

    def spy(self, x, training=None):
        seen.append(x.shape[1])
        return call(self, x, training=training)

    monkeypatch.setattr(FeedForward, "call", spy)
    return seen


@pytest.mark.parametrize("variant", ["baseline", "prefix", "published"])
def test_a_step_costs_one_token_however_many_came_before(variant, lengths_seen, build):
    model = build(variant)
    kept = model.start(model.encode(SOURCE), 2, 16)
    words = np.full(6, 5, "int32")
    for position in (0, 1, 7, 15):
        lengths_seen.clear()
        model.step(words, position, kept)
        # One call for each block, with every hypothesis in it.
        expected = 1 if variant in CACHED else 16
        assert lengths_seen == [expected] * BLOCKS


def test_no_search_step_decodes_more_than_one_token(lengths_seen, build):
    model = build("prefix")
    bias = model.output_dense.bias
    bias.assign(np.where(np.arange(10) == 3, -1e9, np.array(bias)))
    search = BeamSearch(model, 2, 3, beam_size=2, max_tokens=20)
    tf.config.run_functions_eagerly(True)
    try:
        search(SOURCE)
    finally:
        tf.config.run_functions_eagerly(False)
    assert lengths_seen == [SOURCE.shape[1]] * BLOCKS + [1] * 20 * BLOCKS


def numbers_in_products(model, capacity):
    """How many numbers the matrix products of a step read and write."""
    kept = model.start(model.encode(SOURCE), 1, capacity)
    step = tf.function(model.step).get_concrete_function(
        tf.constant([5, 6, 7]), tf.constant(9), kept
    )
    return sum(
        size.shape.num_elements()
        for operation in step.graph.get_operations()
        if operation.type in ("MatMul", "BatchMatMulV2", "Einsum")
        for size in (*operation.inputs, *operation.outputs)
    )


def test_only_attention_grows_with_the_room_for_tokens(build):
    model = build("prefix")
    growth = numbers_in_products(model, 48) - numbers_in_products(model, 16)
    # Of each head and token: a key, a value, and its score before and after softmax.
    hypotheses, heads, key, value = 3, 2, 4, 3
    assert growth == BLOCKS * hypotheses * heads * 32 * (key + value + 2)


def stepped(layer, x):
    statistics, rows = layer.start(len(x), x.shape[2]), []
    for position in range(x.shape[1]):
        row = x[:, position : position + 1]
        row, statistics = layer.step(row, position, statistics)
        assert tuple(row.shape) == (len(x), 1, x.shape[2])
        rows.append(np.array(row))
    return np.concatenate(rows, axis=1), statistics


@pytest.mark.parametrize("mean, spread", [(0.0, 1.0), (1e4, 1.0), (-3.0, 1e-3)])
def test_token_norms_steps_are_the_rows_of_its_call(mean, spread):
    random = np.random.default_rng(0)
    x = random.normal(mean, spread, (3, 200, 5)).astype("float32")
    layer = TokenNorm("prefix")
    rows, statistics = stepped(layer, x)
    np.testing.assert_allclose(rows, np.array(layer(x)), atol=2e-4)
    assert not rows[:, 0].any()
    # And the equations, in float64, to as much as a float32 near the mean is known.
    exact = x.astype("float64")
    for row in (1, 10, 199):
        tokens = exact[:, : row + 1]
        expected = (exact[:, row] - tokens.mean(1)) / np.sqrt(tokens.var(1) + 1e-6)
        np.testing.assert_allclose(rows[:, row], expected, atol=2e-3)
    np.testing.assert_array_equal(statistics.first, x[:, :1])


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_token_norms_steps_keep_statistics_in_float32(policy):
    # Multiples of 256 are exact in all three types, and their squares in one alone.
    x = 256.0 * np.round(np.random.default_rng(0).normal(0, 3, (1, 60, 4)))
    layer, half = TokenNorm("prefix"), TokenNorm("prefix", dtype=policy)
    rows, statistics = stepped(half, tf.cast(x, half.compute_dtype))
    assert rows.dtype == half.compute_dtype
    assert {each.dtype for each in statistics} == {tf.float32}
    expected, _ = stepped(layer, x.astype("float32"))
    np.testing.assert_allclose(rows.astype("float32"), expected, atol=0.02)


def test_token_norms_steps_may_be_more_exact_than_float32():
    layer = TokenNorm("prefix", dtype="float64")
    _, statistics = stepped(layer, tf.ones((1, 3, 4), "float64"))
    assert {each.dtype for each in statistics} == {tf.float64}


def test_statistics_of_a_whole_sequence_have_no_steps():
    layer = TokenNorm("sequence")
    with pytest.raises(ValueError, match="statistics='prefix'.*'sequence', in which"):
        layer.step(np.zeros((1, 1, 3), "float32"), 0, layer.start(1, 3))
