"""The Transformer of TensorFlow's tutorial in its plain Keras layers, in a small model.

Its decoder is causal by `use_causal_mask`; padding is masked by what an embedding
computes, which Keras from 3.8 on no longer finds on a sum.
"""

import keras
from entry import Entry
from keras import layers, ops

VOCAB, WIDTH, LENGTH = 96, 32, 64


class Positions(layers.Layer):
    """Embeddings, scaled, plus positions; it passes the embedding's mask on."""

    def __init__(self):
        super().__init__()
        self.tokens = layers.Embedding(VOCAB, WIDTH, mask_zero=True)
        self.positions = layers.Embedding(LENGTH, WIDTH)

    def compute_mask(self, ids, mask=None):
        return self.tokens.compute_mask(ids)

    def call(self, ids):
        steps = ops.arange(ops.shape(ids)[1])
        return self.tokens(ids) * WIDTH**0.5 + self.positions(steps)


class Block(layers.Layer):
    """Attention to itself, to a memory if there is one, and a feed-forward network."""

    def __init__(self, causal, cross):
        super().__init__()
        self.causal = causal
        self.attention = layers.MultiHeadAttention(4, 8, dropout=0.1)
        self.cross = layers.MultiHeadAttention(4, 8) if cross else None
        self.feed_forward = keras.Sequential(
            [layers.Dense(64, "relu"), layers.Dense(WIDTH), layers.Dropout(0.1)]
        )
        self.norms = [layers.LayerNormalization() for _ in range(3)]

    def call(self, states, memory=None):
        output = self.attention(states, states, use_causal_mask=self.causal)
        states = self.norms[0](states + output)
        if self.cross is not None:
            states = self.norms[1](states + self.cross(states, memory))
        return self.norms[2](states + self.feed_forward(states))


class Tutorial(keras.Model):
    """Called on `(source_ids, target_ids)`, as the tutorial's is."""

    def __init__(self, causal=True):
        super().__init__(name="tutorial")
        self.source, self.target = Positions(), Positions()
        self.encoder = Block(causal=False, cross=False)
        self.decoder = Block(causal, cross=True)
        self.dense = layers.Dense(VOCAB)

    def call(self, inputs):
        source, target = inputs
        memory = self.encoder(self.source(source))
        return self.dense(self.decoder(self.target(target), memory))


def seeded(make, **options):
    def build():
        keras.utils.set_random_seed(0)
        return make(**options)

    return build


def entries():
    options = {
        "source_vocab_size": VOCAB,
        "target_vocab_size": VOCAB,
        "training": True,
    }
    yield Entry(
        "keras", "the tutorial's Transformer", seeded(Tutorial), options
    )
    yield Entry(
        "keras",
        "the tutorial's, without `use_causal_mask`",
        seeded(Tutorial, causal=False),
        options,
        "to compare",
    )
