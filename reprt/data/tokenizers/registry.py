"""The vocabularies that a `name` chooses among; the first is the default."""

from reprt.data.tokenizers.base import VocabularySettings
from reprt.data.tokenizers.bpe import BPESettings
from reprt.data.tokenizers.wordpiece import WordPieceSettings

VOCABULARIES: tuple[type[VocabularySettings], ...] = (WordPieceSettings, BPESettings)
