"""Plain Keras 3: both models as one would write them after TensorFlow's tutorial.

Its structure (embedding with positions, layers of attention, Add, LayerNormalization
and Dense, an encoder and a decoder), with the masks passed as arguments, since Keras
since 3.8 does not carry them through attention.
"""

import keras
from keras import ops
from peers.keras_loop import KerasPeer, sinusoids

layers = keras.layers


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
        self.positions = sinusoids(2048, self.width)
        self.dropout = layers.Dropout(dropout)

    def call(self, ids, real):
        tokens = self.embedding(ids) * self.width**0.5
        positions = ops.convert_to_tensor(self.positions)[None, : ops.shape(ids)[1]]
        if self.token_norm is None:
            return tokens, self.dropout(tokens + positions)
        tokens = self.token_norm(tokens, real)
        positions = ops.broadcast_to(positions, ops.shape(tokens))
        return tokens, self.dropout(ops.concatenate([tokens, positions], axis=-1))


def attention(sizes, dropout):
    return layers.MultiHeadAttention(sizes.heads, sizes.head, dropout=dropout)


def feed_forward(sizes, dropout):
    return keras.Sequential(
        [
            layers.Dense(sizes.hidden, activation="relu"),
            layers.Dense(sizes.width),
            layers.Dropout(dropout),
        ]
    )


class EncoderLayer(layers.Layer):
    """Self-attention and feed-forward network, each with Add & Norm."""

    def __init__(self, sizes, dropout):
        super().__init__()
        self.self_attention = attention(sizes, dropout)
        self.feed_forward = feed_forward(sizes, dropout)
        self.add = layers.Add()
        self.self_norm = layers.LayerNormalization()
        self.feed_forward_norm = layers.LayerNormalization()

    def call(self, x, value, mask):
        attended = self.self_attention(
            query=x, value=x if value is None else value, key=x, attention_mask=mask
        )
        x = self.self_norm(self.add([x, attended]))
        return self.feed_forward_norm(self.add([x, self.feed_forward(x)]))


class DecoderLayer(layers.Layer):
    """Causal self-attention, cross attention and feed-forward network."""

    def __init__(self, sizes, dropout):
        super().__init__()
        self.self_attention = attention(sizes, dropout)
        self.cross_attention = attention(sizes, dropout)
        self.feed_forward = feed_forward(sizes, dropout)
        self.add = layers.Add()
        self.self_norm = layers.LayerNormalization()
        self.cross_norm = layers.LayerNormalization()
        self.feed_forward_norm = layers.LayerNormalization()

    def call(self, x, memory, value, memory_value, mask, memory_mask):
        attended = self.self_attention(
            query=x,
            value=x if value is None else value,
            key=x,
            attention_mask=mask,
            use_causal_mask=True,
        )
        x = self.self_norm(self.add([x, attended]))
        attended = self.cross_attention(
            query=x,
            value=memory if memory_value is None else memory_value,
            key=memory,
            attention_mask=memory_mask,
        )
        x = self.cross_norm(self.add([x, attended]))
        return self.feed_forward_norm(self.add([x, self.feed_forward(x)]))


class Transformer(keras.Model):
    """Encoder and decoder: ids of both sides to logits."""

    def __init__(self, vocab_sizes, sizes, repe, dropout):
        super().__init__()
        self.repe = repe
        self.source_embedding, self.target_embedding = (
            PositionalEmbedding(size, sizes, repe, dropout) for size in vocab_sizes
        )
        blocks = range(sizes.blocks)
        self.encoder = [EncoderLayer(sizes, dropout) for _ in blocks]
        self.decoder = [DecoderLayer(sizes, dropout) for _ in blocks]
        self.logits = layers.Dense(vocab_sizes[1])

    def call(self, inputs):
        source_ids, target_ids = inputs
        source_real, target_real = source_ids != 0, target_ids != 0
        source_mask, target_mask = source_real[:, None], target_real[:, None]
        source, memory = self.source_embedding(source_ids, source_real)
        target, states = self.target_embedding(target_ids, target_real)
        if not self.repe:  # the value is the key's own sequence
            source = target = None
        for layer in self.encoder:
            memory = layer(memory, source, source_mask)
        for layer in self.decoder:
            states = layer(states, memory, target, source, target_mask, source_mask)
        return self.logits(states)


class Peer(KerasPeer):
    """The tutorial's structure, for both models."""

    def build(self, settings):
        repe = settings.model == "repe"
        return Transformer(
            settings.vocab_sizes, settings.sizes, repe, settings.dropout
        )
