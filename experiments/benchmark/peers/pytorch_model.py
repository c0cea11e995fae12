"""PyTorch's nn.Transformer, for the baseline.

`nn.MultiheadAttention` has no heads wider than d_model / nhead, 16 here and 128 in the
paper, so `Attention` takes its place. The layers' dropout of its output and of the
hidden layer, which the paper has not, is switched off. All else is the library's own.
"""

import math

import torch
from peers.settings import sinusoids
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Attention(nn.Module):
    """Attention with heads of any width; masks are added to the scores."""

    # The layers look at these before inference, and their fast path is not for this.
    batch_first = True
    in_proj_bias = None
    _qkv_same_embed_dim = False

    def __init__(self, sizes, dropout):
        super().__init__()
        self.heads = sizes.heads
        self.rate = dropout
        width = sizes.embedding
        heads_width = sizes.heads * sizes.head
        self.query = nn.Linear(width, heads_width)
        self.key = nn.Linear(width, heads_width)
        self.value = nn.Linear(width, heads_width)
        self.output = nn.Linear(heads_width, width)

    def forward(
        self,
        query,
        key,
        value,
        attn_mask=None,
        key_padding_mask=None,
        **options,
    ):
        mask = key_padding_mask[:, None, None]
        if attn_mask is not None:
            mask = attn_mask + mask
        output = scaled_dot_product_attention(
            self._split(self.query(query)),
            self._split(self.key(key)),
            self._split(self.value(value)),
            mask,
            self.rate,
        )
        return self.output(output.transpose(1, 2).flatten(2)), None

    def _split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class Transformer(nn.Module):
    """nn.Transformer after embeddings; `logits` is the layer for its states."""

    def __init__(self, vocab_sizes, sizes, dropout):
        super().__init__()
        width = sizes.embedding
        self.scale = width**0.5
        self.embeddings = nn.ModuleList(
            nn.Embedding(size, width) for size in vocab_sizes
        )
        self.register_buffer("positions", torch.tensor(sinusoids(width)))
        self.dropout = nn.Dropout(dropout)
        self.transformer = nn.Transformer(
            width,
            sizes.heads,
            num_encoder_layers=sizes.blocks,
            num_decoder_layers=sizes.blocks,
            dim_feedforward=sizes.hidden,
            dropout=dropout,
            layer_norm_eps=1e-3,
            batch_first=True,
        )
        encoder, decoder = self.transformer.encoder, self.transformer.decoder
        encoder.norm = decoder.norm = None
        for layer in (*encoder.layers, *decoder.layers):
            layer.self_attn = Attention(sizes, dropout)
            layer.dropout.p = 0.0
            layer.dropout1.p = 0.0
        for layer in decoder.layers:
            layer.multihead_attn = Attention(sizes, dropout)
            layer.dropout2.p = 0.0
        self.logits = nn.Linear(width, vocab_sizes[1])

    def forward(self, source, target):
        length = target.shape[1]
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        source_mask, target_mask = _mask(source == 0), _mask(target == 0)
        return self.transformer(
            self._embed(self.embeddings[0], source),
            self._embed(self.embeddings[1], target),
            tgt_mask=_mask(future),
            # Without this each layer would look whether its mask is causal.
            tgt_is_causal=True,
            src_key_padding_mask=source_mask,
            tgt_key_padding_mask=target_mask,
            memory_key_padding_mask=source_mask,
        )

    def _embed(self, embedding, ids):
        tokens = embedding(ids) * self.scale
        return self.dropout(tokens + self.positions[: ids.shape[1]])


def _mask(hidden):
    """Returns what is added to the scores, by which tokens are hidden."""
    return torch.zeros(hidden.shape).masked_fill(hidden, -math.inf)
