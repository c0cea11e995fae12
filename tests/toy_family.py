"""A third family of models: bags of words, which the package knows nothing of."""

import keras
from keras import ops

from reprt.layers import padding_mask
from reprt.models import FAMILIES, TranslationModel
from reprt.models.prefixes import Prefixes
from reprt.models.presets import PRESETS
from reprt.settings import Settings


class BagSettings(Settings):
    embedding_dim: int = 8
    max_length: int = 128
    dropout: float = 0.1
    sees_all: bool = False  # the whole target, later tokens as well


@keras.saving.register_keras_serializable(package="toy")
class Bag(TranslationModel):
    """logits_t = tanh(mean of the target up to t + mean of the source) W + b."""

    config_class = BagSettings

    def __init__(self, source_vocab_size, target_vocab_size, config, **kwargs):
        super().__init__(source_vocab_size, target_vocab_size, config, **kwargs)
        config = self.config
        m = config.embedding_dim
        self.source = keras.layers.Embedding(
            source_vocab_size, m, name="source"
        )
        self.target = keras.layers.Embedding(
            target_vocab_size, m, name="target"
        )
        self.dropout = keras.layers.Dropout(config.dropout, name="dropout")
        self.output_dense = keras.layers.Dense(target_vocab_size, name="output")

    def build(self, input_shape=None):
        self.source.build((None, None))
        self.target.build((None, None))
        self.output_dense.build((None, None, self.config.embedding_dim))
        self.built = True

    @property
    def looks_ahead(self):
        return self.config.sees_all

    def encode(self, source_ids, *, training=None):
        mask = ops.cast(padding_mask(source_ids)[..., None], self.compute_dtype)
        total = ops.sum(self.source(source_ids) * mask, axis=1)
        return total / ops.maximum(ops.sum(mask, axis=1), 1.0)

    def states(self, inputs, training=None):
        source_ids, target_ids = inputs
        memory = self.encode(source_ids, training=training)
        embeddings = self.target(target_ids)
        totals = ops.cumsum(embeddings, axis=1)
        if self.config.sees_all:
            totals = totals + ops.sum(embeddings, axis=1, keepdims=True)
        counts = ops.arange(1, ops.shape(target_ids)[1] + 1)[None, :, None]
        means = totals / ops.cast(counts, totals.dtype)
        return self.dropout(
            ops.tanh(means + memory[:, None]), training=training
        )

    def projection(self):
        output, dtype = self.output_dense, self.compute_dtype
        return ops.cast(output.kernel, dtype), ops.cast(output.bias, dtype)

    def start(self, memory, beams, capacity):
        memory = ops.repeat(memory, beams, axis=0)
        return Prefixes((ops.zeros_like(memory), memory))

    def step(self, ids, position, prefixes):
        total, memory = prefixes.state
        total = total + self.target(ids)
        count = ops.cast(position, total.dtype) + 1.0
        states = ops.tanh(total / count + memory)
        return self.logits(states), Prefixes((total, memory))

    def multiply_adds(self, sources, targets):
        return targets * self.config.embedding_dim * self.target_vocab_size


def register(monkeypatch):
    """All that a new family needs: its presets, and the model of its settings."""
    monkeypatch.setitem(PRESETS, "bag", BagSettings())
    monkeypatch.setitem(FAMILIES, BagSettings, Bag)
