"""From a trained model to translations."""

from reprt.decoding.beam_search import (
    BeamSearch,
    Hypothesis,
    as_array,
    greedy_search,
)

__all__ = ["BeamSearch", "Hypothesis", "as_array", "greedy_search"]
