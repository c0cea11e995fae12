"""Our own search, over batches of sentences of like length, as `Translator` has it.

The model is the baseline; variants: `repe`, as published, which decodes the whole
prefix at every step, and `repe-causal`, which does not see ahead and is cached. `jax`
and `repe-causal-jax` are the two that are cached, on JAX.
"""

from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import ops
from text import END, START

import reprt
from reprt.data.batching import padded
from reprt.decoding.beam_search import BeamSearch
from reprt.runs.run_folder import RunFolder

VARIANTS = {
    "": "baseline",
    "jax": "baseline",
    "repe": "repe",
    "repe-causal": "repe-causal",
    "repe-causal-jax": "repe-causal",
}
NEVER = -1e9  # a bias that leaves no probability


class Peer:
    """`BeamSearch`, ranked by probability alone."""

    packages = ("reprt", "keras", "tensorflow")

    def __init__(self, settings):
        tf.config.threading.set_intra_op_parallelism_threads(settings.threads)
        keras.utils.set_random_seed(settings.seed)
        self.batch_size = settings.batch_size
        self.searches = {}
        if settings.run:
            self.model = RunFolder(Path(settings.run)).load_model()
        else:
            name = VARIANTS[settings.variant]
            self.model = reprt.models.build(name, *settings.vocab_sizes)
        if settings.weights:
            variables = self.model.trainable_variables
            for variable, array in zip(variables, settings.load(), strict=True):
                variable.assign(array)
        bias = np.array(self.model.output_dense.bias)
        bias[list(settings.forbidden)] = NEVER
        self.model.output_dense.bias.assign(bias)

    def weights(self):
        return [np.array(variable) for variable in self.model.trainable_variables]

    def translate(self, source, beam_size, max_tokens):
        search = self._search(beam_size, max_tokens)
        if self.batch_size == 1:  # one after the other, as its user waits for it
            return [search(ids[None])[0][0].ids for ids in source]
        found = [()] * len(source)
        for chosen, hypotheses in search.in_batches(source, self.batch_size):
            for index, (best, *_) in zip(chosen, hypotheses):
                found[index] = best.ids
        return found

    def scores(self, source, target):
        inputs = padded(source), padded([row[:-1] for row in target])
        logs = np.array(ops.log_softmax(self.model(inputs, training=False)))
        return [of[range(len(row) - 1), row[1:]] for of, row in zip(logs, target)]

    def _search(self, *sizes):
        """A search of these sizes, kept for its graphs."""
        if sizes not in self.searches:
            beam_size, max_tokens = sizes
            self.searches[sizes] = BeamSearch(
                self.model,
                START,
                END,
                beam_size=beam_size,
                length_penalty=0,
                max_tokens=max_tokens,
            )
        return self.searches[sizes]
