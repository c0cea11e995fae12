"""The vocabularies that a `name` chooses among; the first is the default."""

from typing import Annotated

from reprt.data.tokenizers.bpe import BPESettings
from reprt.data.tokenizers.wordpiece import WordPieceSettings
from reprt.settings import by_name

VOCABULARIES = (WordPieceSettings, BPESettings)
Vocabulary = Annotated[WordPieceSettings | BPESettings, by_name(*VOCABULARIES)]
TOKENIZERS = {kind().name: kind.tokenizer for kind in VOCABULARIES}
