"""CTranslate2, an engine for inference in C++, in float32 with our weights.

It has all that the baseline has: heads of any width (`head_dim`), normalisation after
the residual, Keras' epsilon, and our table of positions. So the model is the same, but
for rounding. Its tokens are strings; ours are called by their ids.

All threads work on one batch, or in the variant `parallel` each on a batch of its own.
In the variants `mkl` and `parallel-mkl` its products are those of MKL, not of oneDNN.
"""

import os
import tempfile

import ctranslate2
import numpy as np
from ctranslate2.specs import (
    TransformerDecoderSpec,
    TransformerEncoderSpec,
    TransformerSpec,
)
from peers.settings import SIZES
from text import END, START

UNKNOWN = 1
POSITIONS = 2048
# Ranks by probability, as ours does. At 0 the search would be another: it ends with a
# hypothesis that leads, and not when there are as many as beams.
LENGTH_PENALTY = 1e-9


class Peer:
    """`Translator`, which sorts by length and makes batches itself."""

    packages = ("ctranslate2",)

    def __init__(self, settings):
        self.batch_size = settings.batch_size
        variant = settings.variant.split("-")
        if "mkl" in variant:
            os.environ["CT2_USE_MKL"] = "1"  # read when a translator is made
        threads = {"inter_threads": 1, "intra_threads": settings.threads}
        if "parallel" in variant:
            threads = {"inter_threads": settings.threads, "intra_threads": 1}
        with tempfile.TemporaryDirectory() as folder:
            spec = converted(settings.load(), SIZES["baseline"])
            spec.validate()
            spec.save(folder)
            self.translator = ctranslate2.Translator(
                folder, device="cpu", compute_type="float32", **threads
            )

    def translate(self, source, beam_size, max_tokens):
        results = self.translator.translate_batch(
            [_tokens(ids) for ids in source],
            max_batch_size=self.batch_size,
            beam_size=beam_size,
            length_penalty=LENGTH_PENALTY,
            min_decoding_length=0,  # ours may find that nothing is likeliest
            max_decoding_length=max_tokens,
        )
        return [[int(token) for token in found.hypotheses[0]] for found in results]

    def scores(self, source, target):
        # It adds start and end itself.
        results = self.translator.score_batch(
            [_tokens(ids) for ids in source], [_tokens(row[1:-1]) for row in target]
        )
        return [np.array(found.log_probs) for found in results]


def converted(weights, sizes) -> TransformerSpec:
    """Returns CTranslate2's description of our baseline.

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

    def self_attention(layer):
        linear(layer.linear[0], pair(), pair(), pair())
        linear(layer.linear[1], pair())

    def cross_attention(layer):
        linear(layer.linear[0], pair())
        linear(layer.linear[1], pair(), pair())
        linear(layer.linear[2], pair())

    def rest(layer, *normalised):
        linear(layer.ffn.linear_0, pair())
        linear(layer.ffn.linear_1, pair())
        for part in normalised:
            part.layer_norm.gamma, part.layer_norm.beta = pair()

    options = {"pre_norm": False, "head_dim": sizes.head}
    encoder = TransformerEncoderSpec(sizes.blocks, sizes.heads, **options)
    decoder = TransformerDecoderSpec(sizes.blocks, sizes.heads, **options)
    words = (encoder.embeddings[0], decoder.embeddings)
    for side, embeddings in zip((encoder, decoder), words):
        embeddings.weight = next(weights)
        side.position_encodings.encodings = positions(sizes.embedding)
    for layer in encoder.layer:
        self_attention(layer.self_attention)
        rest(layer, layer.self_attention, layer.ffn)
    for layer in decoder.layer:
        self_attention(layer.self_attention)
        cross_attention(layer.attention)
        rest(layer, layer.self_attention, layer.attention, layer.ffn)
    linear(decoder.projection, pair())

    spec = TransformerSpec(encoder, decoder)
    spec.config.layer_norm_epsilon = 1e-3
    spec.config.unk_token = str(UNKNOWN)
    spec.config.bos_token = spec.config.decoder_start_token = str(START)
    spec.config.eos_token = str(END)
    source, target = (_tokens(range(len(embeddings.weight))) for embeddings in words)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    return spec


def positions(width):
    """Returns the table of positions: sines in the left half, cosines in the right."""
    frequency = 10000 ** -(np.arange(width // 2) / (width // 2))
    angle = np.arange(POSITIONS)[:, None] * frequency
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=1).astype("float32")


def _tokens(ids):
    return [str(index) for index in ids]
