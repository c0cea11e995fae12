"""Which sentences share a batch, in which order, and how they are padded."""

import dataclasses
import functools
from collections.abc import Iterator, Sequence

import numpy as np

from reprt.constants import PAD_ID
from reprt.data.encoding import EncodedSplit
from reprt.data.rows import Rows

POOL = 100  # batches sorted by length together


def by_length(
    lengths: Sequence[int], batch_size: int, equal: bool = False
) -> Iterator[np.ndarray]:
    """Yields the indices of batches, the shortest first; if `equal`, of one length."""
    order = np.argsort(lengths, kind="stable")
    steps = np.diff(np.asarray(lengths)[order])
    for group in np.split(order, np.flatnonzero(steps * equal) + 1):
        for start in range(0, len(group), batch_size):
            yield group[start : start + batch_size]


def padded(
    rows: Sequence[Sequence[int] | np.ndarray], length: int | None = None
) -> np.ndarray:
    """Returns rows of ids as one array, by default as long as the longest of them."""
    if length is None:
        length = max(map(len, rows), default=0)
    ids = np.full((len(rows), length), PAD_ID, dtype="int32")
    for into, row in zip(ids, rows):
        into[: len(row)] = row
    return ids


def training_order(count: int, seed: int, epoch: int) -> np.ndarray:
    """Returns the order of one epoch, which depends only on the seed and the epoch.

    A run that was interrupted can therefore go on in the middle of an epoch.

    >>> sorted(training_order(4, seed=0, epoch=0).tolist())
    [0, 1, 2, 3]
    """
    return np.random.default_rng((seed, epoch)).permutation(count)


def bucketed_order(
    lengths: np.ndarray, batch_size: int, seed: int, epoch: int
) -> np.ndarray:
    """Returns an epoch's order, with like lengths in a batch and a small one last."""
    generator = np.random.default_rng((seed, epoch))
    order = generator.permutation(len(lengths))
    full = len(order) - len(order) % batch_size
    pools = np.split(
        order[:full], range(POOL * batch_size, full, POOL * batch_size)
    )
    ordered = [pool[np.argsort(lengths[pool], kind="stable")] for pool in pools]
    mixed = generator.permutation(
        np.concatenate(ordered).reshape(-1, batch_size)
    )
    return np.concatenate([mixed.ravel(), order[full:]])


def _sizes(count: int, batch_size: int) -> np.ndarray:
    """The sizes of the batches of `count` sentences; the last may be smaller."""
    return np.diff([*range(0, count, batch_size), count])


@dataclasses.dataclass(frozen=True, eq=False)
class BatchPlan:
    """The batches of every epoch, which depend only on text, settings, seed and epoch.

    With `name="tokens"` the sentences are sorted by length, and each epoch shuffles
    those of one length. A batch takes as many sentences as fit, and the batches come in
    random order. Padding counts: n sentences whose longest side has l tokens are n · l
    tokens, as in fairseq and OpenNMT.
    """

    lengths: np.ndarray  # of each sentence, such as `EncodedSplit.lengths`
    size: int  # the most sentences or tokens of a batch
    name: str = "sentences"
    by_length: bool = False  # whether sentences of similar length share a batch
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
        count, counts = len(self.lengths), self._counts
        if epoch is None:
            order = np.arange(count)
        elif self.by_length:
            order = bucketed_order(self.lengths, self.size, self.seed, epoch)
        else:
            order = training_order(count, self.seed, epoch)
        if self.name == "tokens":
            order = order[np.argsort(self.lengths[order], kind="stable")]
        if self.name == "tokens" and epoch is not None:
            batched = Rows(order, counts)
            # A different stream from the order of the sentences.
            mixed = np.random.default_rng((self.seed, epoch, 1)).permutation(
                self.steps
            )
            order, counts = (
                np.concatenate([batched[n] for n in mixed]),
                counts[mixed],
            )
        return Rows(order[counts[:skip].sum() :], counts[skip:])

    @property
    def steps(self) -> int:
        """The number of batches of an epoch."""
        return len(self._counts)

    @functools.cached_property
    def _counts(self) -> np.ndarray:
        """The number of sentences of each batch, before batches are mixed."""
        if self.name == "sentences":
            return _sizes(len(self.lengths), self.size)
        lengths, counts, start = np.sort(self.lengths), [], 0
        while start < len(lengths):
            few = lengths[start : start + self.size // lengths[start]]
            fits = few * np.arange(1, len(few) + 1) <= self.size
            counts.append(int(np.count_nonzero(fits)))  # those are the first
            start += counts[-1]
        return np.array(counts, int)


def arrays(split: EncodedSplit, chosen, length=None):
    """Returns chosen sentences as `batches` does.

    Each side is padded to its own longest, or both to `length` of the longest of all.
    """
    source = [split.source[index] for index in chosen]
    target = [split.target[index] for index in chosen]
    inputs, labels = [row[:-1] for row in target], [row[1:] for row in target]
    if length is not None:
        length = length(max(map(len, [*source, *inputs]), default=0))
    return (padded(source, length), padded(inputs, length)), padded(
        labels, length
    )


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
    return planned_batches(split, Rows(order, _sizes(len(order), batch_size)))


def planned_batches(split: EncodedSplit, plan: Rows):
    """Returns the batches of a plan, the indices of each, as `batches` does."""
    import tensorflow as tf

    def gather(chosen):
        return tf.nest.flatten(arrays(split, chosen))

    def batch(indices):
        sides = tf.numpy_function(gather, [indices], [tf.int32] * 3)
        source, inputs, labels = (
            tf.ensure_shape(each, (None, None)) for each in sides
        )
        return (source, inputs), labels

    dataset = tf.data.Dataset.from_tensor_slices(
        tf.RaggedTensor.from_row_splits(plan.ids, plan.splits)
    )
    # One worker keeps the order, and is far faster than any training step. There is
    # nothing to tune then, and a tuner that sleeps keeps the iterator's end waiting.
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.map(batch).prefetch(2).with_options(options)
