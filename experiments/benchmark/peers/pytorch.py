"""The training loop that PyTorch's users write, for the model of `pytorch_model`.

The variant `compiled` compiles the model for all lengths of a batch, and takes the
logits of real tokens only. It needs a compiler of C++. Nested tensors, PyTorch's form
without padding, cannot be used: on a CPU their attention takes no mask and cannot be
causal (2.13).
"""

import torch
from peers.pytorch_model import Transformer
from peers.settings import BATCH_SIZE, SEED, WARMUP_STEPS
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader


class Peer:
    """A model, Adam with its schedule, and a DataLoader."""

    packages = ("torch",)

    def __init__(self, settings):
        torch.manual_seed(SEED)
        sizes = settings.sizes
        self.model = Transformer(settings.vocab_sizes, sizes, settings.dropout)
        self.compiled = settings.variant == "compiled"
        if self.compiled:
            self.model.compile(dynamic=True)
        parameters = list(self.model.parameters())
        self.parameters = sum(parameter.numel() for parameter in parameters)
        self.adam = torch.optim.Adam(
            parameters, lr=1.0, betas=(0.9, 0.98), eps=1e-9
        )

        def rate(step):
            rising = step * WARMUP_STEPS**-1.5
            return sizes.embedding**-0.5 * min(max(step, 1) ** -0.5, rising)

        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.adam, rate)

    @torch.no_grad()
    def load(self, weights):
        weights = iter(weights)
        for module in self.model.modules():
            for parameter in module.parameters(recurse=False):
                array = torch.tensor(next(weights))
                if isinstance(module, nn.Linear) and parameter.dim() == 2:
                    # Keras' kernels map from left to right, heads in the middle.
                    array = array.reshape(parameter.T.shape).T
                parameter.copy_(array.reshape(parameter.shape))

    def step(self, batch):
        tensors = [torch.tensor(ids, dtype=torch.long) for ids in batch]
        loss, _ = self._step(*tensors)
        return loss

    def fit(self, batches):
        total = torch.zeros(2)
        for batch in batches:
            total += torch.tensor(self._step(*batch))

    def batches(self, pairs):
        source = [torch.from_numpy(ids).long() for ids in pairs.source]
        target = [torch.from_numpy(ids).long() for ids in pairs.target]
        rows = list(zip(source, target))
        return DataLoader(rows, BATCH_SIZE, collate_fn=_pad)

    def _step(self, source, inputs, labels):
        self.adam.zero_grad()
        states = self.model(source, inputs).flatten(0, 1)
        labels = labels.flatten()
        real = labels != 0
        if self.compiled:
            states, labels = states[real], labels[real]
        logits = self.model.logits(states)
        loss = cross_entropy(logits, labels, ignore_index=0)
        hits = (logits.argmax(-1) == labels) & (labels != 0)
        accuracy = hits.sum() / real.sum()
        loss.backward()
        self.adam.step()
        self.schedule.step()
        return loss.item(), accuracy.item()


def _pad(pairs):
    source = [row for row, _ in pairs]
    inputs = [row[:-1] for _, row in pairs]
    labels = [row[1:] for _, row in pairs]
    return [
        pad_sequence(source, batch_first=True),
        pad_sequence(inputs, batch_first=True),
        pad_sequence(labels, batch_first=True),
    ]
