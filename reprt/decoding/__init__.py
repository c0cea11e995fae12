"""From a trained model to translations."""

import importlib

from reprt.decoding.beam_search import BeamSearch, Hypothesis, as_array

# These load vocabularies, and CTranslate2 where it is asked for.
_HOMES = {
    "AttentionMaps": "attention_maps",
    "CTranslate2Translator": "ctranslate2_translator",
    "Translation": "translator",
    "Translator": "translator",
    "sample": "sampling",
    "draw": "attention_maps",
    "draw_positions": "attention_maps",
    "write_page": "attention_maps",
}
__all__ = ["BeamSearch", "Hypothesis", "as_array", *_HOMES]


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
