"""Our baseline for CTranslate2.

It has all that the baseline has: heads of any width (`head_dim`), normalisation after
the residual, Keras' epsilon, and our table of positions. So the model is the same, but
for rounding. Its tokens are strings; ours are called by their ids.
"""

import numpy as np
from ctranslate2 import specs
from peers.settings import sinusoids
from text import END, START, UNKNOWN


def tokens_of(ids):
    return [str(index) for index in ids]


def ids_of(tokens):
    return [int(token) for token in tokens]


def converted(weights, sizes) -> specs.TransformerSpec:
    """Returns CTranslate2's description of the baseline.

    Args:
        weights: its arrays, in the order that the peers have agreed on.
        sizes: the model's `Sizes`.
    """
    weights = iter(weights)

    def pair():
        return next(weights), next(weights)

    def linear(layer, *pairs):
        # Keras' kernels map from left to right, heads in the middle.
        kernels = [kernel.reshape(-1, bias.size).T for kernel, bias in pairs]
        layer.weight = np.concatenate(kernels)
        layer.bias = np.concatenate([bias.reshape(-1) for _, bias in pairs])

    blocks = {"pre_norm": False, "head_dim": sizes.head}
    encoder = specs.TransformerEncoderSpec(sizes.blocks, sizes.heads, **blocks)
    decoder = specs.TransformerDecoderSpec(sizes.blocks, sizes.heads, **blocks)
    encoder.embeddings[0].weight = next(weights)
    decoder.embeddings.weight = next(weights)
    for side in (encoder, decoder):
        side.position_encodings.encodings = sinusoids(sizes.embedding)
    for layer in (*encoder.layer, *decoder.layer):
        linear(layer.self_attention.linear[0], pair(), pair(), pair())
        linear(layer.self_attention.linear[1], pair())
        parts = [layer.self_attention]
        # A layer of the decoder has attention to the encoder as well.
        if hasattr(layer, "attention"):
            linear(layer.attention.linear[0], pair())
            linear(layer.attention.linear[1], pair(), pair())
            linear(layer.attention.linear[2], pair())
            parts.append(layer.attention)
        linear(layer.ffn.linear_0, pair())
        linear(layer.ffn.linear_1, pair())
        parts.append(layer.ffn)
        for part in parts:
            part.layer_norm.gamma, part.layer_norm.beta = pair()
    linear(decoder.projection, pair())

    spec = specs.TransformerSpec(encoder, decoder)
    spec.config.layer_norm_epsilon = 1e-3
    spec.config.unk_token = str(UNKNOWN)
    spec.config.bos_token = spec.config.decoder_start_token = str(START)
    spec.config.eos_token = str(END)
    source_size = len(encoder.embeddings[0].weight)
    target_size = len(decoder.embeddings.weight)
    spec.register_source_vocabulary(tokens_of(range(source_size)))
    spec.register_target_vocabulary(tokens_of(range(target_size)))
    return spec
