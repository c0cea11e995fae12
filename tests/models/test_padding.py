"""Padding may stand anywhere: real tokens count their places among real tokens."""

import numpy as np
import pytest
from formula import perturb_weights
from tiny import LABELS, SOURCE, TARGET
from variants import ALL, ONE_SEQUENCE, POSITIONED

from reprt.data import pack

NAMES = (
    "baseline",
    "baseline, to the letter",
    "repe",
    "repe, prefix on both sides",
)
VARIANTS = {
    **{
        name: ALL[name]
        for name in (*NAMES, "repe, causal", "norms before, tied")
    },
    "repe, learned": ("repe", {"table": "learned"}),
    "one sequence": ("decoder-only", {}),
    "one sequence, restart": ("decoder-only", {"target_positions": "restart"}),
    "one sequence, learned": ("decoder-only", {"table": "learned"}),
    **POSITIONED,
    **ONE_SEQUENCE,
    "recurrent": ("recurrent", {}),
    "multiplicative": ("recurrent", {"attention": "multiplicative"}),
}
# Where the columns of a row go, in a row of 9.
PLACES = {
    "right": slice(6),
    "left": slice(-6, None),
    "middle": [0, 1, 4, 5, 7, 8],
}


def move_padding(ids, *places):
    """The same real tokens with padding before, between or after them, by turns."""
    rows = np.zeros((len(places), len(ids), 9), ids.dtype)
    for place, place_rows in zip(places, rows):
        for row, words in zip(place_rows, ids):
            words = words[words != 0]
            columns, n = np.arange(9)[PLACES[place]], len(words)
            row[columns[-n:] if place == "left" else columns[:n]] = words
    return rows.reshape(-1, 9)


@pytest.fixture
def build(make_model):
    def make(variant):
        name, overrides = VARIANTS[variant]
        return perturb_weights(make_model(name, dropout=0.0, **overrides))

    return make


def real_logits(model, inputs, labels):
    """Logits of labelled tokens, one after the other."""
    return np.asarray(model(inputs))[np.asarray(labels) != 0]


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_are_those_of_padding_on_the_right(variant, build):
    model = build(variant)
    expected = real_logits(model, (SOURCE, TARGET), LABELS)
    tolerances = {"rtol": 0, "atol": 2e-6 * np.abs(expected).max() + 2e-6}
    places = "left", "right", "middle"
    labels = move_padding(LABELS, *places)
    inputs = (
        move_padding(SOURCE, "left", "middle", "right"),
        move_padding(TARGET, *places),
    )
    for batch in (
        (inputs, labels),
        pack(inputs, labels, layout=model.packed_layout),
    ):
        logits = real_logits(model, *batch)
        np.testing.assert_allclose(
            logits, np.tile(expected, (3, 1)), **tolerances
        )


@pytest.mark.parametrize("variant", VARIANTS)
def test_steps_are_those_of_padding_on_the_right(variant, build):
    model, target = build(variant), np.tile(TARGET, (3, 1))
    prefixes = model.start(model.encode(move_padding(SOURCE, *PLACES)), 2, 3)
    for position in range(3):
        ids = np.repeat(target[:, position], 2)
        logits, prefixes = model.step(ids, position, prefixes)
        expected, *other_logits = np.split(np.asarray(logits), 3)
        tolerance = 4e-6 * np.abs(logits).max()
        for actual in other_logits:
            np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)
