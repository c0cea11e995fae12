import pytest
from formula import set_weights_by_formula
from tiny import RECURRENT, SOURCE, TARGET, TINY

from reprt import models
from reprt.models.presets import preset


@pytest.fixture
def make_model():
    """Makes a small model, with weights by formula."""

    def make(name, blocks=1, **overrides):
        defaults = {**TINY, "num_blocks": blocks, "value_dim": 3}
        sizes = {
            **(RECURRENT if name == "recurrent" else defaults),
            **overrides,
        }
        is_shared = preset(name, **sizes).shared_embedding
        target_size = 11 if is_shared else 10  # one vocabulary, or two
        model = models.build(name, 11, target_size, **sizes)
        return set_weights_by_formula(model)

    return make


@pytest.fixture
def ids():
    """A source and a target of two sentences, the second one padded."""
    return SOURCE, TARGET
