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
    """Attention with heads of any width; masks are what is added to the scores."""

    # What the layers ask before inference: their fast path is not for this.
    batch_first, in_proj_bias, _qkv_same_embed_dim = True, None, False

    def __init__(self, sizes, dropout):
        super().__init__()
        self.heads, self.rate = sizes.heads, dropout
        width, wide = sizes.embedding, sizes.heads * sizes.head
        self.query, self.key, self.value = (
            nn.Linear(width, wide) for _ in range(3)
        )
        self.output = nn.Linear(wide, width)

    def forward(
        self, *inputs, attn_mask=None, key_padding_mask=None, **options
    ):
        query, key, value = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer, x in zip((self.query, self.key, self.value), inputs)
        )
        mask = key_padding_mask[:, None, None]
        mask = mask if attn_mask is None else attn_mask + mask
        attended = scaled_dot_product_attention(
            query, key, value, mask, self.rate
        )
        return self.output(attended.transpose(1, 2).flatten(2)), None


class Transformer(nn.Module):
    """nn.Transformer after embeddings; `logits` is the layer for its states."""

    def __init__(self, vocab_sizes, sizes, dropout):
        super().__init__()
        width, self.scale = sizes.embedding, sizes.embedding**0.5
        self.embeddings = nn.ModuleList(
            nn.Embedding(n, width) for n in vocab_sizes
        )
        self.register_buffer("positions", torch.tensor(sinusoids(width)))
        self.dropout = nn.Dropout(dropout)
        blocks = sizes.blocks, sizes.blocks, sizes.hidden, dropout
        self.transformer = nn.Transformer(
            width, sizes.heads, *blocks, layer_norm_eps=1e-3, batch_first=True
        )
        encoder, decoder = self.transformer.encoder, self.transformer.decoder
        encoder.norm = decoder.norm = None
        for layer in (*encoder.layers, *decoder.layers):
            layer.self_attn = Attention(sizes, dropout)
            layer.dropout.p = layer.dropout1.p = 0.0
        for layer in decoder.layers:
            layer.multihead_attn, layer.dropout2.p = (
                Attention(sizes, dropout),
                0.0,
            )
        self.logits = nn.Linear(width, vocab_sizes[1])

    def forward(self, source, target):
        length = target.shape[1]
        source_mask, target_mask = _added(source == 0), _added(target == 0)
        return self.transformer(
            *map(self._embedded, self.embeddings, (source, target)),
            tgt_mask=_added(
                torch.ones(length, length, dtype=torch.bool).triu(1)
            ),
            # Otherwise it looks for itself, in each layer's mask.
            tgt_is_causal=True,
            src_key_padding_mask=source_mask,
            tgt_key_padding_mask=target_mask,
            memory_key_padding_mask=source_mask,
        )

    def _embedded(self, embedding, ids):
        tokens = embedding(ids) * self.scale
        return self.dropout(tokens + self.positions[: ids.shape[1]])


def _added(masked):
    return torch.zeros(masked.shape).masked_fill(masked, -math.inf)
