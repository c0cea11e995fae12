"""The layers of the models in plain Keras."""

import keras
from keras import layers, ops
from peers.settings import sinusoids


class TokenNorm(layers.Layer):
    """Normalises each feature over the sentence's real tokens; padding becomes 0."""

    def call(self, x, real):
        real = ops.cast(real[..., None], x.dtype)
        count = ops.sum(real, axis=1, keepdims=True)
        mean = ops.sum(x * real, axis=1, keepdims=True) / count
        centred = (x - mean) * real
        variance = ops.sum(ops.square(centred), axis=1, keepdims=True) / count
        return centred / ops.sqrt(variance + 1e-6)


class PositionalEmbedding(layers.Layer):
    """Embeds ids; positions are added, or in RePE put beside the normalised tokens."""

    def __init__(self, vocab_size, sizes, repe, dropout):
        super().__init__()
        self.width = sizes.embedding
        self.embedding = layers.Embedding(vocab_size, self.width)
        self.token_norm = TokenNorm() if repe else None
        self.positions = sinusoids(self.width)
        self.dropout = layers.Dropout(dropout)

    def call(self, ids, real):
        tokens = self.embedding(ids) * self.width**0.5
        table = ops.convert_to_tensor(self.positions)
        positions = table[None, : ops.shape(ids)[1]]
        if self.token_norm is None:
            return tokens, self.dropout(tokens + positions)
        tokens = self.token_norm(tokens, real)
        positions = ops.broadcast_to(positions, ops.shape(tokens))
        states = ops.concatenate([tokens, positions], axis=-1)
        return tokens, self.dropout(states)


class Block(layers.Layer):
    """Attentions and a feed-forward network, each with Add & Norm.

    An encoder's block has one attention. A decoder's has two, and the first is causal.
    """

    def __init__(self, attentions, sizes, dropout):
        super().__init__()
        self.attentions = [
            layers.MultiHeadAttention(sizes.heads, sizes.head, dropout=dropout)
            for _ in range(attentions)
        ]
        self.feed_forward = keras.Sequential(
            [
                layers.Dense(sizes.hidden, activation="relu"),
                layers.Dense(sizes.width),
                layers.Dropout(dropout),
            ]
        )
        self.add = layers.Add()
        self.norms = [
            layers.LayerNormalization() for _ in range(attentions + 1)
        ]

    def call(
        self, x, value, mask, memory=None, memory_value=None, memory_mask=None
    ):
        x = self._attend(0, x, x, value, mask, causal=memory is not None)
        if memory is not None:
            x = self._attend(1, x, memory, memory_value, memory_mask)
        return self.norms[-1](self.add([x, self.feed_forward(x)]))

    def _attend(self, number, x, key, value, mask, causal=False):
        value = key if value is None else value
        output = self.attentions[number](
            query=x,
            value=value,
            key=key,
            attention_mask=mask,
            use_causal_mask=causal,
        )
        return self.norms[number](self.add([x, output]))
