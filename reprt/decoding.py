"""From a trained model to translations."""

import warnings

import numpy as np
from keras import ops

from reprt.layers.masks import PAD_ID
from reprt.models import Memory

EXTRA_TOKENS = 50


def greedy_search(model, source_ids, start_id, end_id, max_tokens=None):
    """Takes the most likely token, again and again, until every sentence has ended.

    Each step decodes the whole prefix of every sentence that has not ended. RePE as
    published could not do with less: each new token changes the mean and variance of
    the target, and with them every earlier position.

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
    found = np.full((source_ids.shape[0], 1 + max_tokens), PAD_ID, dtype="int32")
    found[:, 0] = start_id
    going = np.arange(len(found))  # the rows that have not ended
    with warnings.catch_warnings():
        # Keras wonders at attention over one token, which is how every sentence begins.
        warnings.filterwarnings("ignore", "(?s).*You are using a softmax over axis")
        memory = model.encode(source_ids, training=False)
        for length in range(1, 1 + max_tokens):
            prefix = ops.convert_to_tensor(found[going, :length])
            logits = model.decode(prefix, memory, training=False)
            token = ops.convert_to_numpy(ops.argmax(logits[:, -1], axis=-1))
            found[going, length] = token
            kept = np.flatnonzero(token != end_id)
            if not len(kept):
                break
            if len(kept) < len(going):
                going = going[kept]
                memory = Memory(*(ops.take(part, kept, axis=0) for part in memory[:3]))
    return found[:, : 1 + length]
