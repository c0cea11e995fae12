"""Our own search, over batches of sentences of like length, as `Translator` has it.

The model is the baseline; variants: `repe`, as published, which decodes the whole
prefix at every step, and `repe-causal`, which does not see ahead and is cached. `jax`,
`xla`, `repe-causal-jax` and `repe-causal-xla` are the two that are cached, on JAX and
compiled by TensorFlow.
"""

import re

import keras
import numpy as np
from keras import ops
from peers.keras_model import KerasModel
from peers.settings import SEED
from text import END, PAD, START

import reprt
from reprt.data.batching import pad_rows
from reprt.decoding.beam_search import BeamSearch

# A bias that leaves no probability.
NEVER = -1e9


class Peer(KerasModel):
    """`BeamSearch`, ranked by probability alone; no translation ends by itself."""

    def __init__(self, settings):
        keras.utils.set_random_seed(SEED)
        self.batch_size = settings.batch_size
        # Searches are kept for their graphs.
        self.searches = {}
        name = re.sub("-?(jax|xla)$", "", settings.variant) or "baseline"
        self.jit_compile = settings.variant.endswith("xla")
        self.model = reprt.models.build(name, *settings.vocab_sizes)
        bias = np.array(self.model.output_dense.bias)
        bias[[PAD, START, END]] = NEVER
        self.model.output_dense.bias.assign(bias)

    def translate(self, source, beam_size, max_tokens):
        key = beam_size, max_tokens
        if key not in self.searches:
            self.searches[key] = BeamSearch(
                self.model,
                START,
                END,
                beam_size,
                length_penalty=0,
                max_tokens=max_tokens,
                jit_compile=self.jit_compile,
            )
        search = self.searches[key]
        # They are translated one after the other, as a user waits for each.
        if self.batch_size == 1:
            return [search(ids[None])[0][0].ids for ids in source]
        translations = [()] * len(source)
        for indices, results in search.in_batches(source, self.batch_size):
            for index, hypotheses in zip(indices, results):
                translations[index] = hypotheses[0].ids
        return translations

    def scores(self, source, target):
        inputs = pad_rows(source), pad_rows([row[:-1] for row in target])
        logits = self.model(inputs, training=False)
        scores = []
        for table, row in zip(np.array(ops.log_softmax(logits)), target):
            scores.append(table[range(len(row) - 1), row[1:]])
        return scores
