import pytest
from formula import set_weights_by_formula
from tiny import RECURRENT, SOURCE, TARGET, TINY

from reprt import models
from reprt.models.presets import preset


@pytest.fixture
def tiny():
    """Makes a small model, with weights by formula."""

    def make(name, blocks=1, **overrides):
        usual = {**TINY, "num_blocks": blocks, "value_dim": 3}
        sizes = {**(RECURRENT if name == "recurrent" else usual), **overrides}
        one = preset(name, **sizes).shared_embedding
        words = 11 if one else 10  # one vocabulary, or two
        model = models.build(name, 11, words, **sizes)
        return set_weights_by_formula(model)

    return make


@pytest.fixture
def ids():
    """A source and a target of two sentences, the second one padded."""
    return SOURCE, TARGET
