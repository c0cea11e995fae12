"""Small models in PyTorch that leak in one known way each, and their causal relatives.

    python made_here.py

prints a JSON line for each model and type of numbers. The line says in how many of ten
drawings of its weights the audit finds that it looks ahead.
"""

import json

import torch
from torch import nn

from reprt.analysis import audit

WIDTH, VOCAB, EXPERTS = 16, 40, 4
SEEDS = 10
TYPES = "float32", "float16", "bfloat16"


class LanguageModel(nn.Module):
    """Tokens' embeddings, one part that may mix positions, and logits."""

    def __init__(self, part):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, WIDTH)
        self.part = part
        self.dropout = nn.Dropout(0.1)
        self.dense = nn.Linear(WIDTH, VOCAB)

    def forward(self, ids):
        states = self.embedding(ids)
        return self.dense(states + self.dropout(self.part(states)))


class Attention(nn.Module):
    """Attention of one head."""

    def __init__(self, causal):
        super().__init__()
        self.causal = causal
        self.dense = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, states):
        query, key, value = self.dense(states).chunk(3, dim=-1)
        return nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=self.causal
        )


class PrefixAttention(Attention):
    """The first four tokens see each other; the rest is causal."""

    def forward(self, states):
        length = states.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        mask[:, :4] = True
        query, key, value = self.dense(states).chunk(3, dim=-1)
        return nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask
        )


class Convolution(nn.Module):
    """A convolution over three positions."""

    def __init__(self, causal):
        super().__init__()
        self.padding = (2, 0) if causal else (1, 1)
        self.convolution = nn.Conv1d(WIDTH, WIDTH, 3)

    def forward(self, states):
        states = nn.functional.pad(states.mT, self.padding)
        return self.convolution(states).mT


class Recurrent(nn.Module):
    """An LSTM, from left to right or in both directions."""

    def __init__(self, causal):
        super().__init__()
        units = WIDTH if causal else WIDTH // 2
        self.lstm = nn.LSTM(
            WIDTH, units, batch_first=True, bidirectional=not causal
        )

    def forward(self, states):
        return self.lstm(states)[0]


class TokenNorm(nn.Module):
    """Each feature over the sentence has mean 0 and variance 1."""

    def forward(self, states):
        centred = states - states.mean(1, keepdim=True)
        variance = centred.square().mean(1, keepdim=True)
        return centred / (variance + 1e-3).sqrt()


class PrefixNorm(nn.Module):
    """TokenNorm with the statistics of the tokens so far."""

    def forward(self, states):
        counts = torch.arange(1, 1 + states.shape[1]).to(states)[:, None]
        mean = states.cumsum(1) / counts
        variance = states.square().cumsum(1) / counts - mean.square()
        return (states - mean) / (variance.clamp(min=0) + 1e-1).sqrt()


class BatchNorm(nn.Module):
    """Statistics of the batch while training, over all positions."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(WIDTH)

    def forward(self, states):
        return self.norm(states.mT).mT


class PositionBatchNorm(nn.Module):
    """Statistics of the batch while training, for each position by itself."""

    def forward(self, states):
        if not self.training:
            return states
        centred = states - states.mean(0)
        variance = centred.square().mean(0)
        return centred / (variance + 1e-3).sqrt()


class Experts(nn.Module):
    """Experts, and a router whose scores subclasses use."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS)
        self.experts = nn.ModuleList(
            nn.Linear(WIDTH, WIDTH) for _ in range(EXPERTS)
        )

    def forward(self, states):
        scores = self.router(states).softmax(-1)
        weights = self.weights(scores)
        outputs = [expert(states) for expert in self.experts]
        return (torch.stack(outputs, dim=-1) * weights[:, :, None]).sum(-1)

    def weights(self, scores):
        """Token choice: each token takes the expert that it scores highest."""
        return scores * nn.functional.one_hot(scores.argmax(-1), EXPERTS)


class ExpertChoice(Experts):
    """Each expert takes the tokens of the sentence that score highest."""

    def weights(self, scores):
        best = scores.topk(scores.shape[1] // EXPERTS + 1, dim=1).indices
        return scores * torch.zeros_like(scores).scatter(1, best, 1.0)


class BestFirst(Experts):
    """An expert keeps, of the tokens that chose it, the three with the best scores."""

    def weights(self, scores):
        weights = super().weights(scores)
        best = weights.topk(min(3, weights.shape[1]), dim=1).indices
        return weights * torch.zeros_like(weights).scatter(1, best, 1.0)


class FirstCome(Experts):
    """An expert keeps, of the tokens that chose it, the first three."""

    def weights(self, scores):
        weights = super().weights(scores)
        return weights * ((weights > 0).cumsum(1) <= 3)


class MixtureOfDepths(nn.Module):
    """Only the half of the tokens that score highest goes through the block."""

    def __init__(self, causal):
        super().__init__()
        self.causal = causal
        self.router = nn.Linear(WIDTH, 1)
        self.block = nn.Linear(WIDTH, WIDTH)

    def forward(self, states):
        scores = self.router(states)
        if self.causal:
            mask = (scores > 0).to(states)
        else:
            best = scores.topk((states.shape[1] + 1) // 2, dim=1).indices
            mask = torch.zeros_like(scores).scatter(1, best, 1.0)
        return mask * scores.sigmoid() * self.block(states)


LEAKS = {
    "attention without a mask": lambda: Attention(causal=False),
    "a convolution with `same` padding": lambda: Convolution(causal=False),
    "a bidirectional LSTM": lambda: Recurrent(causal=False),
    "TokenNorm": TokenNorm,
    "BatchNorm over positions": BatchNorm,
    "expert choice": ExpertChoice,
    "capacity that goes to the best scores": BestFirst,
    "mixture of depths": lambda: MixtureOfDepths(causal=False),
}
CAUSAL = {
    "causal attention": lambda: Attention(causal=True),
    "attention with a prefix, `prompt=4`": lambda: PrefixAttention(causal=True),
    "a convolution padded on the left": lambda: Convolution(causal=True),
    "an LSTM": lambda: Recurrent(causal=True),
    "LayerNorm": lambda: nn.LayerNorm(WIDTH),
    "TokenNorm of the prefix": PrefixNorm,
    "BatchNorm at each position": PositionBatchNorm,
    "token choice": Experts,
    "capacity that goes to the first tokens": FirstCome,
    "mixture of depths by a threshold": lambda: MixtureOfDepths(causal=True),
}


def audit_part(name, make, kind, seed, batch=None):
    """Returns the audit of a model with one drawing of its weights."""
    torch.manual_seed(seed)
    model = LanguageModel(make()).to(getattr(torch, kind))
    return audit(
        model,
        vocab_size=VOCAB,
        training=True,
        prompt=4 if "prefix" in name else 0,
        seed=seed,
        batch=batch,
    )


def part_rows():
    """Counts the drawings that look ahead, for each part and type of numbers."""
    for leaks, parts in ((True, LEAKS), (False, CAUSAL)):
        for name, make in parts.items():
            for kind in TYPES:
                counts = {"evaluation": 0, "training": 0}
                for seed in range(SEEDS):
                    modes = audit_part(name, make, kind, seed).leaking_modes
                    for mode in modes:
                        counts[mode] += 1
                yield {"name": name, "leaks": leaks, "type": kind, **counts}


def label_rows():
    """Counts the drawings that see their labels, which are inputs or one step on."""
    make = CAUSAL["causal attention"]
    ids = torch.randint(4, VOCAB, (8, 13)).numpy()
    batches = {
        "labels not shifted": (ids, ids),
        "labels shifted": (ids[:, :-1], ids[:, 1:]),
    }
    for name, batch in batches.items():
        for kind in TYPES:
            count = 0
            for seed in range(SEEDS):
                if audit_part(name, make, kind, seed, batch).sees_label:
                    count += 1
            yield {
                "name": name,
                "leaks": name == "labels not shifted",
                "type": kind,
                "evaluation": count,
                "training": count,
            }


if __name__ == "__main__":
    for rows in (part_rows(), label_rows()):
        for row in rows:
            print(json.dumps(row), flush=True)
