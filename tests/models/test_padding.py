"""Padding may stand anywhere: real tokens count their places among real tokens."""

import numpy as np
import pytest
from formula import shaken
from tiny import LABELS, RECURRENT, SOURCE, TARGET
from variants import FAMILY, ONE_SEQUENCE, POSITIONED, PREFIX

from reprt.data import pack

VARIANTS = {
    "baseline": ("baseline", {}),
    "to the letter": ("baseline", {"scale": "inverse_sqrt", "table": "paper"}),
    "repe": ("repe", {}),
    "repe, learned": ("repe", {"table": "learned"}),
    "repe, prefix": ("repe", {**PREFIX, "encoder_statistics": "prefix"}),
    "repe, causal": FAMILY["repe, causal"],
    "modern": ("transformer-modern", {}),
    "one sequence": ("decoder-only", {}),
    "one sequence, restart": ("decoder-only", {"target_positions": "restart"}),
    "one sequence, learned": ("decoder-only", {"table": "learned"}),
    **POSITIONED,
    **ONE_SEQUENCE,
    "recurrent": ("recurrent", {}),
    "multiplicative": ("recurrent", {"attention": "multiplicative"}),
}
# Where the columns of a row go, in a row of 9.
PLACES = {"left": slice(-6, None), "middle": [0, 1, 4, 5, 7, 8], "right": slice(6)}


def moved(ids, place):
    """The same real tokens with padding before, between or after them."""
    rows = np.zeros((len(ids), 9), ids.dtype)
    for row, words in zip(rows, ids):
        words = words[words != 0]
        columns, n = np.arange(9)[PLACES[place]], len(words)
        row[columns[-n:] if place == "left" else columns[:n]] = words
    return rows


@pytest.fixture
def build(tiny):
    def make(variant):
        name, overrides = VARIANTS[variant]
        sizes = RECURRENT if name == "recurrent" else {"num_blocks": 1}
        return shaken(tiny(name, dropout=0.0, **{**sizes, **overrides}))

    return make


def real_logits(model, inputs, labels):
    """Logits of labelled tokens, one after the other."""
    return np.asarray(model(inputs))[np.asarray(labels) != 0]


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_are_those_of_padding_on_the_right(variant, build):
    model = build(variant)
    expected = real_logits(model, (SOURCE, TARGET), LABELS)
    near = {"rtol": 0, "atol": 2e-6 * np.abs(expected).max() + 2e-6}
    for places in ("left", "left"), ("middle", "right"), ("right", "middle"):
        source, target, labels = (
            moved(ids, place)
            for ids, place in zip((SOURCE, TARGET, LABELS), (*places, places[1]))
        )
        found = real_logits(model, (source, target), labels)
        np.testing.assert_allclose(found, expected, **near)
        packed = pack((source, target), labels, layout=model.packed_layout)
        np.testing.assert_allclose(real_logits(model, *packed), expected, **near)


@pytest.mark.parametrize("place", ["left", "middle"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_steps_are_those_of_padding_on_the_right(variant, place, build):
    model, logits = build(variant), []
    for source in (SOURCE, moved(SOURCE, place)):
        prefixes = model.start(model.encode(source), 2, 3)
        for position in range(3):
            ids = np.repeat(TARGET[:, position], 2)
            last, prefixes = model.step(ids, position, prefixes)
            logits.append(np.asarray(last))
    near = 4e-6 * np.abs(logits).max()
    np.testing.assert_allclose(logits[3:], logits[:3], rtol=0, atol=near)
