"""A batch plan: which sentences make each batch of an epoch."""

import dataclasses
import functools

import numpy as np

from reprt.data.batching import bucketed_order, sizes, training_order
from reprt.data.rows import Rows


@dataclasses.dataclass(frozen=True, eq=False)
class BatchPlan:
    """The batches of every epoch, which depend only on text, settings, seed and epoch.

    A training that was interrupted can therefore go on in the middle of an epoch. All
    epochs have the same number of batches.

    With `name="tokens"` the sentences are sorted by length, and each epoch shuffles
    those of one length. A batch takes as many sentences as fit, and the batches come in
    random order. Padding counts: n sentences whose longest side has l tokens are n · l
    tokens, as in fairseq and OpenNMT.

    Args:
        lengths: of each sentence, such as `EncodedSplit.lengths`.
        size: the most sentences or tokens of a batch.
        name: `"sentences"` or `"tokens"`.
        by_length: whether sentences of similar length share a batch.
        seed: the training's seed.

    Raises:
        ValueError: if a sentence has more tokens than a batch may have.

    Example:

    >>> plan = BatchPlan(np.array([3, 1, 4, 1, 5]), size=6, name="tokens")
    >>> [batch.tolist() for batch in plan.batches()]
    [[1, 3], [0], [2], [4]]
    >>> [batch.tolist() for batch in plan.batches(epoch=0)]
    [[4], [0], [2], [3, 1]]
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
                "Expected batches of as many tokens as the longest sentence has, "
                f"{longest}, or more. Received: size={self.size}. Make the batches "
                "larger, or 'max_tokens' in [text] smaller."
            )

    def batches(self, epoch: int | None = None, skip: int = 0) -> Rows:
        """Returns the indices of each batch of an epoch.

        Args:
            epoch: its number; None for what is measured and not trained on. Its
                batches are in the order of the text or, with `"tokens"`, of lengths.
            skip: number of batches to leave out at the start.
        """
        order, counts = self._epoch(epoch)
        return Rows(order[counts[:skip].sum() :], counts[skip:])

    def _epoch(self, epoch: int | None) -> tuple[np.ndarray, np.ndarray]:
        """The sentences of an epoch in their order, and how many make each batch."""
        count = len(self.lengths)
        if epoch is None:
            order = np.arange(count)
        elif self.by_length:
            order = bucketed_order(self.lengths, self.size, self.seed, epoch)
        else:
            order = training_order(count, self.seed, epoch)
        if self.name == "sentences":
            return order, self._counts
        order = order[np.argsort(self.lengths[order], kind="stable")]
        if epoch is None:
            return order, self._counts
        batched = Rows(order, self._counts)
        # A different stream from the order of the sentences.
        mixed = np.random.default_rng((self.seed, epoch, 1)).permutation(self.steps)
        return np.concatenate([batched[each] for each in mixed]), self._counts[mixed]

    @property
    def steps(self) -> int:
        """The number of batches of an epoch."""
        return len(self._counts)

    def most(self, length: int) -> int:
        """Returns the most sentences of a batch whose longest has that length."""
        return self.size if self.name == "sentences" else self.size // length

    @functools.cached_property
    def _counts(self) -> np.ndarray:
        """The number of sentences of each batch, before batches are mixed."""
        if self.name == "sentences":
            return sizes(len(self.lengths), self.size)
        lengths, counts, start = np.sort(self.lengths), [], 0
        while start < len(lengths):
            few = lengths[start : start + self.most(lengths[start])]
            fits = few * np.arange(1, len(few) + 1) <= self.size
            counts.append(int(np.count_nonzero(fits)))  # those are the first
            start += counts[-1]
        return np.array(counts, int)
