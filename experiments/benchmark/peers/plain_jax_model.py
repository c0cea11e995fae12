"""The model of `plain_jax`: ids of both sides to logits."""

import jax
from jax import numpy as jnp
from jax import random
from peers.settings import sinusoids


def shapes(settings):
    """Returns the shape of each weight, in the peers' order."""
    blocks, width, heads, head, hidden, wide = settings.sizes
    # RePE's values are its tokens.
    inner = heads, head
    attention = [
        (wide, *inner),
        inner,
        (wide, *inner),
        inner,
        (width, *inner),
        inner,
    ]
    attention += [(*inner, wide), (wide,)]
    forward = [(wide, hidden), (hidden,), (hidden, wide), (wide,)]
    found = [(size, width) for size in settings.vocab_sizes]
    for attentions in (1, 2):
        norms = [(wide,)] * 2 * (attentions + 1)
        found += (attention * attentions + forward + norms) * blocks
    return [*found, (wide, settings.vocab_sizes[1]), (settings.vocab_sizes[1],)]


def logits(weights, source_ids, target_ids, settings, key):
    """Returns the logits of each target position."""
    keys, rate = iter(random.split(key, 99)), settings.dropout
    repe, weights = settings.model == "repe", iter(weights)

    def take(count):
        return [next(weights) for _ in range(count)]

    def drop(x):
        if not rate:
            return x
        return x * random.bernoulli(next(keys), 1 - rate, x.shape) / (1 - rate)

    def embedded(ids, table):
        width, real = table.shape[1], (ids > 0)[..., None]
        x = table[ids] * width**0.5
        places = jnp.asarray(sinusoids(width))[None, : ids.shape[1]]
        if not repe:
            return None, drop(x + places)
        count = jnp.sum(real, 1, keepdims=True)
        x = (x - jnp.sum(x * real, 1, keepdims=True) / count) * real
        x /= jnp.sqrt(jnp.sum(x**2, 1, keepdims=True) / count + 1e-6)
        return x, drop(
            jnp.concatenate([x, jnp.broadcast_to(places, x.shape)], 2)
        )

    def attended(layer, query, key, value, mask):
        inputs = query, key, key if value is None else value
        query, key, value = (
            jnp.einsum("btm,mhd->bthd", x, layer[2 * n]) + layer[2 * n + 1]
            for n, x in enumerate(inputs)
        )
        scores = (
            jnp.einsum("bqhd,bkhd->bhqk", query, key) / query.shape[-1] ** 0.5
        )
        shares = drop(jax.nn.softmax(jnp.where(mask[:, None], scores, -1e9)))
        mixed = jnp.einsum("bhqk,bkhd->bqhd", shares, value)
        return jnp.einsum("bqhd,hdm->bqm", mixed, layer[6]) + layer[7]

    def norm(x, scale, shift):
        return jax.nn.standardize(x, epsilon=1e-3) * scale + shift

    def block(x, *attentions):
        layers = [take(8) for _ in attentions]
        first, bias, second, last = take(4)
        for layer, (key, value, mask) in zip(layers, attentions):
            key = x if key is None else key
            x = norm(x + attended(layer, x, key, value, mask), *take(2))
        hidden = jax.nn.relu(x @ first + bias)
        return norm(x + drop(hidden @ second + last), *take(2))

    ids = source_ids, target_ids
    (source, memory), (target, states) = map(embedded, ids, take(2))
    real, causal = ((side > 0)[:, None] for side in ids)
    causal = causal & jnp.tri(causal.shape[2], dtype=bool)
    for _ in range(settings.sizes.blocks):
        memory = block(memory, (None, source, real))
    for _ in range(settings.sizes.blocks):
        states = block(states, (None, target, causal), (memory, source, real))
    kernel, bias = take(2)
    return states @ kernel + bias
