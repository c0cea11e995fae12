"""Plain Keras 3: both models as one would write them after TensorFlow's tutorial.

Its structure (embedding with positions, layers of attention, Add, LayerNormalization
and Dense, an encoder and a decoder), with the masks passed as arguments, since Keras
since 3.8 does not carry them through attention.
"""

import keras
import tensorflow as tf
from peers.keras_loop import KerasPeer
from peers.plain_keras_layers import Block, PositionalEmbedding
from text import END, START


class Transformer(keras.Model):
    """Encoder and decoder: ids of both sides to logits."""

    def __init__(self, vocab_sizes, sizes, repe, dropout):
        super().__init__()
        self.repe = repe
        source_vocab_size, target_vocab_size = vocab_sizes
        self.source_embedding = PositionalEmbedding(
            source_vocab_size, sizes, repe, dropout
        )
        self.target_embedding = PositionalEmbedding(
            target_vocab_size, sizes, repe, dropout
        )
        blocks = range(sizes.blocks)
        self.encoder = [Block(1, sizes, dropout) for _ in blocks]
        self.decoder = [Block(2, sizes, dropout) for _ in blocks]
        self.logits = keras.layers.Dense(target_vocab_size)

    def call(self, inputs):
        source_ids, target_ids = inputs
        source_real, target_real = source_ids != 0, target_ids != 0
        source, memory = self.source_embedding(source_ids, source_real)
        target, states = self.target_embedding(target_ids, target_real)
        # Except in RePE, the values are the keys' own sequence.
        if not self.repe:
            source = target = None
        source_mask, target_mask = source_real[:, None], target_real[:, None]
        for block in self.encoder:
            memory = block(memory, source, source_mask)
        for block in self.decoder:
            states = block(
                states, target, target_mask, memory, source, source_mask
            )
        return self.logits(states)


class Peer(KerasPeer):
    """The tutorial's structure, for both models, and its way to translate.

    It takes one sentence at a time, and at each step all of it.
    """

    def build(self, settings):
        repe = settings.model == "repe"
        return Transformer(
            settings.vocab_sizes, settings.sizes, repe, settings.dropout
        )

    def translate(self, source, beam_size, max_tokens):
        return [self._sentence(ids, max_tokens) for ids in source]

    def _sentence(self, ids, max_tokens):
        source, output = tf.constant([ids]), tf.constant([[START]])
        for _ in range(max_tokens):
            logits = self.model((source, output), training=False)
            # Only the last token is used, though all have been predicted again.
            logits = logits[:, -1:, :]
            token = tf.argmax(logits, axis=-1, output_type=tf.int32)
            if token == END:
                break
            output = tf.concat([output, token], axis=1)
        return output.numpy()[0, 1:].tolist()

    def scores(self, source, target):
        scores = []
        for source_ids, target_ids in zip(source, target):
            scores.append(self._sentence_scores(source_ids, target_ids))
        return scores

    def _sentence_scores(self, source, target):
        logits = self.model((source[None], target[None, :-1]), training=False)
        scores = tf.nn.log_softmax(logits)[0].numpy()
        return scores[range(len(scores)), target[1:]]
