"""Sources of text, vocabularies and batches."""

from reprt.imports import import_lazily

_HOMES = {
    "BPESettings": "reprt.data.tokenizers.bpe",
    "EncodedSplit": "reprt.data.encoding",
    "WordPieceSettings": "reprt.data.tokenizers.wordpiece",
    "batches": "reprt.data.batching",
    "cache": "reprt.files",
    "encode": "reprt.data.encoding",
    "find": "reprt.data.corpora.find",
    "pack": "reprt.data.packing",
    "packed": "reprt.data.packing",
    "training_order": "reprt.data.batching",
}
__all__ = [*_HOMES]
__getattr__ = import_lazily(__name__, _HOMES)
