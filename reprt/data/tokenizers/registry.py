"""The vocabularies that a `name` chooses among; the first is the default."""

from reprt.data.tokenizers.bpe import BPESettings
from reprt.data.tokenizers.wordpiece import WordPieceSettings
from reprt.settings import one_of

VOCABULARIES = (WordPieceSettings, BPESettings)
Vocabulary = one_of(*VOCABULARIES)
