"""CTranslate2, an engine for inference in C++, in float32 with our weights.

All threads work on one batch, or in the variant `parallel` each on a batch of its own.
In the variants `mkl` and `parallel-mkl` its products are those of MKL, not of oneDNN.
"""

import os
import tempfile

import ctranslate2
import numpy as np
from peers.ctranslate2_model import converted, ids_of, tokens_of

# This ranks by probability, as ours does. At 0 the search would be another: it would
# end with a hypothesis that leads, and not when there are as many as beams.
LENGTH_PENALTY = 1e-9


class Peer:
    """`Translator`, which sorts by length and makes batches itself."""

    packages = ("ctranslate2",)

    def __init__(self, settings):
        self.settings = settings
        variants = settings.variant.split("-")
        if "mkl" in variants:
            # The variable is read when a translator is made.
            os.environ["CT2_USE_MKL"] = "1"
        threads = os.cpu_count()
        if "parallel" in variants:
            self.threads = {"inter_threads": threads, "intra_threads": 1}
        else:
            self.threads = {"inter_threads": 1, "intra_threads": threads}

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
            [tokens_of(ids) for ids in source],
            max_batch_size=self.settings.batch_size,
            beam_size=beam_size,
            length_penalty=LENGTH_PENALTY,
            # Ours may find that an empty translation is likeliest.
            min_decoding_length=0,
            max_decoding_length=max_tokens,
        )
        return [ids_of(result.hypotheses[0]) for result in results]

    def scores(self, source, target):
        # The translator adds start and end itself.
        results = self.translator.score_batch(
            [tokens_of(ids) for ids in source],
            [tokens_of(ids[1:-1]) for ids in target],
        )
        return [np.array(result.log_probs) for result in results]
