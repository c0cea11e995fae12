"""A decoder-only model: its equations, who sees what, its cache, its objective."""

import numpy as np
import oracle
import pytest
from formula import perturb_weights
from naive import log_softmax
from tiny import LABELS, SOURCE, TARGET

from reprt.training.objective import Objective, TranslationAndSource
from reprt.training.settings import TranslationAndSourceSettings


@pytest.fixture
def build(make_model):
    """Makes a small model in which each token leaves its mark on all that follow."""

    def make(**overrides):
        return perturb_weights(make_model("decoder-only", **overrides))

    return make


def reference_logits(model, source, target):
    """Logits of one pair without padding, of every token of both."""
    config, ids = model.config, np.concatenate([source, target])
    table = np.asarray(model.embedding.embedding.embeddings, "float64")
    positions = np.arange(len(ids))
    if config.target_positions == "restart":
        positions = np.concatenate(
            [np.arange(len(source)), np.arange(len(target))]
        )
    m, epsilon = config.embedding_dim, config.layer_norm_epsilon
    x = m**0.5 * table[ids] + oracle.table(100, m)[positions]
    for block in model.decoder.blocks:
        y = oracle.layer_norm(block.self_norm, x, epsilon)
        causal = np.tri(len(ids), dtype=bool)
        x = x + oracle.attention(block.self_attention, y, y, y, causal)[0]
        y = oracle.layer_norm(block.feed_forward_norm, x, epsilon)
        x = x + oracle.feed_forward(block.feed_forward, y, "gelu")
    return oracle.layer_norm(model.decoder.final_norm, x, epsilon) @ table.T


def side_logits(model, *ids):
    return [
        np.asarray(model.logits(states)) for states in model.both_states(ids)
    ]


def numbers(model):
    """A loss, and the logits of two steps, which every backend must give."""
    settings = TranslationAndSourceSettings()
    objective = TranslationAndSource(model, settings, steps=10)
    batch = (SOURCE, TARGET), LABELS
    loss, _ = objective.loss(*batch, 3, objective.counts(*batch))
    prefixes = model.start(model.encode(SOURCE), 2, 3)
    for position in range(2):
        ids = np.repeat(TARGET[:, position], 2)
        logits, prefixes = model.step(ids, position, prefixes)
    return [float(loss), *np.asarray(logits).ravel().tolist()]


@pytest.mark.parametrize("positions", ["continue", "restart"])
def test_equals_the_equations_of_each_pair_alone(build, positions):
    # Sides of 6 and 5 tokens.
    model = build(target_positions=positions, max_length=6)
    logits = np.asarray(model((SOURCE, TARGET)))
    source_logits, target_logits = side_logits(model, SOURCE, TARGET)
    np.testing.assert_array_equal(target_logits, logits)
    for row, (source, target) in enumerate(zip(SOURCE, TARGET)):
        n, t = np.count_nonzero(source), np.count_nonzero(target)
        expected = reference_logits(model, source[:n], target[:t])
        np.testing.assert_allclose(
            source_logits[row, :n], expected[:n], atol=2e-4
        )
        np.testing.assert_allclose(
            target_logits[row, :t], expected[n:], atol=2e-4
        )


def test_each_side_is_as_long_as_the_table_where_it_counts_from_0(build):
    model = build(target_positions="restart", max_length=5)
    with pytest.raises(ValueError, match="6"):
        model((SOURCE, TARGET))
    assert model((SOURCE[:, :5], TARGET)).shape[:2] == TARGET.shape


def test_attention_is_causal_over_both_sides(build):
    weights = np.asarray(
        build(blocks=2).attention_weights(SOURCE, TARGET)["sequence"]
    )
    assert weights.shape == (2, 2, 2, 11, 11)  # blocks, pairs, heads
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
    np.testing.assert_array_equal(
        weights[:, 0] > 0, np.tri(11) * np.ones((2, 2, 1, 1))
    )
    assert weights[:, 1, :, 6:, 4:6].max() == 0  # the padding between the two


def test_inputs_that_are_no_pair_are_refused(build):
    with pytest.raises(ValueError, match=r"pair \(source_.*Received: 3 inputs"):
        build()((SOURCE, TARGET, LABELS))


def test_the_source_counts_less_and_less_and_is_not_smoothed(build):
    model = build(dropout=0.0)
    settings = TranslationAndSourceSettings(
        label_smoothing=0.2, alpha=0.4, turn=0.5
    )
    objective = TranslationAndSource(model, settings, steps=20)
    batch = (SOURCE, TARGET), LABELS
    # λ falls to 0.4 within 10 steps, then to 0.
    weights = [1, 0.7, 0.4, 0.2, 0]
    for step, weight in zip((0, 5, 10, 15, 20), weights, strict=True):
        assert float(objective.weight(step)) == pytest.approx(weight)

    source_scores, target_scores = map(
        log_softmax, side_logits(model, SOURCE, TARGET)
    )
    # Of the source neither its first token nor its end, which is 3.
    next_tokens = np.array([[9, 5, 7, 4, 0, 0], [6, 8, 0, 0, 0, 0]])
    token_scores = np.take_along_axis(source_scores, next_tokens[..., None], -1)
    token_scores = token_scores[..., 0]
    source_loss = -token_scores[next_tokens != 0].mean()
    label_scores = np.take_along_axis(target_scores, LABELS[..., None], -1)
    label_scores = label_scores[..., 0]
    smoothed_losses = -(0.8 * label_scores + 0.2 * target_scores.mean(-1))
    smoothed_loss = smoothed_losses[LABELS != 0].mean()
    losses = -label_scores[LABELS != 0]
    for step, weight in ((0, 1.0), (5, 0.7), (15, 0.2)):
        loss, sums = objective.loss(*batch, step, objective.counts(*batch))
        assert float(loss) == pytest.approx(
            weight * source_loss + smoothed_loss, rel=1e-5
        )
        assert float(sums.loss) == pytest.approx(losses.sum(), rel=1e-5)
        assert float(sums.tokens) == 8
    (term,), _ = Objective(model, settings).terms(*batch, 0)
    assert float(term.total) == pytest.approx(8 * smoothed_loss, rel=1e-5)
    loss, *_ = objective.validate(*batch)
    assert float(loss) == pytest.approx(losses.sum(), rel=1e-5)
