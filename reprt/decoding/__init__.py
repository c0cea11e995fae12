"""From a trained model to translations."""

from reprt.decoding.beam_search import BeamSearch, Hypothesis
from reprt.imports import import_lazily

_HOMES = {
    "AttentionMaps": "reprt.decoding.attention_maps",
    "Translation": "reprt.decoding.translator",
    "Translator": "reprt.decoding.translator",
    "sample": "reprt.decoding.sampling",
    "draw": "reprt.decoding.attention_maps",
    "draw_positions": "reprt.decoding.attention_maps",
    "write_page": "reprt.decoding.attention_maps",
}
__all__ = ["BeamSearch", "Hypothesis", *_HOMES]
__getattr__ = import_lazily(__name__, _HOMES)
