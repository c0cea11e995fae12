"""Which sentences share a batch, in which order, and how they are padded."""

from collections.abc import Iterator, Sequence

import numpy as np

from reprt.constants import PAD_ID
from reprt.data.encoding import EncodedSplit
from reprt.data.rows import Rows

POOL = 100  # batches sorted by length together


def by_length(
    lengths: Sequence[int], batch_size: int, equal: bool = False
) -> Iterator[np.ndarray]:
    """Yields the indices of batches, the shortest sentences first.

    With `equal` the sentences of a batch have the very same length.
    """
    order = np.argsort(lengths, kind="stable")
    steps = np.diff(np.asarray(lengths)[order])
    for group in np.split(order, np.flatnonzero(steps * equal) + 1):
        for start in range(0, len(group), batch_size):
            yield group[start : start + batch_size]


def padded(
    rows: Sequence[Sequence[int] | np.ndarray], shape: tuple[int, int] | None = None
) -> np.ndarray:
    """Returns rows of ids as one array, by default the smallest, with 0 behind them."""
    shape = shape or (len(rows), max(map(len, rows), default=0))
    ids = np.full(shape, PAD_ID, dtype="int32")
    for into, row in zip(ids, rows):
        into[: len(row)] = row
    return ids


def training_order(count: int, seed: int, epoch: int) -> np.ndarray:
    """Returns the order of one epoch, which depends only on the seed and the epoch.

    A run that was interrupted can therefore go on in the middle of an epoch.

    Example:

    >>> sorted(training_order(4, seed=0, epoch=0).tolist())
    [0, 1, 2, 3]
    """
    return np.random.default_rng((seed, epoch)).permutation(count)


def bucketed_order(
    lengths: np.ndarray, batch_size: int, seed: int, epoch: int
) -> np.ndarray:
    """Returns an order of one epoch in which similar lengths share a batch.

    This saves padding, and changes training: batches are no longer random. As with
    `training_order` the order depends only on the arguments. A batch that is not full
    stays the last, because `batches` cuts the order into consecutive runs.
    """
    generator = np.random.default_rng((seed, epoch))
    order = generator.permutation(len(lengths))
    full = len(order) - len(order) % batch_size
    pools = np.split(order[:full], range(POOL * batch_size, full, POOL * batch_size))
    ordered = [pool[np.argsort(lengths[pool], kind="stable")] for pool in pools]
    mixed = generator.permutation(np.concatenate(ordered).reshape(-1, batch_size))
    return np.concatenate([mixed.ravel(), order[full:]])


def sizes(count: int, batch_size: int) -> np.ndarray:
    """Returns the sizes of the batches of `count` sentences; the last may be smaller.

    >>> sizes(7, batch_size=3).tolist()
    [3, 3, 1]
    """
    found = np.full(-(-count // batch_size), batch_size)
    found[-1:] -= -count % batch_size
    return found


def arrays(split: EncodedSplit, chosen, length=None):
    """Returns chosen sentences as `batches` has them, in NumPy arrays.

    A function `length` gives the length of both sides from the longest there is;
    without it each side has its own.
    """
    target = [split.target[index] for index in chosen]
    sides = (
        [split.source[index] for index in chosen],
        [row[:-1] for row in target],
        [row[1:] for row in target],
    )
    longest = [max(map(len, side), default=0) for side in sides]
    if length is not None:
        longest = [length(max(longest))] * 3
    source, inputs, labels = (
        padded(side, (len(chosen), columns)) for side, columns in zip(sides, longest)
    )
    return (source, inputs), labels


def batches(split: EncodedSplit, batch_size: int, order=None):
    """Returns batches for teacher forcing, each padded to its longest sentence.

    Args:
        split: the sentences.
        batch_size: sentences a batch; the last batch may have fewer.
        order: indices of the sentences; None for the order of the text.

    Returns:
        A `tf.data.Dataset` of `((source, target_inputs), labels)`, int32 tensors with
        0 for padding, as `model.fit` takes it. Labels are the inputs moved by one.

    Example:

    >>> rows = [np.array([2, 5, 3], "int32"), np.array([2, 5, 6, 3], "int32")]
    >>> [((source, inputs), labels)] = batches(EncodedSplit(rows, rows), batch_size=2)
    >>> labels.numpy().tolist()  # the inputs moved by one
    [[5, 3, 0], [5, 6, 3]]
    """
    order = np.arange(len(split)) if order is None else np.asarray(order)
    return planned_batches(split, Rows(order, sizes(len(order), batch_size)))


def planned_batches(split: EncodedSplit, plan: Rows):
    """Returns the batches of a plan, as `batches` does.

    Args:
        split: the sentences. TensorFlow keeps them as long as the process lives.
        plan: the indices of each batch, such as `BatchPlan.batches` returns.
    """
    import tensorflow as tf

    def gather(chosen):
        (source, inputs), labels = arrays(split, chosen)
        return source, inputs, labels

    def batch(indices):
        sides = tf.numpy_function(gather, [indices], [tf.int32] * 3)
        source, inputs, labels = (tf.ensure_shape(each, (None, None)) for each in sides)
        return (source, inputs), labels

    dataset = tf.data.Dataset.from_tensor_slices(
        tf.RaggedTensor.from_row_splits(plan.ids, plan.splits)
    )
    # One worker keeps the order, and is far faster than any training step. There is
    # nothing to tune then, and a tuner that sleeps keeps the iterator's end waiting.
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.map(batch).prefetch(2).with_options(options)
