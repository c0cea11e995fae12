"""From a corpus to batches of ids."""

import dataclasses
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from reprt.data.by_length import padded
from reprt.data.corpus import Corpus, Split
from reprt.data.rows import Rows, read_rows, write_rows
from reprt.data.tokenizer import WordPiece, cached_vocabulary
from reprt.progress import duration

POOL = 100  # batches sorted by length together
_IDS_VERSION = 1  # of how text becomes ids, and of their file


@dataclasses.dataclass(frozen=True)
class EncodedSplit:
    """Aligned sentences as ids, `[START]` to `[END]`, in the order of the text."""

    source: Sequence[np.ndarray]
    target: Sequence[np.ndarray]

    def __len__(self):
        return len(self.source)

    def steps(self, batch_size: int) -> int:
        """Returns the number of batches in one pass, the last one perhaps smaller."""
        return -(-len(self) // batch_size)

    @property
    def lengths(self) -> np.ndarray:
        """Returns the number of tokens of each pair's longer input."""
        # Of a target the inputs and the labels each drop one.
        return np.maximum(
            Rows.of(self.source).lengths, Rows.of(self.target).lengths - 1
        )


@dataclasses.dataclass(frozen=True)
class EncodedCorpus:
    """A corpus with its two vocabularies and the ids of its three splits.

    Attributes:
        corpus: the text.
        source_tokenizer, target_tokenizer: its vocabularies.
        train, dev, test: the ids.
        test_words: the targets of the test split, made of the words that a translation
            can be made of: lower-cased, split at punctuation, unknown ones as `[UNK]`.
    """

    corpus: Corpus
    source_tokenizer: WordPiece
    target_tokenizer: WordPiece
    train: EncodedSplit
    dev: EncodedSplit
    test: EncodedSplit
    test_words: Sequence[str]

    def digest(self) -> str:
        """Returns the sha256 of text and vocabularies together."""
        parts = self.corpus, self.source_tokenizer, self.target_tokenizer
        return hashlib.sha256("".join(p.digest() for p in parts).encode()).hexdigest()


def encode(
    corpus: Corpus,
    vocab_size: int,
    max_tokens: int,
    cache: Path,
    progress: Callable[[str], None] = lambda text: None,
) -> EncodedCorpus:
    """Learns both vocabularies on the training text and encodes every split.

    As in TensorFlow's tutorial the source keeps at most `max_tokens` ids and the
    target one more, since its inputs and its labels each drop one. A sentence that is
    cut loses its `[END]`.

    Args:
        corpus: the text.
        vocab_size: the size aimed at, for each vocabulary.
        max_tokens: longest input of either side.
        cache: folder in which vocabularies and ids are kept, so that a text is learnt
            and tokenised once.
        progress: called with what is being done, and how far it is.
    """

    def tokenizer(which, sentences):
        vocabulary = cached_vocabulary(
            sentences,
            vocab_size,
            cache / "vocabularies",
            lambda how: progress(f"vocabulary of the {which}: {how}"),
        )
        return WordPiece(vocabulary)

    source = tokenizer("source", corpus.train.source)
    target = tokenizer("target", corpus.train.target)

    def rows(which, sentences, tokenizer, longest=None):
        return _cached_rows(
            sentences,
            tokenizer,
            longest,
            cache / "ids",
            lambda done: progress(f"tokenising {which}: {done}"),
        )

    def encoded(name: str):
        split: Split = getattr(corpus, name)
        return EncodedSplit(
            rows(f"{name} source", split.source, source, max_tokens),
            rows(f"{name} target", split.target, target, max_tokens + 1),
        )

    return EncodedCorpus(
        corpus=corpus,
        source_tokenizer=source,
        target_tokenizer=target,
        train=encoded("train"),
        dev=encoded("dev"),
        test=encoded("test"),
        test_words=target.decode(rows("test", corpus.test.target, target)),
    )


def _cached_rows(sentences, tokenizer, longest, folder, progress) -> Rows:
    """Returns the sentences' ids, from a file named by all that they depend on."""
    sha = hashlib.sha256(f"{_IDS_VERSION} {tokenizer.digest()} {longest}\n".encode())
    for sentence in sentences:
        data = sentence.encode()
        sha.update(b"%d:%b" % (len(data), data))
    path = folder / f"{sha.hexdigest()}.ids"
    try:
        return read_rows(path)
    except (FileNotFoundError, ValueError):  # not there yet, or damaged
        chunks = tokenizer.encode_chunks(sentences, longest)
        write_rows(_counted(chunks, len(sentences), progress), path)
    return read_rows(path)


def _counted(chunks: Iterable[Rows], total, progress) -> Iterator[Rows]:
    """Passes the rows on, and tells how many have been used and when all will be."""
    begun, done = time.monotonic(), 0
    for rows in chunks:
        yield rows
        done += len(rows)
        left = (time.monotonic() - begun) * (total - done) / done
        progress(f"{done:,}/{total:,} sentences, {duration(left)} left")


def training_order(count: int, seed: int, epoch: int) -> np.ndarray:
    """Returns the order of one epoch: a function of the seed and the epoch alone.

    A run that was interrupted can therefore go on in the middle of an epoch.

    Example:

    >>> sorted(training_order(4, seed=0, epoch=0).tolist())
    [0, 1, 2, 3]
    """
    return np.random.default_rng((seed, epoch)).permutation(count)


def bucketed_order(
    lengths: np.ndarray, batch_size: int, seed: int, epoch: int
) -> np.ndarray:
    """Returns an order of one epoch in which like lengths share a batch.

    This saves padding, and changes training: sentences no longer meet by chance alone.
    As with `training_order` the order is a function of the arguments alone.

    Args:
        lengths: the length of each sentence, such as `EncodedSplit.lengths`.
        batch_size: sentences a batch. One that is not full stays the last, for
            `batches` cuts the order into consecutive runs.
        seed: the training's seed.
        epoch: the epoch.
    """
    generator = np.random.default_rng((seed, epoch))
    order = generator.permutation(len(lengths))
    full = len(order) - len(order) % batch_size
    pools = np.split(order[:full], range(POOL * batch_size, full, POOL * batch_size))
    by_length = [pool[np.argsort(lengths[pool], kind="stable")] for pool in pools]
    mixed = generator.permutation(np.concatenate(by_length).reshape(-1, batch_size))
    return np.concatenate([mixed.ravel(), order[full:]])


def arrays(split: EncodedSplit, chosen, rows: int | None = None, length=None):
    """Returns chosen sentences for teacher forcing, as NumPy arrays padded with 0.

    Args:
        split: the sentences.
        chosen: their indices.
        rows: of the arrays; None for as many as are chosen.
        length: returns the length of both sides from the longest there is; None for
            each side's own.

    Returns:
        `(source, target_inputs), labels`, as `batches` has them.
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
    rows = len(chosen) if rows is None else rows
    source, inputs, labels = (
        padded(side, (rows, columns)) for side, columns in zip(sides, longest)
    )
    return (source, inputs), labels


def batches(split: EncodedSplit, batch_size: int, order=None, skip: int = 0):
    """Returns batches for teacher forcing, each padded to its longest sentence.

    Args:
        split: the sentences.
        batch_size: sentences a batch; the last batch may have fewer.
        order: indices of the sentences; None for the order of the text.
        skip: number of batches to leave out at the start.

    Returns:
        A `tf.data.Dataset` of `((source, target_inputs), labels)`, int32 tensors with
        0 for padding, as `model.fit` takes it. Labels are the inputs moved by one.

    Raises:
        ValueError: if `batch_size` is less than 1.

    Example:

    >>> rows = [np.array([2, 5, 3], "int32"), np.array([2, 5, 6, 3], "int32")]
    >>> [((source, inputs), labels)] = batches(EncodedSplit(rows, rows), batch_size=2)
    >>> labels.numpy().tolist()  # the inputs moved by one
    [[5, 3, 0], [5, 6, 3]]
    """
    import tensorflow as tf

    if batch_size < 1:
        raise ValueError(f"Expected batch_size to be at least 1, got {batch_size}.")
    order = np.arange(len(split)) if order is None else np.asarray(order)
    source, target = Rows.of(split.source).ragged, Rows.of(split.target).ragged

    def batch(indices):
        rows = tf.gather(target, indices)
        inputs, labels = rows[:, :-1].to_tensor(), rows[:, 1:].to_tensor()
        return (tf.gather(source, indices).to_tensor(), inputs), labels

    dataset = tf.data.Dataset.from_tensor_slices(order[skip * batch_size :])
    dataset = dataset.batch(batch_size)
    # One worker keeps the order, and is far faster than any training step. There is
    # nothing to tune then, and a tuner that sleeps keeps the iterator's end waiting.
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.map(batch).prefetch(2).with_options(options)
