"""WordPiece: words into subwords, as TensorFlow's tutorial and the paper do it."""

import collections
import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from reprt.constants import END_ID, PAD_ID, RESERVED, START_ID, UNKNOWN_ID
from reprt.data.rows import Rows
from reprt.files import read_text, write_text

CHUNK = 1024  # sentences handed to TensorFlow at a time


class WordPiece:
    """Turns sentences into ids and back, with a given vocabulary.

    Sentences are lower-cased, stripped of accents and split at spaces and punctuation
    before their words are cut into the longest known pieces (tensorflow-text's
    `BertTokenizer`). Words of a decoded sentence are joined by spaces.

    Args:
        vocabulary: the pieces; the first four are `[PAD] [UNK] [START] [END]`.

    Raises:
        ImportError: without tensorflow-text, from `encode` and `graph`.
        ValueError: if the vocabulary does not begin with the reserved tokens or
            holds a piece twice.

    Example:

    >>> pieces = ["[PAD]", "[UNK]", "[START]", "[END]", "the", "hous", "##es", "."]
    >>> tokenizer = WordPiece(pieces)
    >>> [ids] = tokenizer.encode(["The houses."])
    >>> ids.tolist()  # from [START] to [END]
    [2, 4, 5, 6, 7, 3]
    >>> tokenizer.decode([ids])
    ['the houses .']
    """

    def __init__(self, vocabulary: Sequence[str]):
        _check(vocabulary)
        self.vocabulary = list(vocabulary)

    @functools.cached_property
    def graph(self):
        """tensorflow-text's tokenizer, made when it is first needed."""
        tf, text = _tensorflow_text()
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                self.vocabulary, tf.range(len(self), dtype=tf.int64)
            ),
            default_value=UNKNOWN_ID,
        )
        return text.BertTokenizer(table, lower_case=True, token_out_type=tf.int64)

    def __len__(self):
        return len(self.vocabulary)

    def digest(self) -> str:
        """Returns the sha256 of the vocabulary."""
        return digest(self.vocabulary)

    def encode(self, sentences: Sequence[str]) -> list[np.ndarray]:
        """Returns each sentence's ids, from `[START]` to `[END]`, as int32 arrays."""
        return [ids for rows in self.encode_chunks(sentences) for ids in rows]

    def encode_chunks(
        self, sentences: Sequence[str], longest: int | None = None
    ) -> Iterator[Rows]:
        """Yields the ids of the sentences, of so many at a time as memory always has.

        Args:
            sentences: the sentences.
            longest: the number of ids after which a sentence is cut, `[END]` and all;
                None for not at all.
        """
        tf, _ = _tensorflow_text()
        for chunk in _chunks(sentences):
            ids = self.graph.tokenize(chunk).merge_dims(-2, -1)
            edge = tf.ones((len(chunk), 1), tf.int64)
            ids = tf.concat([START_ID * edge, ids, END_ID * edge], axis=1)[:, :longest]
            flat = tf.cast(ids.values, tf.int32).numpy()
            yield Rows(flat, ids.row_lengths().numpy())

    def decode(self, ids: Iterable[Sequence[int] | np.ndarray]) -> list[str]:
        """Returns the sentence up to the first `[END]` of each row of ids."""
        return [" ".join(self._words(_between_edges(row))) for row in ids]

    def words(self, sentences: Sequence[str]) -> list[str]:
        """Returns sentences as they come back from ids."""
        return self.decode(self.encode(sentences))

    def _words(self, ids: Iterable[int]) -> list[str]:
        """Puts pieces together as tensorflow-text does, but needs nothing of it."""
        words: list[str] = []
        for piece in (self.vocabulary[index] for index in ids):
            if piece.startswith("##") and words:
                words[-1] += piece.removeprefix("##")
            else:
                words.append(piece)
        return words


def digest(vocabulary: Sequence[str]) -> str:
    """Returns the sha256 of the pieces."""
    return hashlib.sha256("\n".join(vocabulary).encode()).hexdigest()


def learn_vocabulary(sentences: Sequence[str], size: int) -> list[str]:
    """Learns a WordPiece vocabulary as TensorFlow's tutorial does.

    Args:
        sentences: the training text of one language.
        size: the size aimed at; small texts give fewer pieces.

    Returns:
        The pieces, reserved tokens first.

    Raises:
        ImportError: without tensorflow-text.

    Example:

    >>> learn_vocabulary(["the houses", "the house", "the mouse"], 100)[:4]
    ['[PAD]', '[UNK]', '[START]', '[END]']
    """
    tf, _ = _tensorflow_text()
    from tensorflow_text.tools.wordpiece_vocab import bert_vocab_from_dataset

    dataset = tf.data.Dataset.from_generator(
        lambda: _chunks(sentences), output_signature=tf.TensorSpec([None], tf.string)
    )
    return bert_vocab_from_dataset.bert_vocab_from_dataset(
        dataset.prefetch(2), size, list(RESERVED), {"lower_case": True}
    )


def cached_vocabulary(
    sentences: Sequence[str],
    size: int,
    folder: Path,
    progress: Callable[[str], None] = lambda text: None,
) -> list[str]:
    """Returns `learn_vocabulary`'s result, kept in `folder` by the text's sha256."""
    sha = hashlib.sha256(f"{size}\n".encode())
    for sentence in sentences:
        sha.update(sentence.encode() + b"\n")
    path = folder / f"{sha.hexdigest()}.txt"
    if not path.exists():
        progress(f"learnt from {len(sentences):,} sentences")
        write_vocabulary(learn_vocabulary(sentences, size), path)
    return read_vocabulary(path)


def write_vocabulary(vocabulary: Iterable[str], path: Path):
    """Writes one piece a line; a kill leaves the whole file or none."""
    write_text(path, "".join(f"{piece}\n" for piece in vocabulary))


def read_vocabulary(path: Path) -> list[str]:
    """Reads what `write_vocabulary` wrote.

    Raises:
        ValueError: if the file is not a vocabulary, naming it.
    """
    try:
        vocabulary = read_text(path).split("\n")[:-1]
        _check(vocabulary)
    except (OSError, ValueError) as error:
        raise ValueError(f"The vocabulary {path} cannot be used: {error}") from error
    return vocabulary


def _check(vocabulary: Sequence[str]):
    if tuple(vocabulary[:4]) != RESERVED:
        raise ValueError(
            f"Expected a vocabulary that begins with {' '.join(RESERVED)}. "
            f"Received one that begins with {' '.join(vocabulary[:4])!r}."
        )
    counts = collections.Counter(vocabulary)
    twice = [piece for piece, count in counts.items() if count > 1]
    if twice:
        raise ValueError(
            f"Expected a vocabulary without repetition. Received {twice[0]!r} twice."
        )


def _between_edges(row) -> list[int]:
    kept = []
    for token in np.asarray(row).tolist():
        if token == END_ID:
            break
        if token not in (PAD_ID, START_ID):
            kept.append(token)
    return kept


def _chunks(sentences: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(sentences), CHUNK):
        yield sentences[start : start + CHUNK]


def _tensorflow_text():
    try:
        import tensorflow as tf
        import tensorflow_text as text
    except ImportError as error:
        raise ImportError(
            "Vocabularies need tensorflow-text: pip install '.[train]'. "
            f"Importing it failed with: {error}"
        ) from error
    return tf, text
