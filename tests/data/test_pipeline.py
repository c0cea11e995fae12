import numpy as np
import pytest

from reprt.data import embedded
from reprt.data.pipeline import EncodedSplit, batches, encode, training_order
from reprt.data.tokenizer import END_ID, START_ID


def sentence(length, first):
    return np.array([START_ID, *range(first, first + length), END_ID], "int32")


@pytest.fixture
def split():
    """Seven pairs; the pair i begins with the words 10 i and 10 i + 5."""
    source, target = (3, 1, 2, 4, 1, 3, 2), (1, 4, 2, 3, 1, 4, 3)
    return EncodedSplit(
        [sentence(length, 10 * i) for i, length in enumerate(source, start=1)],
        [sentence(length, 10 * i + 5) for i, length in enumerate(target, start=1)],
    )


def read(dataset):
    return [
        (source.numpy(), inputs.numpy(), labels.numpy())
        for (source, inputs), labels in dataset
    ]


def test_labels_are_the_inputs_moved_by_one(split):
    ((source, inputs, labels),) = read(batches(split, 7))
    for row, (ids, target) in enumerate(zip(split.source, split.target)):
        words = len(target) - 1
        assert source[row, : len(ids)].tolist() == ids.tolist()
        assert inputs[row, :words].tolist() == target[:-1].tolist()
        assert labels[row, :words].tolist() == target[1:].tolist()


def test_padding_is_at_the_end_alone_and_reaches_the_longest_of_the_batch(split):
    for number, batch in enumerate(read(batches(split, 3))):
        pairs = range(3 * number, min(3 * number + 3, 7))
        longest = (
            max(len(split.source[i]) for i in pairs),
            *[max(len(split.target[i]) for i in pairs) - 1] * 2,
        )
        for ids, width in zip(batch, longest):
            assert ids.dtype == np.int32 and ids.shape == (len(pairs), width)
            real = ids != 0
            assert (real[:, :-1] >= real[:, 1:]).all() and real[:, 0].all()


def test_the_last_small_batch_is_kept(split):
    assert [len(labels) for *_, labels in read(batches(split, 3))] == [3, 3, 1]
    assert split.steps(3) == 3 and split.steps(7) == 1 and split.steps(8) == 1


def test_an_order_is_followed(split):
    order = [6, 0, 3, 1, 5, 2, 4]
    firsts = [source[:, 1] for source, *_ in read(batches(split, 2, order))]
    assert np.concatenate(firsts).tolist() == [10 * (i + 1) for i in order]


@pytest.mark.parametrize("skip", [0, 1, 2, 3])
def test_skip_drops_the_first_batches(split, skip):
    order = training_order(7, seed=0, epoch=0)
    whole = read(batches(split, 3, order))
    rest = read(batches(split, 3, order, skip))
    assert len(rest) == 3 - skip
    for expected, received in zip(whole[skip:], rest):
        for one, other in zip(expected, received):
            np.testing.assert_array_equal(one, other)


def test_the_training_order_is_a_function_of_seed_and_epoch_alone():
    first = training_order(100, seed=3, epoch=5)
    np.random.seed(1)
    assert training_order(100, seed=3, epoch=5).tolist() == first.tolist()
    assert sorted(first.tolist()) == list(range(100))
    others = [training_order(100, *which) for which in ((3, 6), (4, 5), (5, 3))]
    assert all(other.tolist() != first.tolist() for other in others)


@pytest.mark.parametrize("batch_size", [0, -1])
def test_a_batch_has_a_sentence_at_least(split, batch_size):
    with pytest.raises(ValueError, match=f"at least 1, got {batch_size}"):
        batches(split, batch_size)


@pytest.fixture(scope="module")
def corpus():
    return embedded.load(train=40, dev=5, test=3)


def test_long_sentences_are_cut_and_lose_their_end(corpus, tmp_path):
    whole = encode(corpus, 150, 1000, tmp_path)
    cut = encode(corpus, 150, 10, tmp_path)
    sides = [("source", 10), ("target", 11)]  # inputs and labels each drop one
    for name in ("train", "dev", "test"):
        for side, kept in sides:
            long, short = (getattr(getattr(t, name), side) for t in (whole, cut))
            assert max(map(len, long)) > kept == max(map(len, short))
            for one, other in zip(long, short, strict=True):
                assert one[:kept].tolist() == other.tolist()
                assert (other[-1] == END_ID) == (len(one) <= kept)
    (_, inputs, labels) = read(batches(cut.train, 40))[0]
    assert inputs.shape[1] == labels.shape[1] == 10


def test_vocabularies_are_learnt_on_the_training_text_alone(corpus, tmp_path):
    other = embedded.load(train=40, dev=5, test=3, seed=1)
    mixed = encode(
        type(corpus)(**{**vars(corpus), "dev": other.dev, "test": other.test}),
        150,
        99,
        tmp_path,
    )
    text = encode(corpus, 150, 99, tmp_path)
    assert mixed.source_tokenizer.digest() == text.source_tokenizer.digest()
    assert text.source_tokenizer.digest() != text.target_tokenizer.digest()
    assert (len(text.train), len(text.dev), len(text.test)) == (40, 5, 3)
