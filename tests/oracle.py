"""The paper's equations once more, in plain NumPy and float64.

Written for reading, sentence by sentence and head by head, and sharing no line with
the package. Weights come from a model's layers.
"""

import math
from functools import partial

import numpy as np


def token_norm(x, mask=None, statistics="sequence", epsilon=1e-6):
    """Eq. 4-7 for one sequence; `mask` says which rows count."""
    x = np.asarray(x, dtype="float64")
    mask = np.ones(len(x), dtype=bool) if mask is None else np.asarray(mask)
    outputs = np.zeros_like(x)
    for row in np.flatnonzero(mask):
        end = len(x) if statistics == "sequence" else row + 1
        tokens = x[:end][mask[:end]]
        outputs[row] = (x[row] - tokens.mean(0)) / np.sqrt(
            tokens.var(0) + epsilon
        )
    return outputs


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
            is_sine = j < depth // 2
            if kind == "tutorial":
                k = j if is_sine else j - depth // 2
                angle = i / 10000 ** (k / (depth / 2))
            else:
                angle = (i + 1) / 10000 ** (2 * (j + 1) / depth)
            encoding[i, j] = np.sin(angle) if is_sine else np.cos(angle)
    return encoding


def softmax(scores):
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def rotate(x):
    """Su et al. 2021: each pair of channels (k, k + r/2) turns by i / 10000^(2k/r)."""
    length, width = x.shape
    outputs = np.zeros((length, width))
    for i in range(length):
        for k in range(width // 2):
            angle = i / 10000 ** (2 * k / width)
            pair = x[i, k] + 1j * x[i, k + width // 2]
            pair *= complex(math.cos(angle), math.sin(angle))
            outputs[i, k], outputs[i, k + width // 2] = pair.real, pair.imag
    return outputs


def bucket(distance, both_directions):
    """Raffel et al. 2020: that of a key `distance` after the query."""
    count = 16 if both_directions else 32
    exact_count = count // 2
    steps = abs(distance) if both_directions else max(-distance, 0)
    if steps >= exact_count:
        share = math.log(steps / exact_count) / math.log(128 / exact_count)
        steps = min(
            count - 1,
            exact_count + math.floor((count - exact_count) * share + 1e-9),
        )
    return steps + (count if both_directions and distance > 0 else 0)


def position_scores(name, position, head, length, stack):
    """What a method adds to a head's scores; `stack` is the name of its stack."""
    i, j = np.mgrid[:length, :length]
    if name == "relative":
        biases = np.asarray(position.table, "float64")[:, head]
        bias_of = np.vectorize(lambda d: biases[bucket(d, stack == "encoder")])
        return bias_of(j - i)
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


def attention(layer, query, key, value, mask, position="none", stack=""):
    """Eq. 12-14, 29-32 for one sentence; `mask[i, j]`: may i attend to j?"""
    weights = {}
    for name in ("query", "key", "value", "output"):
        dense = getattr(layer, f"{name}_dense")
        kernel = np.asarray(dense.kernel, "float64")
        shape = kernel.shape[2:] if name == "output" else kernel.shape[1:]
        bias = np.zeros(shape) if dense.bias is None else dense.bias
        weights[name] = kernel, np.asarray(bias, "float64")
    outputs = weights["output"][1]
    scores = []
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
            q, k = rotate(q), rotate(k)
        if position == "untied":
            scale = scale / math.sqrt(2)
        logits = scale * q @ k.T
        logits = logits + position_scores(
            position, layer.position, head, len(q), stack
        )
        scores.append(softmax(np.where(mask, logits, -np.inf)))
        kernel = weights["output"][0][head]
        outputs = outputs + scores[-1] @ v @ kernel
    return outputs, np.array(scores)


def layer_norm(layer, x, epsilon=1e-3):
    deviations = np.sqrt(x.var(-1, keepdims=True) + epsilon)
    outputs = (x - x.mean(-1, keepdims=True)) / deviations
    if layer.gamma is None:
        return outputs
    return outputs * np.asarray(layer.gamma, "float64") + np.asarray(layer.beta)


def dense(layer, x):
    return x @ np.asarray(layer.kernel, "float64") + np.asarray(layer.bias)


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
}


GATES = {"swiglu": "silu", "geglu": "gelu"}


def feed_forward(layer, x, activation):
    """Eq. 31; Shazeer 2020, where a second projection is multiplied by it."""
    function = ACTIVATIONS[GATES.get(activation, activation)]
    hidden = function(dense(layer.hidden, x))
    if activation in GATES:
        hidden = hidden * dense(layer.linear, x)
    return dense(layer.output_dense, hidden)


def embed(model, side, ids):
    """Tokens and states of one sentence, eq. 1-3, 8-11, 18 and 28."""
    config = model.config
    layer = getattr(model, f"{side}_embedding")
    m = config.embedding_dim
    factors = {"sqrt": m**0.5, "inverse_sqrt": m**-0.5, "none": 1.0}
    factor = factors[config.scale]
    tokens = factor * np.asarray(layer.embedding.embeddings, "float64")[ids]
    stack = "encoder" if side == "source" else "decoder"
    norm = config.embedding_norm
    if stack == "decoder" and config.decoder_norm is not None:
        norm = config.decoder_norm
    if norm == "token_norm":
        tokens = token_norm(
            tokens,
            None if config.padding_in_statistics else ids != 0,
            getattr(config, f"{stack}_statistics"),
            config.epsilon,
        )
    if norm == "rms":
        tokens = rms_norm(layer.token_norm.gain, tokens, config.epsilon)
    if config.position not in ("add", "concat"):
        return tokens, tokens
    if config.table == "learned":
        (table_weights,) = layer.positional.weights
        positions = np.asarray(table_weights, "float64")[: len(ids)]
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


def transformer(model, source_ids, target_ids, attention_weights=None):
    """Logits of one sentence pair, eq. 26, 27, 33 and 34, or with norms before.

    A list `attention_weights` gets the weights of each attention, block by block.
    """
    config = model.config
    if attention_weights is None:
        attention_weights = []
    source_mask, target_mask = source_ids != 0, target_ids != 0

    def norm(layer, x):
        return layer_norm(layer, x, config.layer_norm_epsilon)

    def add_and_norm(layer, x, sublayer):
        if config.norm_place == "before":
            return x + sublayer(norm(layer, x))
        return norm(layer, x + sublayer(x))

    def choose_value(tokens, states):
        return tokens if config.value == "tokens" else states

    def record(result, weights):
        attention_weights.append(weights)
        return result

    def attend(layer, x, value, mask, stack):
        value = choose_value(value, x)
        position = config.position
        return record(*attention(layer, x, x, value, mask, position, stack))

    def cross_attend(layer, x):
        value = choose_value(source_tokens, memory)
        return record(*attention(layer, x, memory, value, source_mask[None, :]))

    def feed(layer, x):
        return feed_forward(layer, x, config.activation)

    source_tokens, x = embed(model, "source", source_ids)
    for b in model.encoder.blocks:
        self_attention = partial(
            attend,
            b.self_attention,
            value=source_tokens,
            mask=source_mask[None, :],
            stack="encoder",
        )
        x = add_and_norm(b.attention_norm, x, self_attention)
        x = add_and_norm(b.feed_forward_norm, x, partial(feed, b.feed_forward))
    memory = (
        norm(model.encoder.final_norm, x) if config.final_norm == "both" else x
    )
    target_tokens, x = embed(model, "target", target_ids)
    mask = np.tri(len(target_ids), dtype=bool) & target_mask[None, :]
    for b in model.decoder.blocks:
        self_attention = partial(
            attend,
            b.self_attention,
            value=target_tokens,
            mask=mask,
            stack="decoder",
        )
        x = add_and_norm(b.self_norm, x, self_attention)
        x = add_and_norm(
            b.cross_norm, x, partial(cross_attend, b.cross_attention)
        )
        x = add_and_norm(b.feed_forward_norm, x, partial(feed, b.feed_forward))
    if config.final_norm != "none":
        x = norm(model.decoder.final_norm, x)
    return output(model, x)
