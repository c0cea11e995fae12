"""Every language model and sequence-to-sequence model of transformers that is made
small by the usual names of sizes."""

import torch
import transformers
from entry import Entry
from transformers.models.auto import modeling_auto

transformers.logging.set_verbosity_error()

VOCAB = 96
# A model above this has sizes by other names than these.
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
# Some families tie these to each other, and are left with their own.
HEAD_SIZES = {name for name in SIZES if "head_dim" in name} | {"num_heads"}
PROPHET = "rows of relative positions are mixed up, as explained here"
NOTES = {
    "CpmAntForCausalLM": "takes all of its input as context that sees itself",
    "ProphetNetForCausalLM": PROPHET,
    "ProphetNetForConditionalGeneration": PROPHET,
    "XLMWithLMHeadModel": "causal with `causal=True` only",
    "XLNetLMHeadModel": "`perm_mask` says which tokens see which",
}


def small(config_class, left=frozenset(), **others):
    """A configuration with small sizes, whichever of their names it has."""
    usual = config_class()
    known = usual.to_dict().keys() - left
    sizes = SIZES | others
    sizes = {name: size for name, size in sizes.items() if name in known}
    encoder = getattr(usual, "is_encoder_decoder", False)
    if getattr(usual, "is_decoder", None) is False and not encoder:
        # The families of BERT are decoders only when told so.
        sizes["is_decoder"] = True
    return config_class(**sizes)


def made(name):
    """A model with small sizes; the second try leaves those of heads alone."""
    model_class = getattr(transformers, name)
    try:
        return built(model_class, small(model_class.config_class))
    # Which errors a configuration raises is its family's affair.
    except Exception:
        config = small(
            model_class.config_class, HEAD_SIZES, num_key_value_heads=HEADS
        )
        return built(model_class, config)


def built(model_class, config):
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
    pairs = modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    names = sorted({*language.values(), *pairs.values()})
    for name in names:
        options = {"vocab_size": VOCAB, "training": True}
        yield Entry(
            "transformers",
            name,
            lambda name=name: made(name),
            options,
            NOTES.get(name, ""),
        )
