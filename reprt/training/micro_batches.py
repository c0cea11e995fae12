"""The same batch in parts of like length, so that little of the work is padding.

A batch of shuffled sentences is padded to its longest, and most of it is padding. The
sums over its tokens, and their gradients, are the same when the batch is sorted by
length, cut into parts, and each part padded only to its own longest sentence.
"""

import tensorflow as tf


def sum_over_parts(function, batch, parts: int, initial):
    """Returns `initial` plus the sum of `function(part)` over the parts of a batch.

    Args:
        function: from `((source, target), labels)` to a structure of tensors that are
            sums over its tokens.
        batch: `((source, target), labels)`, ids with padding at the end alone.
        parts: number of parts. With 1 the batch is left as it is, padding included.
        initial: zeros of the structure that `function` returns.
    """
    if parts == 1:
        return tf.nest.map_structure(tf.add, initial, function(batch))
    (source, target), labels = batch
    source_lengths = tf.math.count_nonzero(source, axis=1, dtype=tf.int32)
    target_lengths = tf.math.count_nonzero(target, axis=1, dtype=tf.int32)
    order = tf.argsort(tf.maximum(source_lengths, target_lengths), stable=True)
    rows = tf.shape(order)[0]
    size = tf.maximum(-(-rows // parts), 1)

    def add_part(total, start):
        chosen = order[start : start + size]
        sources = tf.reduce_max(tf.gather(source_lengths, chosen))
        targets = tf.reduce_max(tf.gather(target_lengths, chosen))
        part = (
            tf.gather(source, chosen)[:, :sources],
            tf.gather(target, chosen)[:, :targets],
        ), tf.gather(labels, chosen)[:, :targets]
        return tf.nest.map_structure(tf.add, total, function(part))

    # One part after the other: side by side they would need the memory of the whole.
    starts = tf.range(0, rows, size)
    return tf.foldl(add_part, starts, initial, parallel_iterations=1)
