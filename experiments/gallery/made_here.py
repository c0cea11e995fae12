"""Small models in PyTorch that leak in one known way each, and their causal relatives.

    python made_here.py

prints a JSON line for each model and type of numbers: in how many of ten drawings of
its weights the audit finds that it looks ahead.
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
        seen = torch.ones(length, length, dtype=torch.bool).tril()
        seen[:, :4] = True
        query, key, value = self.dense(states).chunk(3, dim=-1)
        return nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=seen
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
        return centred / (centred.square().mean(1, keepdim=True) + 1e-3).sqrt()


class PrefixNorm(nn.Module):
    """The same with the statistics of the tokens so far."""

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
        return centred / (centred.square().mean(0) + 1e-3).sqrt()


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
        chosen = super().weights(scores)
        best = chosen.topk(min(3, chosen.shape[1]), dim=1).indices
        return chosen * torch.zeros_like(chosen).scatter(1, best, 1.0)


class FirstCome(Experts):
    """An expert keeps, of the tokens that chose it, the first three."""

    def weights(self, scores):
        chosen = super().weights(scores)
        return chosen * ((chosen > 0).cumsum(1) <= 3)


class MixtureOfDepths(nn.Module):
    """Only the half of the tokens that score highest goes through the block."""

    def __init__(self, causal):
        super().__init__()
        self.causal = causal
        self.router = nn.Linear(WIDTH, 1)
        self.block = nn.Linear(WIDTH, WIDTH)

    def forward(self, states):
        scores = self.router(states)
        chosen = (scores > 0).to(states)
        if not self.causal:
            best = scores.topk((states.shape[1] + 1) // 2, dim=1).indices
            chosen = torch.zeros_like(scores).scatter(1, best, 1.0)
        return chosen * scores.sigmoid() * self.block(states)


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


def audited(make, kind, seed, **options):
    """The audit of one drawing of the weights."""
    torch.manual_seed(seed)
    model = LanguageModel(make()).to(getattr(torch, kind))
    if "prefix" in options.pop("name"):
        options["prompt"] = 4
    return audit(model, vocab_size=VOCAB, training=True, seed=seed, **options)


def rows():
    """For each made-up model and type of numbers, how often it is found."""
    for leaks, parts in ((True, LEAKS), (False, CAUSAL)):
        for name, make in parts.items():
            for kind in TYPES:
                modes = [
                    audited(make, kind, seed, name=name).leaking_modes
                    for seed in range(SEEDS)
                ]
                found = {
                    mode: sum(mode in each for each in modes)
                    for mode in ("evaluation", "training")
                }
                yield {"name": name, "leaks": leaks, "type": kind} | found
    yield from labels()


def labels():
    """Labels that are their inputs, against labels one step on."""
    ids = torch.randint(4, VOCAB, (8, 13)).numpy()
    batches = {
        "labels not shifted": (ids, ids),
        "labels shifted": (ids[:, :-1], ids[:, 1:]),
    }
    for name, batch in batches.items():
        for kind in TYPES:
            sees = [
                audited(
                    CAUSAL["causal attention"],
                    kind,
                    seed,
                    name=name,
                    batch=batch,
                ).sees_label
                for seed in range(SEEDS)
            ]
            count = sum(sees)
            row = {"name": name, "leaks": name == "labels not shifted"}
            yield row | {"type": kind, "evaluation": count, "training": count}


if __name__ == "__main__":
    for row in rows():
        print(json.dumps(row), flush=True)
