"""PyTorch's own decoder, x-transformers and mixtures of experts, in small models."""

import torch
from entry import Entry
from torch import nn

VOCAB, WIDTH = 96, 32
LANGUAGE = {"vocab_size": VOCAB, "training": True}


class Translation(nn.Module):
    """`nn.TransformerDecoder` between embeddings and logits."""

    def __init__(self, masked):
        super().__init__()
        self.masked = masked
        self.embedding = nn.Embedding(VOCAB, WIDTH)
        layer = nn.TransformerDecoderLayer(WIDTH, 4, 64, batch_first=True)
        self.decoder = nn.TransformerDecoder(layer, 2)
        self.dense = nn.Linear(WIDTH, VOCAB)

    def forward(self, source, target):
        mask = None
        if self.masked:
            length = target.shape[1]
            mask = nn.Transformer.generate_square_subsequent_mask(length)
        memory, states = self.embedding(source), self.embedding(target)
        return self.dense(self.decoder(states, memory, tgt_mask=mask))


class Experts(nn.Module):
    """A mixture of experts between embeddings and logits."""

    def __init__(self, experts):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, WIDTH)
        self.experts = experts
        self.dense = nn.Linear(WIDTH, VOCAB)

    def forward(self, ids):
        states = self.embedding(ids)
        output = self.experts(states)
        if isinstance(output, tuple):
            output = output[0]
        return self.dense(states + output)


def x_transformer(**options):
    from x_transformers import Decoder, TransformerWrapper

    decoder = Decoder(dim=WIDTH, depth=2, heads=4, **options)
    return TransformerWrapper(
        num_tokens=VOCAB, max_seq_len=64, attn_layers=decoder
    )


def x_encoder():
    from x_transformers import Encoder, TransformerWrapper

    encoder = Encoder(dim=WIDTH, depth=2, heads=4)
    return TransformerWrapper(
        num_tokens=VOCAB, max_seq_len=64, attn_layers=encoder
    )


def st_moe(**options):
    from st_moe_pytorch import MoE

    return Experts(MoE(dim=WIDTH, num_experts=4, **options))


def mixture(heads=None):
    from mixture_of_experts import HeirarchicalMoE, MoE

    if heads:
        return Experts(HeirarchicalMoE(dim=WIDTH, num_experts=heads))
    return Experts(MoE(dim=WIDTH, num_experts=4))


def colt5():
    from colt5_attention import ConditionalRoutedFeedForward

    return Experts(ConditionalRoutedFeedForward(WIDTH, num_heavy_tokens=4))


def colt5_attention():
    from colt5_attention import ConditionalRoutedAutoregressiveAttention

    return Experts(
        ConditionalRoutedAutoregressiveAttention(
            dim=WIDTH,
            num_heavy_tokens_q=4,
            num_heavy_tokens_kv=4,
            light_window_size=4,
        )
    )


X_OPTIONS = {
    "rotary_pos_emb=True": {"rotary_pos_emb": True},
    "alibi_pos_bias=True": {"alibi_pos_bias": True},
    "rel_pos_bias=True": {"rel_pos_bias": True},
    "dynamic_pos_bias=True": {"dynamic_pos_bias": True},
    "shift_tokens=1": {"shift_tokens": 1},
    "attn_talking_heads=True": {"attn_pre_talking_heads": True},
    "macaron=True": {"macaron": True},
    "attn_num_mem_kv=4": {"attn_num_mem_kv": 4},
    "attn_value_rmsnorm=True": {"attn_value_rmsnorm": True},
    "use_dynamic_tanh=True": {"use_dynamic_tanh": True},
    "residual_attn=True": {"residual_attn": True},
    "num_residual_streams=2": {"num_residual_streams": 2},
}


def seeded(make, *arguments, **options):
    def build():
        torch.manual_seed(0)
        return make(*arguments, **options)

    return build


def entries():
    pair = {
        "source_vocab_size": VOCAB,
        "target_vocab_size": VOCAB,
        "training": True,
    }
    yield Entry(
        "torch",
        "nn.TransformerDecoder, `tgt_mask`",
        seeded(Translation, masked=True),
        pair,
    )
    yield Entry(
        "torch",
        "nn.TransformerDecoder, no mask",
        seeded(Translation, masked=False),
        pair,
        "as its documentation says, masks are arguments",
    )
    for name, options in {"": {}, **X_OPTIONS}.items():
        name = f"Decoder({name})"
        make = seeded(x_transformer, **options)
        yield Entry("x-transformers", name, make, LANGUAGE)
    note = "an encoder, to compare"
    yield Entry(
        "x-transformers", "Encoder()", seeded(x_encoder), LANGUAGE, note
    )
    moe_options = {
        "MoE": {},
        "MoE(gating_top_n=3)": {"gating_top_n": 3},
        "MoE(capacity_factor_eval=0.5)": {
            "capacity_factor_train": 0.5,
            "capacity_factor_eval": 0.5,
        },
    }
    capacity = "the capacity of an expert follows from the length"
    for name, options in moe_options.items():
        make = seeded(st_moe, **options)
        yield Entry("st-moe-pytorch", name, make, LANGUAGE, capacity)
    yield Entry(
        "mixture-of-experts", "MoE", seeded(mixture), LANGUAGE, capacity
    )
    yield Entry(
        "mixture-of-experts",
        "HeirarchicalMoE",
        seeded(mixture, (2, 2)),
        LANGUAGE,
        capacity,
    )
    yield Entry(
        "CoLT5-attention",
        "ConditionalRoutedFeedForward",
        seeded(colt5),
        LANGUAGE,
        "written for encoders",
    )
    yield Entry(
        "CoLT5-attention",
        "ConditionalRoutedAutoregressiveAttention",
        seeded(colt5_attention),
        LANGUAGE,
    )
