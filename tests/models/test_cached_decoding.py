"""Steps through `start` and `step` give what decoding each prefix alone gives."""

import numpy as np
import pytest
from formula import perturb_weights
from variants import FAMILY, ONE_SEQUENCE, POSITIONED, PREFIX, REPE, sees_ahead

from reprt.layers import FeedForward

# Keras wonders at attention over a single token.
pytestmark = pytest.mark.filterwarnings(
    "ignore:(?s).*You are using a softmax over"
)
BLOCKS = 2
CACHED_VARIANTS = {
    "baseline": ("baseline", {}),
    "baseline, tokens": ("baseline", {"value": "tokens"}),
    "baseline, concat": ("baseline", {"position": "concat"}),
    "prefix": ("repe", PREFIX),
    "prefix, add": ("repe", {**PREFIX, "position": "add"}),
    "prefix, add, states": (
        "repe",
        {**PREFIX, "position": "add", "value": "states"},
    ),
    "prefix, states": ("repe", {**PREFIX, "value": "states"}),
    "prefix on both sides": (
        "repe",
        {**PREFIX, "encoder_statistics": "prefix"},
    ),
    "prefix, padding counts": (
        "repe",
        {**PREFIX, "padding_in_statistics": True},
    ),
    **{
        variant: FAMILY[variant]
        for variant in FAMILY
        if not sees_ahead(variant)
    },
    **POSITIONED,
    **ONE_SEQUENCE,
    "one sequence": ("decoder-only", {}),
    "one sequence, restart": ("decoder-only", {"target_positions": "restart"}),
    "one sequence, queries and keys normed": (
        "decoder-only",
        {"query_key_norm": True},
    ),
}
# Variants of a single block.
ONE_BLOCK = {*FAMILY, *POSITIONED, *ONE_SEQUENCE} - {"position=untied"}
RECURRENT_VARIANTS = {
    "recurrent": (
        "recurrent",
        {"output_tying": "tied", "shared_embedding": True},
    ),
    "multiplicative": ("recurrent", {"attention": "multiplicative"}),
}
RECOMPUTED_VARIANTS = {
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
def build(make_model):
    """Makes a variant."""

    def make(variant):
        name, settings = {
            **CACHED_VARIANTS,
            **RECOMPUTED_VARIANTS,
            **RECURRENT_VARIANTS,
        }[variant]
        blocks = 1 if variant in ONE_BLOCK else BLOCKS
        return perturb_weights(make_model(name, blocks, **settings))

    return make


class Walk:
    """Hypotheses that go on by random words, beside the prefixes they stand for."""

    def __init__(self, model, beams, capacity):
        self.model, self.beams, self.capacity = model, beams, capacity
        self.random = np.random.default_rng(0)
        self.prefixes = model.start(
            model.encode(SOURCE, training=False), beams, capacity
        )
        self.sentences = np.arange(len(SOURCE))
        self.words = np.zeros((len(SOURCE) * beams, 0), "int32")

    def step(self):
        """Takes a word more, and compares the logits with those of the prefixes."""
        words = self.random.integers(1, 10, len(self.words), dtype="int32")
        position = self.words.shape[1]
        logits, self.prefixes = self.model.step(words, position, self.prefixes)
        self.words = np.column_stack([self.words, words])
        sources = np.repeat(SOURCE[self.sentences], self.beams, axis=0)
        expected = np.array(self.model((sources, self.words)))[:, -1]
        np.testing.assert_allclose(
            np.array(logits),
            expected,
            rtol=0,
            atol=2e-6 * np.abs(expected).max(),
        )

    def reorder(self):
        """Lets some hypotheses take the place of others of their sentence."""
        hypotheses = self.random.integers(
            0, self.beams, (len(self.sentences), self.beams)
        )
        hypotheses += self.beams * np.arange(len(self.sentences))[:, None]
        self.prefixes = self.prefixes.take_hypotheses(hypotheses.ravel())
        self.words = self.words[hypotheses.ravel()]

    def select(self, sentences):
        """Keeps these sentences, in this order."""
        rows = np.array(sentences)
        hypotheses = self.beams * rows[:, None] + np.arange(self.beams)
        self.prefixes = self.prefixes.take_sentences(rows, hypotheses.ravel())
        self.words = self.words[hypotheses.ravel()]
        self.sentences = self.sentences[rows]

    def extend(self, tokens):
        self.prefixes = self.model.extend(self.prefixes, tokens)
        self.capacity += tokens


@pytest.mark.parametrize(
    "variant", [*CACHED_VARIANTS, *RECOMPUTED_VARIANTS, *RECURRENT_VARIANTS]
)
def test_each_step_is_its_prefix_decoded_alone(variant, build):
    walk = Walk(build(variant), beams=3, capacity=4)
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
    assert walk.words.shape == (3, 8)


@pytest.mark.parametrize("variant", ["baseline", "prefix", "published"])
def test_a_step_costs_one_token_however_many_came_before(
    variant, monkeypatch, build
):
    """By what position-wise networks are given, which do most of a step's work."""
    lengths, call = [], FeedForward.call

    def record_length(self, x, training=None):
        lengths.append(x.shape[1])
        return call(self, x, training=training)

    monkeypatch.setattr(FeedForward, "call", record_length)
    model = build(variant)
    prefixes = model.start(model.encode(SOURCE), 2, 16)
    words = np.full(6, 5, "int32")
    for position in (0, 1, 7, 15):
        lengths.clear()
        model.step(words, position, prefixes)
        # One call for each block, with every hypothesis in it.
        expected = 1 if variant in CACHED_VARIANTS else 16
        assert lengths == [expected] * BLOCKS
