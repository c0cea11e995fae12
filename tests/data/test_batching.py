import numpy as np
import pytest

from reprt.data.batching import (
    BatchPlan,
    batches_by_length,
    bucketed_order,
    training_order,
)

# Spread as those of talks are.
LENGTHS = (
    np.random.default_rng(0).lognormal(3, 0.6, 1_001).astype(int).clip(3, 64)
)


def lists(batches):
    return [batch.tolist() for batch in batches]


@pytest.fixture
def tokens():
    return BatchPlan(LENGTHS, 500, "tokens", seed=3)


@pytest.mark.parametrize("bucketed", [False, True])
@pytest.mark.parametrize("size", [1, 64, 1_000, 1_001, 5_000])
def test_batches_of_sentences_are_the_order_cut(bucketed, size):
    plan = BatchPlan(LENGTHS, size, "sentences", bucketed, seed=3)
    if bucketed:
        order = bucketed_order(LENGTHS, size, 3, 5)
    else:
        order = training_order(len(LENGTHS), 3, 5)
    cut = [order[at : at + size].tolist() for at in range(0, len(order), size)]
    assert lists(plan.batches(5)) == cut and plan.steps == len(cut)
    assert sum(lists(plan.batches()), []) == list(range(len(LENGTHS)))


@pytest.mark.parametrize("epoch", [None, 0, 1])
def test_batches_of_tokens_have_every_sentence_once_and_are_nearly_full(
    tokens, epoch
):
    batches = tokens.batches(epoch)
    assert sorted(np.concatenate(list(batches))) == list(range(len(LENGTHS)))
    assert len(batches) == tokens.steps
    padded = [len(batch) * LENGTHS[batch].max() for batch in batches]
    assert max(padded) <= 500 and np.median(padded) > 400
    assert sum(padded) < 1.1 * LENGTHS.sum()
    assert all(len(batch) <= 500 // LENGTHS[batch].max() for batch in batches)


def test_batches_of_tokens_are_mixed_and_meet_in_other_company_each_epoch(
    tokens,
):
    longest = [LENGTHS[batch].max() for batch in tokens.batches(0)]
    assert 0.3 < (np.diff(longest) > 0).mean() < 0.7  # neither rises nor falls
    assert (np.diff([LENGTHS[b].max() for b in tokens.batches()]) >= 0).all()
    one, other = (
        {frozenset(b) for b in lists(tokens.batches(e))} for e in (0, 1)
    )
    assert len(one & other) < 0.1 * len(one)


def test_batches_of_tokens_are_only_a_function_of_text_seed_and_epoch(tokens):
    first = lists(tokens.batches(5))
    np.random.seed(1)
    assert lists(BatchPlan(LENGTHS, 500, "tokens", seed=3).batches(5)) == first
    for seed, epoch in ((3, 6), (4, 5), (5, 3)):
        other = BatchPlan(LENGTHS, 500, "tokens", seed=seed)
        assert lists(other.batches(epoch)) != first


@pytest.mark.parametrize("name, size", [("sentences", 64), ("tokens", 500)])
def test_an_epoch_goes_on_where_it_stopped(name, size):
    plan = BatchPlan(LENGTHS, size, name, seed=3)
    whole = lists(plan.batches(1))
    for skip in (0, 1, plan.steps // 2, plan.steps - 1, plan.steps):
        assert lists(plan.batches(1, skip)) == whole[skip:]


def test_a_sentence_that_no_batch_has_room_for_is_told():
    assert BatchPlan(LENGTHS, 64, "tokens").steps > 0
    with pytest.raises(ValueError, match="longest sentence's 64 .* size=63"):
        BatchPlan(LENGTHS, 63, "tokens")
    assert BatchPlan(LENGTHS[:0], 64, "tokens").steps == 0


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("batch_size", [1, 2, 7, 100])
def test_every_sentence_is_in_one_batch(batch_size, equal):
    lengths = np.random.default_rng(0).integers(1, 9, 50)
    found = lists(batches_by_length(lengths, batch_size, equal))
    assert sorted(sum(found, [])) == list(range(50))
    assert max(map(len, found)) <= batch_size
    order = [lengths[index] for batch in found for index in batch]
    assert order == sorted(lengths)
    if equal:
        assert all(len(set(lengths[batch])) == 1 for batch in found)
        # As few as can be.
        _, counts = np.unique(lengths, return_counts=True)
        assert len(found) == sum(-(-counts // batch_size))
