"""Decoding as one would explain it: a sentence, a prefix, a next word.

All of it stands on `model((source, prefix))` alone, from which the last position is
taken: no cache, no batch of sentences, no padding, and no line of the package.
"""

import numpy as np

PAD, START, END = 0, 2, 3
# Of models that are small enough for it.
SIZES = {
    "num_blocks": 1,
    "embedding_dim": 8,
    "num_heads": 2,
    "key_dim": 4,
    "value_dim": 3,
    "feed_forward_dim": 16,
}
POSITION_WEIGHTS = ("distances", "queries", "keys")


def randomize(model, seed=0, end=0.0, sharpness=2.0):
    """Gives a model random weights with which its translations are not all alike.

    The output layer is set so that every word is as likely as any other on the mean of
    random sentences; weights that are merely random say the same word for ever. The end
    is the likelier, the larger `end`; `sharpness` is the deviation of a word's logits.
    """
    generator = np.random.default_rng(seed)
    for weight in model.weights:
        kind = weight.path.split("/")[-1]
        values = generator.normal(size=weight.shape)
        mean = 1.0 if kind in ("gamma", "gain", "scale") else 0.0
        scale = 0.7 if "kernel" in kind or kind in POSITION_WEIGHTS else 0.0
        scale = 0.3 if kind == "embeddings" else scale
        weight.assign(mean + scale * values)
    length = min(30, model.config.max_length)
    shape = (20, length)
    source = generator.integers(4, model.source_vocab_size, shape, "int32")
    target = generator.integers(4, model.target_vocab_size, shape, "int32")
    logits = np.array(model((source, target)))
    factor = sharpness / logits.std((0, 1))
    kernel, bias = model.output_dense.weights
    kernel.assign(np.array(kernel) * factor)
    is_end = np.arange(model.target_vocab_size) == END
    bias.assign(end * is_end - factor * logits.mean((0, 1)))
    return model


def log_softmax(logits):
    logits = np.asarray(logits, "float64")
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


class Reader:
    """Says how likely each word is after a prefix, and remembers what it said."""

    def __init__(self, model):
        import tensorflow as tf

        def last_logits(source, prefix):
            return model((source[None], prefix[None]), training=False)[0, -1]

        ids = tf.TensorSpec([None], "int32")
        self._last_logits = tf.function(last_logits, input_signature=[ids, ids])
        self._log_probabilities = {}

    def __call__(self, source, prefix):
        """Log-probabilities of what follows [START] and the prefix."""
        source = tuple(int(word) for word in source if word != PAD)
        prefix = tuple(int(word) for word in prefix)
        if (source, prefix) not in self._log_probabilities:
            logits = self._last_logits(
                np.array(source, "int32"), np.array((START, *prefix), "int32")
            )
            self._log_probabilities[source, prefix] = log_softmax(logits)
        return self._log_probabilities[source, prefix]


def beam_search(read, source, limit, size, length_penalty):
    """The hypotheses `(words, ended, log-probability, score)`, the best first."""

    def score(words, log_probability):
        return log_probability / ((5 + len(words)) / 6) ** length_penalty

    def ends(hypothesis):
        return hypothesis[0][-1] == END

    prefixes = [((), 0.0)]
    sentences = []
    for _ in range(limit):
        extensions = []
        for words, log_probability in prefixes:
            for word, term in enumerate(read(source, words)):
                if word not in (PAD, START):
                    extension = ((*words, word), log_probability + term)
                    extensions.append(extension)
        extensions.sort(key=lambda hypothesis: -hypothesis[1])
        extensions = extensions[: 2 * size]
        sentences += [h for h in extensions[:size] if ends(h)]
        prefixes = [h for h in extensions if not ends(h)][:size]
        if len(sentences) >= size:
            break
    sentences.sort(key=lambda hypothesis: -score(*hypothesis))
    results = [(words[:-1], True, p, score(words, p)) for words, p in sentences]
    results += [(words, False, p, score(words, p)) for words, p in prefixes]
    return results[:size]


def losses(read, source, target):
    """−log P of each word of a target after the first, given those before it."""
    assert target[0] == START
    return [
        -read(source, target[1:position])[target[position]]
        for position in range(1, len(target))
    ]
