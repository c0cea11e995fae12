"""The model of `plain_jax`: ids of both sides to logits."""

import jax
from jax import numpy as jnp
from jax import random
from peers.settings import sinusoids


def shapes(settings):
    """Returns the shape of each weight, in the peers' order."""
    blocks, embedding, heads, head, hidden, width = settings.sizes
    source_vocab_size, target_vocab_size = settings.vocab_sizes
    attention = [
        (width, heads, head),
        (heads, head),
        (width, heads, head),
        (heads, head),
        # RePE's values are its tokens.
        (embedding, heads, head),
        (heads, head),
        (heads, head, width),
        (width,),
    ]
    feed_forward = [(width, hidden), (hidden,), (hidden, width), (width,)]
    norm = [(width,), (width,)]
    encoder_block = attention + feed_forward + 2 * norm
    decoder_block = 2 * attention + feed_forward + 3 * norm
    return [
        (source_vocab_size, embedding),
        (target_vocab_size, embedding),
        *(blocks * encoder_block),
        *(blocks * decoder_block),
        (width, target_vocab_size),
        (target_vocab_size,),
    ]


def logits(weights, source_ids, target_ids, settings, key):
    """Returns the logits of each target position."""
    # There is a key for each dropout, and there are fewer than 99.
    keys = iter(random.split(key, 99))
    rate = settings.dropout
    repe = settings.model == "repe"
    weights = iter(weights)

    def take(count):
        return [next(weights) for _ in range(count)]

    def drop(x):
        if not rate:
            return x
        return x * random.bernoulli(next(keys), 1 - rate, x.shape) / (1 - rate)

    def embed(ids, table):
        width = table.shape[1]
        real = (ids > 0)[..., None]
        tokens = table[ids] * width**0.5
        positions = jnp.asarray(sinusoids(width))[None, : ids.shape[1]]
        if not repe:
            return None, drop(tokens + positions)
        count = jnp.sum(real, 1, keepdims=True)
        mean = jnp.sum(tokens * real, 1, keepdims=True) / count
        tokens = (tokens - mean) * real
        variance = jnp.sum(tokens**2, 1, keepdims=True) / count
        tokens /= jnp.sqrt(variance + 1e-6)
        positions = jnp.broadcast_to(positions, tokens.shape)
        return tokens, drop(jnp.concatenate([tokens, positions], 2))

    def project(x, kernel, bias):
        return jnp.einsum("btm,mhd->bthd", x, kernel) + bias

    def attend(layer, query, key, value, mask):
        query = project(query, *layer[0:2])
        value = project(key if value is None else value, *layer[4:6])
        key = project(key, *layer[2:4])
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key)
        scores = scores / query.shape[-1] ** 0.5
        scores = jnp.where(mask[:, None], scores, -1e9)
        weights = drop(jax.nn.softmax(scores))
        output = jnp.einsum("bhqk,bkhd->bqhd", weights, value)
        return jnp.einsum("bqhd,hdm->bqm", output, layer[6]) + layer[7]

    def norm(x, scale, shift):
        return jax.nn.standardize(x, epsilon=1e-3) * scale + shift

    def block(x, *attentions):
        layers = [take(8) for _ in attentions]
        hidden_kernel, hidden_bias, kernel, bias = take(4)
        for layer, (key, value, mask) in zip(layers, attentions):
            key = x if key is None else key
            x = norm(x + attend(layer, x, key, value, mask), *take(2))
        hidden = jax.nn.relu(x @ hidden_kernel + hidden_bias)
        return norm(x + drop(hidden @ kernel + bias), *take(2))

    source_table, target_table = take(2)
    source, memory = embed(source_ids, source_table)
    target, states = embed(target_ids, target_table)
    source_mask = (source_ids > 0)[:, None]
    target_mask = (target_ids > 0)[:, None]
    target_mask = target_mask & jnp.tri(target_mask.shape[2], dtype=bool)
    for _ in range(settings.sizes.blocks):
        memory = block(memory, (None, source, source_mask))
    for _ in range(settings.sizes.blocks):
        states = block(
            states,
            (None, target, target_mask),
            (memory, source, source_mask),
        )
    kernel, bias = take(2)
    return states @ kernel + bias
