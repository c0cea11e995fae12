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


def hub(family, kind):
    backbone = getattr(keras_hub.models, f"{family}Backbone")
    known = inspect.signature(backbone.__init__).parameters
    sizes = {name: size for name, size in SIZES.items() if name in known}
    task = getattr(keras_hub.models, f"{family}{kind}")
    return task(backbone=backbone(**sizes), preprocessor=None)


def ours(name):
    return reprt.models.build(name, VOCAB, VOCAB)


def entries():
    for family in LANGUAGE:
        make = seeded(hub, family=family, kind="CausalLM")
        options = {"vocab_size": VOCAB, "training": True}
        yield Entry("keras-hub", f"{family}CausalLM", make, options)
    make = seeded(hub, family="Bart", kind="Seq2SeqLM")
    yield Entry("keras-hub", "BartSeq2SeqLM", make, options)
    for name in OURS:
        note = "as published" if name == "repe" else ""
        make = seeded(ours, name=name)
        yield Entry("reprt", f"`{name}`", make, {"training": True}, note)
