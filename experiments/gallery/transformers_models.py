"""The language models and sequence-to-sequence models of transformers.

All are here that the usual names of sizes make small.
"""

import functools

import torch
import transformers
from entry import Entry
from transformers.models.auto import modeling_auto

transformers.logging.set_verbosity_error()

VOCAB = 96
# A model with more parameters has sizes by other names than these.
LARGEST = 5_000_000
LAYERS, HEADS, WIDTH, INNER, EXPERTS, POSITIONS = 2, 4, 32, 64, 4, 64
SIZES = {
    "vocab_size": VOCAB,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
    "forced_eos_token_id": None,
    "hidden_size": WIDTH,
    "embedding_size": WIDTH,
    "n_embd": WIDTH,
    "d_model": WIDTH,
    "emb_dim": WIDTH,
    "dim_model": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_layers": LAYERS,
    "num_decoder_layers": LAYERS,
    "num_encoder_layers": LAYERS,
    "encoder_layers": LAYERS,
    "decoder_layers": LAYERS,
    "n_layer": LAYERS,
    "n_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 2,
    "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS,
    "num_encoder_attention_heads": HEADS,
    "num_decoder_attention_heads": HEADS,
    "num_heads": HEADS,
    "n_head": HEADS,
    "n_heads": HEADS,
    "head_dim": WIDTH // HEADS,
    "d_kv": WIDTH // HEADS,
    "intermediate_size": INNER,
    "encoder_ffn_dim": INNER,
    "decoder_ffn_dim": INNER,
    "ffn_dim": INNER,
    "d_ff": INNER,
    "n_inner": INNER,
    "moe_intermediate_size": WIDTH,
    "shared_expert_intermediate_size": WIDTH,
    "num_experts": EXPERTS,
    "num_local_experts": EXPERTS,
    "n_routed_experts": EXPERTS,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "kv_lora_rank": 8,
    "q_lora_rank": 8,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 8,
    "max_position_embeddings": POSITIONS,
    "n_positions": POSITIONS,
    "encoder_max_position_embeddings": POSITIONS,
    "decoder_max_position_embeddings": POSITIONS,
    "embedding_dim": WIDTH,
    "state_size": 8,
    "mamba_n_heads": HEADS,
    "mamba_d_head": 2 * WIDTH // HEADS,
    "mamba_d_state": 8,
    "rotary_dim": 4,
    "rnn_width": WIDTH,
    "lru_width": WIDTH,
}
# Some families tie these sizes to each other, and keep their own.
HEAD_SIZES = {name for name in SIZES if "head_dim" in name} | {"num_heads"}
PROPHET = "rows of relative positions are mixed up, as explained here"
NOTES = {
    "CpmAntForCausalLM": "takes all of its input as context that sees itself",
    "ProphetNetForCausalLM": PROPHET,
    "ProphetNetForConditionalGeneration": PROPHET,
    "XLMWithLMHeadModel": "causal with `causal=True` only",
    "XLNetLMHeadModel": "`perm_mask` says which tokens see which",
}


def small_config(config_class, own_sizes=frozenset(), **other_sizes):
    """Returns a configuration with small sizes, by those of their names that it has.

    Args:
        own_sizes: names of sizes that keep the configuration's own value.
        other_sizes: sizes that differ from `SIZES`.
    """
    default = config_class()
    names = default.to_dict().keys() - own_sizes
    sizes = {}
    for name, size in (SIZES | other_sizes).items():
        if name in names:
            sizes[name] = size
    has_encoder = getattr(default, "is_encoder_decoder", False)
    if getattr(default, "is_decoder", None) is False and not has_encoder:
        # The families of BERT are decoders by this setting only.
        sizes["is_decoder"] = True
    return config_class(**sizes)


def make_model(name):
    """Returns a model with small sizes; the second try keeps its sizes of heads."""
    model_class = getattr(transformers, name)
    try:
        return build(model_class, small_config(model_class.config_class))
    # Each family's configuration raises errors of its own.
    except Exception:
        config = small_config(
            model_class.config_class, HEAD_SIZES, num_key_value_heads=HEADS
        )
        return build(model_class, config)


def build(model_class, config):
    """Returns a model that has been called once, with seeded weights."""
    with torch.device("meta"):
        parameters = model_class(config).num_parameters()
    if parameters > LARGEST:
        raise ValueError(f"{parameters:,} parameters with the usual sizes")
    torch.manual_seed(0)
    model = model_class(config).eval()
    model.config.use_cache = False
    ids = {"input_ids": torch.ones(1, 4, dtype=torch.long)}
    if config.is_encoder_decoder:
        ids["decoder_input_ids"] = ids["input_ids"]
    model(**ids)
    return model


def entries():
    language = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    translation = modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    options = {"vocab_size": VOCAB, "training": True}
    for name in sorted({*language.values(), *translation.values()}):
        make = functools.partial(make_model, name)
        note = NOTES.get(name, "")
        yield Entry("transformers", name, make, options, note)
