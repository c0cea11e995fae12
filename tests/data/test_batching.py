import numpy as np
import pytest

from reprt.data.batching import by_length

LENGTHS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]


def batches(*arguments):
    return [batch.tolist() for batch in by_length(*arguments)]


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("batch_size", [1, 2, 7, 100])
def test_every_sentence_is_in_one_batch(batch_size, equal):
    lengths = np.random.default_rng(0).integers(1, 9, 50)
    found = batches(lengths, batch_size, equal)
    assert sorted(sum(found, [])) == list(range(50))
    assert max(map(len, found)) <= batch_size
    order = [lengths[index] for batch in found for index in batch]
    assert order == sorted(lengths)
    if equal:
        assert all(len(set(lengths[batch])) == 1 for batch in found)
        # As few as can be.
        _, counts = np.unique(lengths, return_counts=True)
        assert len(found) == sum(-(-counts // batch_size))
