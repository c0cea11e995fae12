import pytest
from formula import set_weights_by_formula
from tiny import SOURCE, TARGET, TINY

from reprt import models


@pytest.fixture
def tiny():
    """Makes a small model of the paper's shape, with weights by formula."""

    def make(name, **overrides):
        one = name == "decoder-only" or overrides.get("shared_embedding")
        words = 11 if one else 10  # one vocabulary, or two
        sizes = {**TINY, "num_blocks": 2, "value_dim": 3, **overrides}
        model = models.build(name, 11, words, **sizes)
        return set_weights_by_formula(model)

    return make


@pytest.fixture
def ids():
    """A source and a target of two sentences, the second one padded."""
    return SOURCE, TARGET
