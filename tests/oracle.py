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
        normed[row] = (x[row] - tokens.mean(0)) / np.sqrt(
            tokens.var(0) + epsilon
        )
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


def rotated(x):
    """Su et al. 2021: each pair of channels (k, k + r/2) turns by i / 10000^(2k/r)."""
    length, width = x.shape
    turned = np.zeros((length, width))
    for i in range(length):
        for k in range(width // 2):
            angle = i / 10000 ** (2 * k / width)
            pair = x[i, k] + 1j * x[i, k + width // 2]
            pair *= complex(math.cos(angle), math.sin(angle))
            turned[i, k], turned[i, k + width // 2] = pair.real, pair.imag
    return turned


def bucket(distance, both_directions):
    """Raffel et al. 2020: that of a key `distance` after the query."""
    count = 16 if both_directions else 32
    exact = count // 2
    back = abs(distance) if both_directions else max(-distance, 0)
    if back >= exact:
        share = math.log(back / exact) / math.log(128 / exact)
        back = min(
            count - 1, exact + math.floor((count - exact) * share + 1e-9)
        )
    return back + (count if both_directions and distance > 0 else 0)


def position_scores(name, position, head, length, stack):
    """What a method adds to a head's scores; `stack` is the name of its stack."""
    i, j = np.mgrid[:length, :length]
    if name == "relative":
        numbers = np.asarray(position.table, "float64")[:, head]
        one = np.vectorize(lambda d: numbers[bucket(d, stack == "encoder")])
        return one(j - i)
    if name == "alibi":
        return -(2.0 ** (-8 * (head + 1) / position.num_heads)) * abs(i - j)
    if name == "untied":
        r = position.key_dim
        rows = np.asarray(position.encoding, "float64")[:length]
        q, k = (
            rows @ np.asarray(kernel, "float64")[:, r * head : r * (head + 1)]
            for kernel in (position.query_kernel, position.key_kernel)
        )
        return q @ k.T / math.sqrt(2 * r)
    return 0.0


def attention(layer, query, key, value, allowed, position="none", stack=""):
    """Eq. 12-14, 29-32 for one sentence; `allowed[i, j]`: may i attend to j?"""
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
            q, k = (
                x / np.sqrt((x**2).sum(-1, keepdims=True) + 1e-6)
                for x in (q, k)
            )
            scale = float(layer.scale)
        if position == "rotary":
            q, k = rotated(q), rotated(k)
        if position == "untied":
            scale = scale / math.sqrt(2)
        logits = scale * q @ k.T
        logits = logits + position_scores(
            position, layer.position, head, len(q), stack
        )
        scores.append(softmax(np.where(allowed, logits, -np.inf)))
        result = result + scores[-1] @ v @ weights["output"][0][head]
    return result, np.array(scores)


def layer_norm(layer, x, epsilon=1e-3):
    spread = np.sqrt(x.var(-1, keepdims=True) + epsilon)
    normed = (x - x.mean(-1, keepdims=True)) / spread
    if layer.gamma is None:
        return normed
    return normed * np.asarray(layer.gamma, "float64") + np.asarray(layer.beta)


def dense(layer, x):
    return x @ np.asarray(layer.kernel, "float64") + np.asarray(layer.bias)


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
}


GATED = {"swiglu": "silu", "geglu": "gelu"}


def feed_forward(layer, x, activation):
    """Eq. 31; Shazeer 2020, where a second projection is multiplied by it."""
    hidden = ACTIVATIONS[GATED.get(activation, activation)](
        dense(layer.hidden, x)
    )
    if activation in GATED:
        hidden = hidden * dense(layer.linear, x)
    return dense(layer.output_dense, hidden)


def embed(model, side, ids):
    """Tokens and states of one sentence, eq. 1-3, 8-11, 18 and 28."""
    config = model.config
    layer = getattr(model, f"{side}_embedding")
    m = config.embedding_dim
    factor = {"sqrt": m**0.5, "inverse_sqrt": m**-0.5, "none": 1.0}[
        config.scale
    ]
    tokens = factor * np.asarray(layer.embedding.embeddings, "float64")[ids]
    which = "encoder" if side == "source" else "decoder"
    norm = config.embedding_norm
    if which == "decoder" and config.decoder_norm is not None:
        norm = config.decoder_norm
    if norm == "token_norm":
        tokens = token_norm(
            tokens,
            None if config.padding_in_statistics else ids != 0,
            getattr(config, f"{which}_statistics"),
            config.epsilon,
        )
    if norm == "rms":
        tokens = rms_norm(layer.token_norm.gain, tokens, config.epsilon)
    if config.position not in ("add", "concat"):
        return tokens, tokens
    if config.table == "learned":
        (learned,) = layer.positional.weights
        positions = np.asarray(learned, "float64")[: len(ids)]
    else:
        positions = table(len(ids), config.position_dim or m, config.table)
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
    """Logits of one sentence pair, eq. 26, 27, 33 and 34, or with norms before.

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

    def attended(layer, x, value, allowed, stack):
        value, position = weighed(value, x), (config.position, stack)
        return noted(*attention(layer, x, x, value, allowed, *position))

    def crossed(layer, x):
        value = weighed(source_tokens, memory)
        return noted(*attention(layer, x, memory, value, source_real[None, :]))

    def fed(layer, x):
        return feed_forward(layer, x, config.activation)

    source_tokens, x = embed(model, "source", source_ids)
    for b in model.encoder.blocks:
        allowed = source_real[None, :]
        options = {
            "value": source_tokens,
            "allowed": allowed,
            "stack": "encoder",
        }
        own = partial(attended, b.self_attention, **options)
        x = joined(b.attention_norm, x, own)
        x = joined(b.feed_forward_norm, x, partial(fed, b.feed_forward))
    memory = (
        norm(model.encoder.final_norm, x) if config.final_norm == "both" else x
    )
    target_tokens, x = embed(model, "target", target_ids)
    allowed = np.tri(len(target_ids), dtype=bool) & target_real[None, :]
    for b in model.decoder.blocks:
        options = {
            "value": target_tokens,
            "allowed": allowed,
            "stack": "decoder",
        }
        own = partial(attended, b.self_attention, **options)
        x = joined(b.self_norm, x, own)
        x = joined(b.cross_norm, x, partial(crossed, b.cross_attention))
        x = joined(b.feed_forward_norm, x, partial(fed, b.feed_forward))
    if config.final_norm != "none":
        x = norm(model.decoder.final_norm, x)
    return output(model, x)
