import numpy as np
import pytest

from reprt.decoding import greedy_search

START, END = 2, 3


def one_by_one(model, source, max_tokens):
    """Greedy search as one would explain it: a sentence, a prefix, a next word."""
    prefix = [START]
    while len(prefix) <= max_tokens:
        logits = np.asarray(model((source[None], np.array([prefix]))))
        prefix.append(int(logits[0, -1].argmax()))
        if prefix[-1] == END:
            break
    return prefix


@pytest.mark.filterwarnings("ignore:(?s).*You are using a softmax")
@pytest.mark.parametrize("name", ["repe", "baseline"])
def test_a_batch_is_translated_like_its_sentences_alone(name, tiny, ids):
    source, _ = ids
    model = tiny(name)
    # So that one of the sentences ends early.
    bias = model.output_dense.bias
    bias.assign(np.asarray(bias) + 0.1 * (np.arange(10) == END))
    found = greedy_search(model, source, START, END, max_tokens=7)
    for row, sentence in zip(found, source):
        expected = one_by_one(model, sentence[sentence != 0], 7)
        np.testing.assert_array_equal(row[: len(expected)], expected)
        assert not row[len(expected) :].any()


def test_a_translation_ends_somewhere(tiny, ids):
    source, _ = ids
    model = tiny("baseline")
    bias = model.output_dense.bias
    bias.assign(np.where(np.arange(10) == END, -1e9, np.asarray(bias)))
    found = greedy_search(model, source, START, END)
    assert found.shape == (2, 1 + source.shape[1] + 50)
    assert (found[:, 0] == START).all()
