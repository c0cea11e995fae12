"""PyTorch's nn.Transformer, for the baseline.

`nn.MultiheadAttention` cannot have heads wider than d_model / nhead, 16 here, whereas
the paper's baseline has 8 heads of 128 on a width of 128. So the layers' attentions
are replaced by `Attention`, which uses PyTorch's own
`scaled_dot_product_attention`. The layers also drop out the attention's output and the
hidden layer of the feed-forward network, which the paper's baseline does not: those
are switched off. All else is the library's own.
"""

import math

import torch
from peers.settings import BATCH_SIZE
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader


class Attention(nn.Module):
    """Attention with heads of any width, called as `nn.MultiheadAttention` is."""

    # What the layers ask before inference; the last two say that their fast path,
    # which reads nn.MultiheadAttention's own weights, is not for this.
    batch_first, in_proj_bias, _qkv_same_embed_dim = True, None, False

    def __init__(self, width, heads, head, dropout):
        super().__init__()
        self.heads, self.rate = heads, dropout
        self.query, self.key, self.value = (
            nn.Linear(width, heads * head) for _ in range(3)
        )
        self.output = nn.Linear(heads * head, width)

    def forward(
        self,
        query,
        key,
        value,
        attn_mask=None,
        key_padding_mask=None,
        is_causal=False,
        need_weights=False,
    ):
        mask = None if attn_mask is None else _additive(attn_mask, query.dtype)
        if key_padding_mask is not None:
            keys = _additive(key_padding_mask, query.dtype)[:, None, None]
            mask = keys if mask is None else mask + keys
        attended = scaled_dot_product_attention(
            self._split(self.query(query)),
            self._split(self.key(key)),
            self._split(self.value(value)),
            attn_mask=mask,
            dropout_p=self.rate if self.training else 0.0,
        )
        return self.output(attended.transpose(1, 2).flatten(2)), None

    def _split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


def _additive(mask, dtype):
    # Some of the library's layers turn True, "do not attend", into -inf themselves.
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(mask, -math.inf)


class Embedding(nn.Module):
    """Scaled embedding plus positions, then dropout."""

    def __init__(self, vocab_size, width, dropout):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, width)
        self.dropout = nn.Dropout(dropout)
        frequency = 10000 ** -(torch.arange(width // 2) / (width // 2))
        angle = torch.arange(2048)[:, None] * frequency
        self.register_buffer("positions", torch.cat([angle.sin(), angle.cos()], 1))

    def forward(self, ids):
        tokens = self.embedding(ids) * self.embedding.embedding_dim**0.5
        return self.dropout(tokens + self.positions[: ids.shape[1]])


class Transformer(nn.Module):
    """nn.Transformer between embeddings and an output layer."""

    def __init__(self, vocab_sizes, sizes, dropout):
        super().__init__()
        width = sizes.embedding
        options = {
            "d_model": width,
            "nhead": sizes.heads,
            "dim_feedforward": sizes.hidden,
            "dropout": dropout,
            "layer_norm_eps": 1e-3,
            "batch_first": True,
        }

        def attention():
            return Attention(width, sizes.heads, sizes.head, dropout)

        encoder = nn.TransformerEncoderLayer(**options)
        decoder = nn.TransformerDecoderLayer(**options)
        encoder.self_attn = attention()
        decoder.self_attn, decoder.multihead_attn = attention(), attention()
        extra = (encoder.dropout, encoder.dropout1)
        for layer in (*extra, decoder.dropout, decoder.dropout1, decoder.dropout2):
            layer.p = 0.0
        self.source_embedding, self.target_embedding = (
            Embedding(size, width, dropout) for size in vocab_sizes
        )
        self.transformer = nn.Transformer(
            width,
            sizes.heads,
            batch_first=True,
            custom_encoder=nn.TransformerEncoder(
                encoder, sizes.blocks, enable_nested_tensor=False
            ),
            custom_decoder=nn.TransformerDecoder(decoder, sizes.blocks),
        )
        self.logits = nn.Linear(width, vocab_sizes[1])

    def forward(self, source, target):
        length, source_padding = target.shape[1], source == 0
        causal = torch.ones(length, length, dtype=torch.bool).triu(1)
        states = self.transformer(
            self.source_embedding(source),
            self.target_embedding(target),
            tgt_mask=causal,
            src_key_padding_mask=source_padding,
            tgt_key_padding_mask=target == 0,
            memory_key_padding_mask=source_padding,
        )
        return self.logits(states)

    def modules_in_order(self):
        """Yields the modules in the order of weights that the peers have agreed on."""
        yield self.source_embedding.embedding
        yield self.target_embedding.embedding
        for layer in self.transformer.encoder.layers:
            yield from layer.self_attn.children()
            yield from (layer.linear1, layer.linear2, layer.norm1, layer.norm2)
        for layer in self.transformer.decoder.layers:
            yield from layer.self_attn.children()
            yield from layer.multihead_attn.children()
            yield from (layer.linear1, layer.linear2)
            yield from (layer.norm1, layer.norm2, layer.norm3)
        yield self.logits


class Peer:
    """The training loop that PyTorch's users write, on a DataLoader."""

    packages = ("torch",)

    def __init__(self, settings):
        torch.manual_seed(settings.seed)
        sizes, warmup = settings.sizes, settings.warmup_steps
        self.model = Transformer(settings.vocab_sizes, sizes, settings.dropout)
        self.adam = torch.optim.Adam(
            self.model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9
        )

        def rate(step):
            rising = step * warmup**-1.5
            return sizes.embedding**-0.5 * min(max(step, 1) ** -0.5, rising)

        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.adam, rate)

    @property
    def parameters(self):
        return sum(parameter.numel() for parameter in self.model.parameters())

    @torch.no_grad()
    def load(self, weights):
        weights = iter(weights)
        for module in self.model.modules_in_order():
            for parameter in module.parameters():
                array = torch.tensor(next(weights))
                if isinstance(module, nn.Linear) and parameter.dim() == 2:
                    # Keras' kernels map from left to right, heads in the middle.
                    outputs, inputs = parameter.shape
                    array = array.reshape(inputs, outputs).T
                parameter.copy_(array.reshape(parameter.shape))

    def step(self, batch):
        return self._step(*(torch.tensor(ids, dtype=torch.long) for ids in batch))[0]

    def fit(self, batches):
        total = torch.zeros(2)
        for batch in batches:
            total += torch.tensor(self._step(*batch))

    @torch.no_grad()
    def evaluate(self, pairs):
        self.model.eval()
        losses = []
        for source, inputs, labels in self.batches(pairs):
            loss, _ = _loss_and_accuracy(self.model(source, inputs), labels)
            losses.append(loss.item())
        return sum(losses) / len(losses)

    def batches(self, pairs):
        rows = [
            tuple(torch.from_numpy(row).long() for row in pair)
            for pair in zip(pairs.source, pairs.target)
        ]
        return DataLoader(rows, batch_size=BATCH_SIZE, collate_fn=_padded)

    def _step(self, source, inputs, labels):
        self.model.train()
        self.adam.zero_grad()
        loss, accuracy = _loss_and_accuracy(self.model(source, inputs), labels)
        loss.backward()
        self.adam.step()
        self.schedule.step()
        return loss.item(), accuracy.item()


def _padded(pairs):
    source, target = zip(*pairs)
    rows = (source, [row[:-1] for row in target], [row[1:] for row in target])
    return [pad_sequence(side, batch_first=True) for side in rows]


def _loss_and_accuracy(logits, labels):
    loss = cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=0)
    real = labels != 0
    right = (logits.argmax(-1) == labels) & real
    return loss, right.sum() / real.sum()
