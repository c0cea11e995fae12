"""WordPiece: words into subwords, as TensorFlow's tutorial and the paper do it."""

import collections
import functools
import hashlib
import io
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from reprt.constants import END_ID, START_ID, UNKNOWN_ID
from reprt.cores import in_threads
from reprt.data.corpora.lines import decode_lines
from reprt.data.rows import Rows
from reprt.data.tokenizers.spacing import RULES, detokenize_words
from reprt.data.tokenizers.tokenizer import (
    COVERAGE,
    Tokenizer,
    VocabularySettings,
    check_reserved,
    chunks,
    tensorflow_text,
)
from reprt.data.tokenizers.wordpiece_learner import learn_pieces

# It changes whenever text becomes another vocabulary.
_LEARNING_VERSION = 2
# This many characters have a piece at least, if the text has as many.
FEWEST_CHARACTERS = 1000
# Words of more characters are learnt in runs of `RUN`.
LONGEST_WORD = 50
RUN = 8
# Words of more bytes are unknown.
LONGEST_READ = 2**20


class WordPiece(Tokenizer):
    """Turns sentences into ids and back, with a given vocabulary.

    Sentences are case-folded (Unicode's NFKC_Casefold: `straße` is `strasse`), stripped
    of all non-spacing marks (`é` is `e`, `й` is `и`, `パ` is `ハ`) and split at spaces
    and punctuation before their words are cut into the longest known pieces
    (tensorflow-text's `BertTokenizer`). Words of a decoded sentence are joined by
    spaces, and what the tokenizer took apart and kept, such as Hangul, is composed
    again (NFC).
    """

    ending = ".vocab"
    keeps_case = False

    def __init__(self, vocabulary: Sequence[str]):
        check_reserved(vocabulary)
        self.vocabulary = tuple(vocabulary)
        self.start_id = START_ID

    def digest(self) -> str:
        # Manifests have this one, which lacks the last line break of `to_bytes`.
        return hashlib.sha256("\n".join(self.vocabulary).encode()).hexdigest()

    @classmethod
    def from_bytes(cls, data: bytes) -> "WordPiece":
        return cls(list(decode_lines(io.BytesIO(data), "it")))

    def to_bytes(self) -> bytes:
        return "".join(f"{piece}\n" for piece in self.vocabulary).encode()

    def _encode(self, sentences, max_tokens):
        tf, _ = tensorflow_text()
        ids = self.graph_encode(sentences)[:, :max_tokens]
        flat = tf.cast(ids.values, tf.int32).numpy()
        return Rows(flat, ids.row_lengths().numpy())

    def detokenize(self, sentence: str) -> str:
        return detokenize_words(sentence)

    @functools.cached_property
    def graph(self):
        tf, text = tensorflow_text()
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                self.vocabulary, tf.range(len(self), dtype=tf.int64)
            ),
            default_value=UNKNOWN_ID,
        )
        return text.BertTokenizer(
            table,
            max_bytes_per_word=LONGEST_READ,
            # With it the time is linear in the length of a word.
            max_chars_per_token=max(map(len, self.vocabulary)),
            token_out_type=tf.int64,
            lower_case=True,
        )

    def graph_encode(self, sentences):
        tf, _ = tensorflow_text()
        ids = self.graph.tokenize(sentences).merge_dims(-2, -1)
        edge = tf.ones((tf.shape(sentences)[0], 1), tf.int64)
        return tf.concat([START_ID * edge, ids, END_ID * edge], axis=1)

    def graph_detokenize(self, ids):
        tf, tf_text = tensorflow_text()
        words = self.graph.detokenize(tf.cast(ids, tf.int64))
        text = tf.strings.reduce_join(words, separator=" ", axis=-1)
        text = tf_text.normalize_utf8(text, "NFC")
        for pattern, written in RULES:
            text = tf.strings.regex_replace(text, pattern, written)
        return text

    def _join(self, ids):
        """Puts pieces together as tensorflow-text does, but needs nothing of it."""
        words = " ".join(self.pieces(ids)).replace(" ##", "")
        return unicodedata.normalize("NFC", words)


class WordPieceSettings(VocabularySettings):
    """A WordPiece vocabulary for each side."""

    tokenizer = WordPiece
    name: Literal["wordpiece"] = "wordpiece"

    def _identity(self, pair):
        return f"wordpiece {_LEARNING_VERSION} {self.size} {self.sentences}"

    def _learn(self, sentences, pair):
        return WordPiece(learn_vocabulary(sentences, self.size))


def learn_vocabulary(sentences: Iterable[str], size: int) -> list[str]:
    """Learns a WordPiece vocabulary as TensorFlow's tutorial does.

    Unlike there, a text of more than 1,000 characters has a piece for nearly all of
    them, and words of more than 50, as in scripts without spaces, are learnt, too.
    Small texts give fewer pieces than `size`; each of many characters gives two.
    """
    tensorflow_text()
    from tensorflow_text.python.ops.bert_tokenizer import BasicTokenizer

    tokenizer = BasicTokenizer(lower_case=True)

    def split(chunk):
        return tokenizer.tokenize(chunk).flat_values.numpy().tolist()

    encoded: collections.Counter[bytes] = collections.Counter()
    for part in in_threads(split, chunks(sentences)):
        encoded.update(part)
    words: collections.Counter[str] = collections.Counter()
    characters: collections.Counter[str] = collections.Counter()
    for data, count in encoded.items():
        word = data.decode()
        step = len(word) if len(word) <= LONGEST_WORD else RUN
        for start in range(0, len(word), step):
            words[word[start : start + step]] += count
        for character in word:
            characters[character] += count
    by_frequency = sorted(characters, key=lambda c: (-characters[c], c))
    sums = np.cumsum([characters[c] for c in by_frequency])
    # This many of the most frequent characters make up `COVERAGE` of the text.
    covering_size = 1 + int(np.searchsorted(sums, COVERAGE * sums[-1]))
    alphabet = set(by_frequency[: max(FEWEST_CHARACTERS, covering_size)])
    return learn_pieces(words, size, alphabet)
