"""From a trained model to translations."""

import warnings

import numpy as np
from keras import ops

from reprt.layers.masks import PAD_ID

EXTRA_TOKENS = 50


def greedy_search(model, source_ids, start_id, end_id, max_tokens=None):
    """Takes the most likely token, again and again, until every sentence has ended.

    The whole prefix is decoded at each step. RePE as published could not do with
    less: each new token changes the mean and variance of the target, and with them
    every earlier position.

    Args:
        model: a `reprt.models.Transformer`.
        source_ids: integer array `(batch, sources)`, 0 for padding.
        start_id: the id that every translation begins with.
        end_id: the id that ends one.
        max_tokens: longest translation. Defaults to the source's length plus 50, as
            in the original Transformer.

    Returns:
        int32 array `(batch, targets)` that begins with `start_id`; 0 follows
        `end_id`.

    Example:

    >>> import keras, reprt
    >>> model = reprt.models.build("repe", source_vocab_size=9, target_vocab_size=9)
    >>> source = keras.ops.array([[2, 5, 3]])
    >>> ids = reprt.decoding.greedy_search(model, source, 2, 3, max_tokens=4)
    >>> ids[0, 0].item()
    2
    """
    source_ids = ops.convert_to_tensor(source_ids)
    if max_tokens is None:
        max_tokens = source_ids.shape[1] + EXTRA_TOKENS
    prefix = np.full((source_ids.shape[0], 1), start_id, dtype="int32")
    ended = np.zeros(len(prefix), dtype=bool)
    with warnings.catch_warnings():
        # Keras wonders at attention over one token, which is how every sentence begins.
        warnings.filterwarnings("ignore", "(?s).*You are using a softmax over axis")
        memory = model.encode(source_ids, training=False)
        for _ in range(max_tokens):
            logits = model.decode(ops.convert_to_tensor(prefix), memory, training=False)
            best = ops.convert_to_numpy(ops.argmax(logits[:, -1], axis=-1))
            token = np.where(ended, PAD_ID, best).astype("int32")
            prefix = np.concatenate([prefix, token[:, None]], axis=1)
            ended |= token == end_id
            if ended.all():
                break
    return prefix
