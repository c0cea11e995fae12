"""The models of keras-hub that are made small by the usual names of sizes, and ours."""

import inspect

import keras_hub
from entry import Entry
from tutorial import seeded

import reprt

VOCAB = 96
LAYERS, HEADS, WIDTH, INNER = 2, 4, 32, 64
SIZES = {
    "vocabulary_size": VOCAB,
    "num_layers": LAYERS,
    "num_heads": HEADS,
    "num_query_heads": HEADS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 2,
    "hidden_dim": WIDTH,
    "intermediate_dim": INNER,
    "moe_intermediate_dim": WIDTH,
    "shared_expert_intermediate_dim": WIDTH,
    "num_experts": 4,
    "top_k": 2,
    "head_dim": WIDTH // HEADS,
    "max_sequence_length": 64,
}
LANGUAGE = (
    "Bloom",
    "Falcon",
    "GPT2",
    "GPTNeoX",
    "Gemma",
    "GptOss",
    "Llama",
    "Llama3",
    "Mistral",
    "Mixtral",
    "OPT",
    "Phi3",
    "Qwen",
    "Qwen3",
    "Qwen3Moe",
    "QwenMoe",
)
OURS = (
    "repe",
    "repe-causal",
    "baseline",
    "transformer-modern",
    "decoder-only",
    "recurrent",
)


def make_hub_model(family, kind):
    backbone = getattr(keras_hub.models, f"{family}Backbone")
    parameters = inspect.signature(backbone.__init__).parameters
    sizes = {name: size for name, size in SIZES.items() if name in parameters}
    task = getattr(keras_hub.models, f"{family}{kind}")
    return task(backbone=backbone(**sizes), preprocessor=None)


def make_our_model(name):
    return reprt.models.build(name, VOCAB, VOCAB)


def entries():
    options = {"vocab_size": VOCAB, "training": True}
    for family in LANGUAGE:
        make = seeded(make_hub_model, family=family, kind="CausalLM")
        yield Entry("keras-hub", f"{family}CausalLM", make, options)
    make = seeded(make_hub_model, family="Bart", kind="Seq2SeqLM")
    yield Entry("keras-hub", "BartSeq2SeqLM", make, options)
    for name in OURS:
        note = "as published" if name == "repe" else ""
        make = seeded(make_our_model, name=name)
        yield Entry("reprt", f"`{name}`", make, {"training": True}, note)
