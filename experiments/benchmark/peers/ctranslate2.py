"""CTranslate2, an engine for inference in C++, in float32 with our weights.

All threads work on one batch, or in the variant `parallel` each on a batch of its own.
In the variants `mkl` and `parallel-mkl` its products are those of MKL, not of oneDNN.
"""

import os
import tempfile

import ctranslate2
import numpy as np
from peers.ctranslate2_model import converted, tokens_of

# Ranks by probability, as ours does. At 0 the search would be another: it ends with a
# hypothesis that leads, and not when there are as many as beams.
LENGTH_PENALTY = 1e-9


class Peer:
    """`Translator`, which sorts by length and makes batches itself."""

    packages = ("ctranslate2",)

    def __init__(self, settings):
        self.settings, variant = settings, settings.variant.split("-")
        if "mkl" in variant:
            os.environ["CT2_USE_MKL"] = "1"  # read when a translator is made
        threads = os.cpu_count()
        inter, intra = (threads, 1) if "parallel" in variant else (1, threads)
        self.threads = {"inter_threads": inter, "intra_threads": intra}

    def load(self, weights):
        with tempfile.TemporaryDirectory() as folder:
            spec = converted(weights, self.settings.sizes)
            spec.validate()
            spec.save(folder)
            self.translator = ctranslate2.Translator(
                folder, device="cpu", compute_type="float32", **self.threads
            )

    def translate(self, source, beam_size, max_tokens):
        results = self.translator.translate_batch(
            list(map(tokens_of, source)),
            max_batch_size=self.settings.batch_size,
            beam_size=beam_size,
            length_penalty=LENGTH_PENALTY,
            min_decoding_length=0,  # ours may find that nothing is likeliest
            max_decoding_length=max_tokens,
        )
        return [
            [int(token) for token in found.hypotheses[0]] for found in results
        ]

    def scores(self, source, target):
        # It adds start and end itself.
        results = self.translator.score_batch(
            list(map(tokens_of, source)),
            [tokens_of(row[1:-1]) for row in target],
        )
        return [np.array(found.log_probs) for found in results]
