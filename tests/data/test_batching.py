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
def token_plan():
    return BatchPlan(LENGTHS, 500, "tokens", seed=3)


@pytest.mark.parametrize("use_buckets", [False, True])
@pytest.mark.parametrize("size", [1, 64, 1_000, 1_001, 5_000])
def test_batches_of_sentences_are_the_order_cut(use_buckets, size):
    plan = BatchPlan(LENGTHS, size, "sentences", use_buckets, seed=3)
    if use_buckets:
        order = bucketed_order(LENGTHS, size, 3, 5)
    else:
        order = training_order(len(LENGTHS), 3, 5)
    batches = [
        order[start : start + size].tolist()
        for start in range(0, len(order), size)
    ]
    assert lists(plan.batches(5)) == batches
    assert plan.steps == len(batches)
    assert sum(lists(plan.batches()), []) == list(range(len(LENGTHS)))


@pytest.mark.parametrize("epoch", [None, 0, 1])
def test_batches_of_tokens_have_every_sentence_once_and_are_nearly_full(
    token_plan, epoch
):
    batches = token_plan.batches(epoch)
    assert sorted(np.concatenate(list(batches))) == list(range(len(LENGTHS)))
    assert len(batches) == token_plan.steps
    sizes = [len(batch) * LENGTHS[batch].max() for batch in batches]
    assert max(sizes) <= 500 and np.median(sizes) > 400
    assert sum(sizes) < 1.1 * LENGTHS.sum()
    assert all(len(batch) <= 500 // LENGTHS[batch].max() for batch in batches)


def test_batches_of_tokens_are_mixed_and_meet_in_other_company_each_epoch(
    token_plan,
):
    maxima = [LENGTHS[batch].max() for batch in token_plan.batches(0)]
    assert 0.3 < (np.diff(maxima) > 0).mean() < 0.7  # neither rises nor falls
    maxima = [LENGTHS[batch].max() for batch in token_plan.batches()]
    assert (np.diff(maxima) >= 0).all()
    first_epoch = set(map(frozenset, lists(token_plan.batches(0))))
    second_epoch = set(map(frozenset, lists(token_plan.batches(1))))
    assert len(first_epoch & second_epoch) < 0.1 * len(first_epoch)


def test_batches_of_tokens_are_only_a_function_of_text_seed_and_epoch(
    token_plan,
):
    expected = lists(token_plan.batches(5))
    np.random.seed(1)
    plan = BatchPlan(LENGTHS, 500, "tokens", seed=3)
    assert lists(plan.batches(5)) == expected
    for seed, epoch in ((3, 6), (4, 5), (5, 3)):
        plan = BatchPlan(LENGTHS, 500, "tokens", seed=seed)
        assert lists(plan.batches(epoch)) != expected


@pytest.mark.parametrize("name, size", [("sentences", 64), ("tokens", 500)])
def test_an_epoch_goes_on_where_it_stopped(name, size):
    plan = BatchPlan(LENGTHS, size, name, seed=3)
    epoch = lists(plan.batches(1))
    for skip in (0, 1, plan.steps // 2, plan.steps - 1, plan.steps):
        assert lists(plan.batches(1, skip)) == epoch[skip:]


def test_a_sentence_that_no_batch_has_room_for_is_told():
    assert BatchPlan(LENGTHS, 64, "tokens").steps > 0
    with pytest.raises(ValueError, match="longest sentence's 64 .* size=63"):
        BatchPlan(LENGTHS, 63, "tokens")
    assert BatchPlan(LENGTHS[:0], 64, "tokens").steps == 0


@pytest.mark.parametrize("equal_lengths", [False, True])
@pytest.mark.parametrize("batch_size", [1, 2, 7, 100])
def test_every_sentence_is_in_one_batch(batch_size, equal_lengths):
    lengths = np.random.default_rng(0).integers(1, 9, 50)
    batches = lists(batches_by_length(lengths, batch_size, equal_lengths))
    assert sorted(sum(batches, [])) == list(range(50))
    assert max(map(len, batches)) <= batch_size
    order = [lengths[index] for batch in batches for index in batch]
    assert order == sorted(lengths)
    if equal_lengths:
        assert all(len(set(lengths[batch])) == 1 for batch in batches)
        # As few as can be.
        _, counts = np.unique(lengths, return_counts=True)
        assert len(batches) == sum(-(-counts // batch_size))
