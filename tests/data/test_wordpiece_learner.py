"""The learner of WordPiece against tensorflow-text's."""

import collections

import numpy as np
import pytest
from tensorflow_text.tools.wordpiece_vocab import (
    wordpiece_tokenizer_learner_lib as theirs,
)

from reprt.constants import RESERVED
from reprt.data.corpora.embedded import load
from reprt.data.tokenizers.wordpiece_learner import learn


def words_of(sentences):
    counts = collections.Counter()
    for sentence in sentences:
        counts.update(sentence.lower().split())
    return counts


def made_up_words(alphabet, most, seed):
    """Words of random letters, whose counts fall as those of a language do."""
    generator = np.random.default_rng(seed)
    counts = {}
    for rank in range(1, 400):
        letters = generator.choice(list(alphabet), generator.integers(1, 9))
        counts["".join(letters)] = 1 + most // rank
    return counts


@pytest.mark.parametrize("size", [20, 100, 700, 5000])
@pytest.mark.parametrize(
    "counts",
    [
        *(made_up_words("ab", 3000, seed) for seed in range(3)),
        *(made_up_words("abcdefgh", 500, seed) for seed in range(3)),
        made_up_words("กขคงจฉชซ", 2000, 4),
        made_up_words("abc", 5, 5),
        {"[UNK]": 50, "a": 1},
        {"word": 20_000_000, "words": 11, "wo": 9},
    ],
)
@pytest.mark.parametrize("characters", [4, 1000])
def test_the_vocabulary_is_that_of_tensorflow_text(counts, size, characters):
    expected = theirs.learn(
        counts, size, list(RESERVED), max_unique_chars=characters
    )
    assert learn(counts, size, RESERVED, 50, characters) == expected


@pytest.mark.parametrize("side", ["source", "target"])
def test_so_it_is_for_the_embedded_text(side):
    counts = words_of(getattr(load().train, side))
    for size in (100, 400):
        expected = theirs.learn(counts, size, list(RESERVED))
        assert learn(counts, size, RESERVED, 50, 1000) == expected
