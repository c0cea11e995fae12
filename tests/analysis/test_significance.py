"""The bootstrap against Student's t, and against sacrebleu called by itself."""

import numpy as np
import paired_bootstrap
import pytest
from paired_bootstrap import bleu_p_value, loss_difference
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest
from scipy import stats


def test_the_interval_of_sentences_of_one_length_is_nearly_students():
    random = np.random.default_rng(1)
    baseline_losses = random.gamma(2.0, 20.0, size=800)
    losses = baseline_losses + random.normal(0.5, 3.0, size=800)
    difference = loss_difference(losses, baseline_losses, np.full(800, 10))
    gaps = (losses - baseline_losses) / 10
    expected = stats.ttest_1samp(gaps, 0).confidence_interval()
    assert difference.mean == pytest.approx(gaps.mean())
    assert difference[1:] == pytest.approx(tuple(expected), abs=0.002)


def test_long_sentences_weigh_more():
    difference = loss_difference([9.0, 1.0], [0.0, 0.0], [9, 1])
    assert difference == pytest.approx((1.0, 1.0, 1.0))


def test_bleu_is_compared_by_sacrebleu(monkeypatch):
    monkeypatch.setattr(paired_bootstrap, "RESAMPLES", 200)
    references = [f"the house of number {n} is very old ." for n in range(40)]
    translations = [line.replace("very", "quite") for line in references]
    baseline = [line.replace("the house", "a home") for line in translations]
    systems = [("other", baseline), ("model", translations)]
    metric = {"BLEU": BLEU(force=True, tokenize="none")}
    test = PairedTest(systems, metric, [references], "bs", 200)
    expected = test()[1]["BLEU"][1].p_value
    p_value = bleu_p_value(translations, baseline, references)
    assert p_value == expected < 0.05


def test_an_unknown_word_is_never_right(monkeypatch):
    monkeypatch.setattr(paired_bootstrap, "RESAMPLES", 200)
    tests = []

    def make_test(systems, metrics, references, **options):
        tests.append(references)
        return PairedTest(systems, metrics, references, **options)

    monkeypatch.setattr(paired_bootstrap, "PairedTest", make_test)
    references = ["the [UNK] is very old .", "a house is old ."]
    bleu_p_value(references, references[::-1], references)
    assert tests == [[["the \ufffd is very old .", "a house is old ."]]]
