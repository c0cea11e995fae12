"""The four classes that looked ahead in transformers 5.9 to 5.17."""

import functools

from entry import Entry
from transformers_models import VOCAB, make_model

NAMES = (
    "BigBirdForCausalLM",
    "MegatronBertForCausalLM",
    "RemBertForCausalLM",
    "RoFormerForCausalLM",
)


def entries():
    options = {"vocab_size": VOCAB, "training": True}
    for name in NAMES:
        make = functools.partial(make_model, name)
        yield Entry("transformers", name, make, options, "fixed in 5.24")
