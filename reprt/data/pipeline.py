"""From a corpus to batches of ids."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reprt.data.corpus import Corpus, Split
from reprt.data.tokenizer import WordPiece, cached_vocabulary


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


@dataclasses.dataclass(frozen=True)
class EncodedCorpus:
    """A corpus with its two vocabularies and the ids of its three splits."""

    corpus: Corpus
    source_tokenizer: WordPiece
    target_tokenizer: WordPiece
    train: EncodedSplit
    dev: EncodedSplit
    test: EncodedSplit


def encode(
    corpus: Corpus, vocab_size: int, max_tokens: int, cache: Path
) -> EncodedCorpus:
    """Learns both vocabularies on the training text and encodes every split.

    As in TensorFlow's tutorial the source keeps at most `max_tokens` ids and the
    target one more, since its inputs and its labels each drop one. A sentence that is
    cut loses its `[END]`.

    Args:
        corpus: the text.
        vocab_size: the size aimed at, for each vocabulary.
        max_tokens: longest input of either side.
        cache: folder in which learned vocabularies are kept.
    """

    def tokenizer(sentences):
        return WordPiece(cached_vocabulary(sentences, vocab_size, cache))

    source = tokenizer(corpus.train.source)
    target = tokenizer(corpus.train.target)

    def encoded(split: Split):
        return EncodedSplit(
            [ids[:max_tokens] for ids in source.encode(split.source)],
            [ids[: max_tokens + 1] for ids in target.encode(split.target)],
        )

    return EncodedCorpus(
        corpus=corpus,
        source_tokenizer=source,
        target_tokenizer=target,
        train=encoded(corpus.train),
        dev=encoded(corpus.dev),
        test=encoded(corpus.test),
    )


def training_order(count: int, seed: int, epoch: int) -> np.ndarray:
    """Returns the order of one epoch: a function of the seed and the epoch alone.

    A run that was interrupted can therefore go on in the middle of an epoch.
    """
    return np.random.default_rng((seed, epoch)).permutation(count)


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
    """
    import tensorflow as tf

    if batch_size < 1:
        raise ValueError(f"Expected batch_size to be at least 1, got {batch_size}.")
    order = np.arange(len(split)) if order is None else np.asarray(order)
    source, target = _ragged(split.source), _ragged(split.target)

    def batch(indices):
        rows = tf.gather(target, indices)
        inputs, labels = rows[:, :-1].to_tensor(), rows[:, 1:].to_tensor()
        return (tf.gather(source, indices).to_tensor(), inputs), labels

    dataset = tf.data.Dataset.from_tensor_slices(order[skip * batch_size :])
    dataset = dataset.batch(batch_size)
    # One worker keeps the order, and is far faster than any training step.
    return dataset.map(batch).prefetch(2)


def _ragged(rows: Sequence[np.ndarray]):
    import tensorflow as tf

    lengths = [len(row) for row in rows]
    return tf.RaggedTensor.from_row_lengths(np.concatenate(rows), lengths)
