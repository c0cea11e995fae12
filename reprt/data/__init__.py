"""Sources of text, vocabularies and batches."""

import importlib

# Where each name comes from. Learning words loads tensorflow-text, and packing Keras;
# reading a recipe needs neither.
_HOMES = {
    "BPESettings": "data.tokenizers.bpe",
    "EncodedSplit": "data.encoding",
    "WordPieceSettings": "data.tokenizers.wordpiece",
    "batches": "data.batching",
    "cache": "files",
    "encode": "data.encoding",
    "find": "data.search",
    "pack": "data.packing",
    "packed": "data.packing",
    "training_order": "data.batching",
}
__all__ = [*_HOMES]


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"reprt.{_HOMES[name]}"), name)
