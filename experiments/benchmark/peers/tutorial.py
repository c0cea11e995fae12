"""The way of TensorFlow's tutorial: one sentence at a time, and at each step all of it.

The model is plain Keras after that tutorial, the one that ours is trained beside.
"""

import tensorflow as tf
from peers import plain_keras
from text import END, START


class Peer(plain_keras.Peer):
    """What the tutorial calls Translator, from ids to ids."""

    def translate(self, source, beam_size, max_tokens):
        return [self._sentence(ids, max_tokens) for ids in source]

    def _sentence(self, ids, max_tokens):
        source, output = tf.constant([ids]), tf.constant([[START]])
        for _ in range(max_tokens):
            predictions = self.model((source, output), training=False)
            # The last token alone, though all have been predicted again.
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
