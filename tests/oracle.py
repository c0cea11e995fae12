"""The paper's equations once more, in plain NumPy and float64.

Written for reading, sentence by sentence and head by head, and sharing no line with
the package. Weights come from a model's layers.
"""

import math
from functools import partial

import numpy as np


def token_norm(x, real=None, statistics="sequence", epsilon=1e-6):
    """Eq. 4-7 for one sequence; `real` says which rows count."""
    x = np.asarray(x, dtype="float64")
    real = np.ones(len(x), dtype=bool) if real is None else np.asarray(real)
    normed = np.zeros_like(x)
    for row in np.flatnonzero(real):
        end = len(x) if statistics == "sequence" else row + 1
        tokens = x[:end][real[:end]]
        normed[row] = (x[row] - tokens.mean(0)) / np.sqrt(tokens.var(0) + epsilon)
    return normed


def rms_norm(gain, x, epsilon=1e-6):
    """Each row by its own root mean square."""
    x = np.asarray(x, dtype="float64")
    mean_squares = (x**2).mean(-1, keepdims=True)
    return np.asarray(gain, "float64") * x / np.sqrt(mean_squares + epsilon)


def table(length, depth, kind="tutorial"):
    """Eq. 3 to the letter, or as TensorFlow's tutorial has it."""
    encoding = np.zeros((length, depth))
    for i in range(length):
        for j in range(depth):
            left = j < depth // 2
            if kind == "tutorial":
                k = j if left else j - depth // 2
                angle = i / 10000 ** (k / (depth / 2))
            else:
                angle = (i + 1) / 10000 ** (2 * (j + 1) / depth)
            encoding[i, j] = np.sin(angle) if left else np.cos(angle)
    return encoding


def softmax(scores):
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def attention(layer, query, key, value, allowed):
    """Eq. 12-19 for one sentence; `allowed[i, j]`: may i attend to j?"""
    weights = {}
    for name in ("query", "key", "value", "output"):
        dense = getattr(layer, f"{name}_dense")
        kernel = np.asarray(dense.kernel, "float64")
        shape = kernel.shape[2:] if name == "output" else kernel.shape[1:]
        bias = np.zeros(shape) if dense.bias is None else dense.bias
        weights[name] = kernel, np.asarray(bias, "float64")
    result, scores = weights["output"][1], []
    for head in range(layer.num_heads):
        q, k, v = (
            x @ weights[name][0][:, head] + weights[name][1][head]
            for name, x in (("query", query), ("key", key), ("value", value))
        )
        scale = 1 / np.sqrt(layer.key_dim)
        if layer.query_key_norm:
            q, k = (x / np.sqrt((x**2).sum(-1, keepdims=True) + 1e-6) for x in (q, k))
            scale = float(layer.scale)
        logits = scale * q @ k.T
        scores.append(softmax(np.where(allowed, logits, -np.inf)))
        result = result + scores[-1] @ v @ weights["output"][0][head]
    return result, np.array(scores)


def layer_norm(layer, x, epsilon=1e-3):
    spread = np.sqrt(x.var(-1, keepdims=True) + epsilon)
    normed = (x - x.mean(-1, keepdims=True)) / spread
    return normed * np.asarray(layer.gamma, "float64") + np.asarray(layer.beta)


def dense(layer, x):
    return x @ np.asarray(layer.kernel, "float64") + np.asarray(layer.bias)


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
}


def feed_forward(layer, x, activation):
    return dense(layer.output_dense, ACTIVATIONS[activation](dense(layer.hidden, x)))


def embed(model, side, ids):
    """Tokens and states of one sentence, eq. 1-3, 8-11 and 28."""
    config = model.config
    layer = getattr(model, f"{side}_embedding")
    m = config.embedding_dim
    factor = {"sqrt": m**0.5, "inverse_sqrt": m**-0.5, "none": 1.0}[config.scale]
    tokens = factor * np.asarray(layer.embedding.embeddings, "float64")[ids]
    if config.embedding_norm == "token_norm":
        which = "encoder" if side == "source" else "decoder"
        tokens = token_norm(
            tokens,
            None if config.padding_in_statistics else ids != 0,
            getattr(config, f"{which}_statistics"),
            config.epsilon,
        )
    if config.embedding_norm == "rms":
        tokens = rms_norm(layer.token_norm.gain, tokens, config.epsilon)
    if config.table == "learned":
        (learned,) = layer.positional.weights
        positions = np.asarray(learned, "float64")[: len(ids)]
    else:
        positions = table(len(ids), m, config.table)
    if config.position == "concat":
        return tokens, np.concatenate([tokens, positions], axis=1)
    return tokens, tokens + positions


def output(model, states):
    """Logits of the decoder's states: a layer, or the target's embedding table."""
    if model.config.output_tying == "none":
        return dense(model.output_dense, states)
    if model.config.output_tying == "projected":
        states = states @ np.asarray(model.output_projection.kernel, "float64")
    side = "source" if model.config.shared_embedding else "target"
    table = getattr(model, f"{side}_embedding").embedding.embeddings
    return states @ np.asarray(table, "float64").T


def transformer(model, source_ids, target_ids, seen=None):
    """Logits of one sentence pair, eq. 20-24 and appendix A, or with norms before.

    A list `seen` gets the weights of each attention, block by block.
    """
    config, seen = model.config, [] if seen is None else seen
    source_real, target_real = source_ids != 0, target_ids != 0

    def norm(layer, x):
        return layer_norm(layer, x, config.layer_norm_epsilon)

    def joined(layer, x, sublayer):
        if config.norm_place == "before":
            return x + sublayer(norm(layer, x))
        return norm(layer, x + sublayer(x))

    def weighed(tokens, states):
        return tokens if config.value == "tokens" else states

    def noted(result, weights):
        seen.append(weights)
        return result

    def attended(layer, x, value, allowed):
        return noted(*attention(layer, x, x, weighed(value, x), allowed))

    def crossed(layer, x):
        value = weighed(source_tokens, memory)
        return noted(*attention(layer, x, memory, value, source_real[None, :]))

    def fed(layer, x):
        return feed_forward(layer, x, config.activation)

    source_tokens, x = embed(model, "source", source_ids)
    for b in model.encoder.blocks:
        allowed = source_real[None, :]
        own = partial(attended, b.self_attention, value=source_tokens, allowed=allowed)
        x = joined(b.attention_norm, x, own)
        x = joined(b.feed_forward_norm, x, partial(fed, b.feed_forward))
    memory = norm(model.encoder.final_norm, x) if config.final_norm == "both" else x
    target_tokens, x = embed(model, "target", target_ids)
    allowed = np.tri(len(target_ids), dtype=bool) & target_real[None, :]
    for b in model.decoder.blocks:
        own = partial(attended, b.self_attention, value=target_tokens, allowed=allowed)
        x = joined(b.self_norm, x, own)
        x = joined(b.cross_norm, x, partial(crossed, b.cross_attention))
        x = joined(b.feed_forward_norm, x, partial(fed, b.feed_forward))
    if config.final_norm != "none":
        x = norm(model.decoder.final_norm, x)
    return output(model, x)
