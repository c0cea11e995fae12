"""Which sentences share a batch, in which order, and how they are padded."""

import dataclasses
import functools
from collections.abc import Iterator

import numpy as np

from reprt.constants import PAD_ID
from reprt.data.encoding import EncodedSplit
from reprt.data.rows import Rows

# This many batches are sorted by length together.
POOL = 100


def batches_by_length(lengths, batch_size, equal=False) -> Iterator[np.ndarray]:
    """Yields the indices of batches, the shortest first; if `equal`, of one length."""
    order = np.argsort(lengths, kind="stable")
    groups = [order]
    if equal:
        longer = np.diff(np.asarray(lengths)[order])
        groups = np.split(order, np.flatnonzero(longer) + 1)
    for group in groups:
        for start in range(0, len(group), batch_size):
            yield group[start : start + batch_size]


def pad_rows(rows, length=None) -> np.ndarray:
    """Returns rows of ids as one array, by default as long as the longest of them."""
    if length is None:
        length = max(map(len, rows), default=0)
    ids = np.full((len(rows), length), PAD_ID, dtype="int32")
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
    return ids


def training_order(count: int, seed: int, epoch: int) -> np.ndarray:
    """Returns the order of one epoch, which depends only on the seed and the epoch.

    A run that was interrupted can therefore go on in the middle of an epoch.

    >>> sorted(training_order(4, seed=0, epoch=0).tolist())
    [0, 1, 2, 3]
    """
    return np.random.default_rng((seed, epoch)).permutation(count)


def bucketed_order(lengths, batch_size, seed, epoch) -> np.ndarray:
    """Returns an epoch's order, with like lengths in a batch and a small one last."""
    generator = np.random.default_rng((seed, epoch))
    order = generator.permutation(len(lengths))
    count = len(order) // batch_size
    batches, rest = np.split(order, [count * batch_size])
    for start in range(0, len(batches), POOL * batch_size):
        # A slice is a view, so sorting it sorts its part of the batches.
        pool = batches[start : start + POOL * batch_size]
        pool[:] = pool[np.argsort(lengths[pool], kind="stable")]
    shuffled = generator.permutation(batches.reshape(count, batch_size))
    return np.concatenate([shuffled.ravel(), rest])


def _batch_sizes(count, batch_size):
    """The sizes of the batches of `count` sentences; the last may be smaller."""
    starts = np.arange(0, count, batch_size)
    return np.diff(np.append(starts, count))


@dataclasses.dataclass(frozen=True, eq=False)
class BatchPlan:
    """The batches of every epoch, which depend only on text, settings, seed and epoch.

    With `name="tokens"` the sentences are sorted by length, and each epoch shuffles
    those of one length. A batch takes as many sentences as fit, and the batches come in
    random order. Padding counts: n sentences whose longest side has l tokens are n · l
    tokens, as in fairseq and OpenNMT.

    Attributes:
        lengths: the length of each sentence, such as `EncodedSplit.lengths`.
        size: the most sentences or tokens of a batch.
        name: `"sentences"` or `"tokens"`.
        by_length: whether sentences of similar length share a batch of sentences.
        seed: what shuffles the sentences.
    """

    lengths: np.ndarray
    size: int
    name: str = "sentences"
    by_length: bool = False
    seed: int = 0

    def __post_init__(self):
        longest = self.lengths.max(initial=0)
        if self.name == "tokens" and longest > self.size:
            raise ValueError(
                f"Expected batches of the longest sentence's {longest} tokens or more."
                f" Received: size={self.size}. Raise it, or lower max_tokens in [text]."
            )

    def batches(self, epoch: int | None = None, skip: int = 0) -> Rows:
        """Returns the indices of each batch of an epoch, but for the first `skip`.

        Without an epoch they are for evaluation, in the order of the text or, with
        `"tokens"`, of lengths.
        """
        order = self._order(epoch)
        if self.name == "tokens":
            order = order[np.argsort(self.lengths[order], kind="stable")]
        batches = Rows(order, self._counts)
        if self.name == "tokens" and epoch is not None:
            # A different stream from the order of the sentences.
            generator = np.random.default_rng((self.seed, epoch, 1))
            order = generator.permutation(self.steps)
            batches = Rows.of([batches[number] for number in order])
        start = batches.splits[skip]
        return Rows(batches.ids[start:], batches.lengths[skip:])

    def _order(self, epoch):
        if epoch is None:
            return np.arange(len(self.lengths))
        if self.by_length:
            return bucketed_order(self.lengths, self.size, self.seed, epoch)
        return training_order(len(self.lengths), self.seed, epoch)

    @property
    def steps(self) -> int:
        """The number of batches of an epoch."""
        return len(self._counts)

    @functools.cached_property
    def _counts(self) -> np.ndarray:
        """The number of sentences of each batch, before batches are mixed."""
        if self.name == "sentences":
            return _batch_sizes(len(self.lengths), self.size)
        counts, start = [], 0
        for end, length in enumerate(np.sort(self.lengths).tolist()):
            # This sentence would be the longest of the batch.
            if (end + 1 - start) * length > self.size:
                counts.append(end - start)
                start = end
        if len(self.lengths):
            counts.append(len(self.lengths) - start)
        return np.array(counts, int)


def padded_batch(split, indices, bucket=None):
    """Returns sentences of these indices as `batches` does.

    Each side is padded to its own longest. With `bucket`, a function of a length, both
    are padded to what it returns for the longest of all.
    """
    source, inputs, labels = [], [], []
    for index in indices:
        target = split.target[index]
        source.append(split.source[index])
        inputs.append(target[:-1])
        labels.append(target[1:])
    length = None
    if bucket is not None:
        length = bucket(max(map(len, source + inputs), default=0))
    sides = pad_rows(source, length), pad_rows(inputs, length)
    return sides, pad_rows(labels, length)


def batches(split: EncodedSplit, batch_size: int, order=None):
    """Returns batches for teacher forcing, each padded to its longest sentence.

    Args:
        split: the sentences.
        batch_size: sentences a batch; the last batch may have fewer.
        order: indices of the sentences; None for the order of the text.

    Returns:
        A `tf.data.Dataset` of `((source, target_inputs), labels)`, int32 tensors with
        0 for padding, as `model.fit` takes it. Labels are the inputs shifted by one.

    >>> rows = [np.array([2, 5, 3], "int32"), np.array([2, 5, 6, 3], "int32")]
    >>> [((source, inputs), labels)] = batches(EncodedSplit(rows, rows), batch_size=2)
    >>> labels.numpy().tolist()  # the inputs shifted by one
    [[5, 3, 0], [5, 6, 3]]
    """
    order = np.arange(len(split)) if order is None else np.asarray(order)
    return planned_batches(
        split, Rows(order, _batch_sizes(len(order), batch_size))
    )


def planned_batches(split: EncodedSplit, plan: Rows):
    """Returns the batches of a plan, the indices of each, as `batches` does."""
    import tensorflow as tf

    def gather(indices):
        return tf.nest.flatten(padded_batch(split, indices))

    def batch(indices):
        tensors = tf.numpy_function(gather, [indices], [tf.int32] * 3)
        for tensor in tensors:
            tensor.set_shape((None, None))
        source, inputs, labels = tensors
        return (source, inputs), labels

    dataset = tf.data.Dataset.from_tensor_slices(
        tf.RaggedTensor.from_row_splits(plan.ids, plan.splits)
    )
    # One worker keeps the order, and is far faster than any training step. There is
    # nothing to tune then, and a tuner that sleeps keeps the iterator's end waiting.
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.map(batch).prefetch(2).with_options(options)
