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
OF_POSITIONS = ("distances", "queries", "keys")  # weights


def lively(model, seed=0, end=0.0, sharpness=2.0):
    """Gives a model random weights with which its translations are not all alike.

    The output layer is set so that every word is as likely as any other on the mean of
    random sentences; weights that are merely random say the same word for ever. The end
    is the likelier, the larger `end`; `sharpness` is the deviation of a word's logits.
    """
    random = np.random.default_rng(seed)
    for weight in model.weights:
        kind, values = (
            weight.path.split("/")[-1],
            random.normal(size=weight.shape),
        )
        scale = 0.7 if "kernel" in kind or kind in OF_POSITIONS else 0.0
        scale = 0.3 if kind == "embeddings" else scale
        weight.assign((kind in ("gamma", "gain", "scale")) + scale * values)
    length = min(30, model.config.max_length)
    source, target = (
        random.integers(4, words, (20, length), dtype="int32")
        for words in (model.source_vocab_size, model.target_vocab_size)
    )
    logits = np.array(model((source, target)))
    factor = sharpness / logits.std((0, 1))
    kernel, bias = model.output_dense.weights
    kernel.assign(np.array(kernel) * factor)
    ends = np.arange(model.target_vocab_size) == END
    bias.assign(end * ends - factor * logits.mean((0, 1)))
    return model


def log_softmax(logits):
    logits = np.asarray(logits, "float64")
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


class Reader:
    """Says how likely each word is after a prefix, and remembers what it said."""

    def __init__(self, model):
        import tensorflow as tf

        def last(source, prefix):
            return model((source[None], prefix[None]), training=False)[0, -1]

        ids = tf.TensorSpec([None], "int32")
        self._last = tf.function(last, input_signature=[ids, ids])
        self._known = {}

    def __call__(self, source, prefix):
        """Log-probabilities of what follows [START] and the prefix."""
        source = tuple(int(word) for word in source if word != PAD)
        prefix = tuple(int(word) for word in prefix)
        if (source, prefix) not in self._known:
            logits = self._last(
                np.array(source, "int32"), np.array((START, *prefix), "int32")
            )
            self._known[source, prefix] = log_softmax(logits)
        return self._known[source, prefix]


def beam_search(read, source, limit, size, length_penalty):
    """The hypotheses `(words, ended, log-probability, score)`, the best first."""

    def score(words, log_probability):
        return log_probability / ((5 + len(words)) / 6) ** length_penalty

    going, ended = [((), 0.0)], []
    for _ in range(limit):
        longer = [
            ((*words, word), log_probability + more)
            for words, log_probability in going
            for word, more in enumerate(read(source, words))
            if word not in (PAD, START)
        ]
        longer.sort(key=lambda hypothesis: -hypothesis[1])
        longer = longer[: 2 * size]
        ended += [each for each in longer[:size] if each[0][-1] == END]
        going = [each for each in longer if each[0][-1] != END][:size]
        if len(ended) >= size:
            break
    ended.sort(key=lambda hypothesis: -score(*hypothesis))
    found = [(words[:-1], True, p, score(words, p)) for words, p in ended]
    found += [(words, False, p, score(words, p)) for words, p in going]
    return found[:size]


def losses(read, source, target):
    """−log P of each word of a target after the first, given those before it."""
    assert target[0] == START
    return [
        -read(source, target[1:place])[target[place]]
        for place in range(1, len(target))
    ]
