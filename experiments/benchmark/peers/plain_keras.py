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
        self.source_embedding, self.target_embedding = (
            PositionalEmbedding(size, sizes, repe, dropout)
            for size in vocab_sizes
        )
        blocks = range(sizes.blocks)
        self.encoder = [Block(1, sizes, dropout) for _ in blocks]
        self.decoder = [Block(2, sizes, dropout) for _ in blocks]
        self.logits = keras.layers.Dense(vocab_sizes[1])

    def call(self, inputs):
        source_ids, target_ids = inputs
        source_real, target_real = source_ids != 0, target_ids != 0
        source, memory = self.source_embedding(source_ids, source_real)
        target, states = self.target_embedding(target_ids, target_real)
        if not self.repe:  # the value is the key's own sequence
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
            predictions = self.model((source, output), training=False)
            # The last token only, though all have been predicted again.
            predictions = predictions[:, -1:, :]
            predicted = tf.argmax(predictions, axis=-1, output_type=tf.int32)
            if predicted == END:
                break
            output = tf.concat([output, predicted], axis=1)
        return output.numpy()[0, 1:].tolist()

    def scores(self, source, target):
        return [self._scores(*pair) for pair in zip(source, target)]

    def _scores(self, source, target):
        logits = self.model((source[None], target[None, :-1]), training=False)
        scores = tf.nn.log_softmax(logits)[0].numpy()
        return scores[range(len(scores)), target[1:]]
