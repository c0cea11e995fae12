"""The audit of PyTorch's models, in a process that has PyTorch and no TensorFlow.

`test_any_model.py` runs it in an environment of its own.
"""

import sys
import types

import numpy as np
import torch
from torch import nn

from reprt.analysis import assert_causal, audit

VOCAB = 30


class Convolution(nn.Module):
    """A language model of a convolution over two tokens."""

    def __init__(self, looks_ahead, norm=None, dropout=0.5):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, 8)
        self.looks_ahead = looks_ahead
        self.norm = norm or nn.Identity()
        self.drop = nn.Dropout(dropout)
        self.dense = nn.Linear(8, VOCAB)

    def forward(self, ids):
        states = self.embedding(ids)
        neighbours = torch.roll(states, -1 if self.looks_ahead else 1, 1)
        mask = torch.ones(ids.shape[1], 1, dtype=states.dtype)
        # Nothing goes round the end.
        mask[-1 if self.looks_ahead else 0] = 0
        states = self.drop(states + mask * neighbours)
        return self.dense(self.norm(states.mT).mT)


class Named(Convolution):
    """Called and configured as the models of Hugging Face are."""

    config = types.SimpleNamespace(vocab_size=VOCAB, is_encoder_decoder=False)

    def forward(self, input_ids, attention_mask=None, use_cache=True):
        assert attention_mask.all() and not use_cache
        return types.SimpleNamespace(logits=super().forward(input_ids))


def test_verdicts():
    for dtype in (torch.float32, torch.bfloat16):
        for looks_ahead in (True, False):
            model = Convolution(looks_ahead).to(dtype)
            for function in (model, lambda ids, model=model.eval(): model(ids)):
                report = audit(function, vocab_size=VOCAB)
                pairs = report.first_offending["perturbation"]
                assert pairs == (
                    ((0, 1), (1, 2), (2, 3)) if looks_ahead else ()
                )
                assert report.looks_ahead == looks_ahead


def test_hugging_faces_way():
    assert audit(Named(True)).looks_ahead
    assert_causal(Named(False), training=True)


def test_training_and_what_it_leaves_behind():
    model = Convolution(False, nn.BatchNorm1d(8))
    model.embedding.eval()
    weights = {
        name: value.clone() for name, value in model.state_dict().items()
    }
    generator_state = torch.get_rng_state()
    report = audit(model, vocab_size=VOCAB, training=True)
    assert report.leaking_modes == ("training",)
    assert report.training.depends_on_neighbours
    assert not report.depends_on_neighbours
    for name, value in model.state_dict().items():
        assert torch.equal(value, weights[name]), name
    assert torch.equal(generator_state, torch.get_rng_state())
    assert model.drop.p == 0.5 and model.training
    assert not model.embedding.training


def test_random_numbers_accuse_nobody():
    class Routed(Convolution):
        def forward(self, ids):
            mask = torch.rand(ids.shape) < 0.8
            return super().forward(ids) * mask[..., None]

    report = audit(Routed(False), vocab_size=VOCAB)
    assert not report.looks_ahead
    assert "in another way for another length" in str(report)


def test_a_failure_is_a_report():
    try:
        assert_causal(Convolution(True), vocab_size=VOCAB)
    except AssertionError as error:
        assert "position 1 depends on token 2" in str(error)
    else:
        raise RuntimeError("no failure")


def test_a_way_to_call():
    class Scores(Convolution):
        def forward(self, ids, *, scale):
            return {"other": ids, "scores": scale * super().forward(ids)}

    report = audit(
        Scores(True),
        vocab_size=VOCAB,
        call=lambda model, ids: model(ids, scale=2)["scores"],
    )
    assert report.looks_ahead


if __name__ == "__main__":
    np.random.seed(0)
    torch.manual_seed(0)
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
    assert not {"keras", "tensorflow", "jax"} & set(sys.modules)
    print("all verdicts are right")
