import functools
import string
import types

import keras
import naive
import numpy as np
import pytest
from naive import END, SIZES, START
from variants import ALL

from reprt import models
from reprt.analysis.evaluation import (
    prefix_loss,
    teacher_forced_loss,
    translation_scores,
)
from reprt.analysis.scores import scores
from reprt.bucketing import MORE_ROOM
from reprt.constants import RESERVED
from reprt.data.batching import BatchPlan, batches, planned_batches
from reprt.data.encoding import EncodedSplit
from reprt.data.tokenizers.wordpiece import WordPiece
from reprt.decoding.beam_search import BeamSearch, Hypothesis
from reprt.losses import MaskedCrossentropy

VARIANTS = (
    "baseline",
    "repe",
    "repe, prefix",
    "repe, causal",
    "repe, padding counts",
)
# Some sources are of one length, and one target needs more room than there is at first.
LENGTHS = [(5, 4), (2, 7), (5, 2), (8, MORE_ROOM + 4), (2, 3), (3, 6), (5, 5)]
BATCH = 3
RANDOM = np.random.default_rng(0)


def sentence(length):
    return np.array([START, *RANDOM.integers(4, 10, length - 2), END], "int32")


PAIRS = [(sentence(source), sentence(target)) for source, target in LENGTHS]
SPLIT = EncodedSplit(*zip(*PAIRS))


@functools.cache
def model_of(variant):
    name, settings = ALL[variant]
    return naive.randomize(models.build(name, 11, 10, **{**SIZES, **settings}))


@functools.cache
def prefix_loss_of(variant):
    return prefix_loss(model_of(variant), SPLIT, BATCH)


@functools.cache
def teacher_forced_loss_of(variant):
    return teacher_forced_loss(model_of(variant), SPLIT, BATCH)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_prefix_loss_is_that_of_every_prefix_read_alone(variant):
    reader = naive.Reader(model_of(variant))
    losses = [
        naive.losses(reader, source, target)
        for source, target in zip(SPLIT.source, SPLIT.target)
    ]
    loss = prefix_loss_of(variant)
    assert loss.tokens == sum(map(len, losses))
    assert loss.total == pytest.approx(sum(map(sum, losses)), rel=1e-4)
    assert loss.per_token == pytest.approx(loss.total / loss.tokens)
    # As Keras reports it: means of batches, weighed by their sentences.
    groups = [
        losses[start : start + BATCH] for start in range(0, len(losses), BATCH)
    ]
    means = [np.mean(np.concatenate(group)) for group in groups]
    expected = np.average(means, weights=[len(group) for group in groups])
    assert loss.mean_of_batches == pytest.approx(expected, rel=1e-4)


def test_targets_longer_than_the_model_takes_have_no_prefix_loss():
    # Rotary positions have no table, which would refuse them.
    settings = {**SIZES, "position": "rotary", "max_length": 4}
    model = models.build("repe-causal", 11, 10, **settings)
    with pytest.raises(ValueError, match="at most 4 tokens.* Received one of"):
        prefix_loss(model, SPLIT, BATCH)


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_looking_ahead_is_worth(variant):
    teacher_forced = teacher_forced_loss_of(variant)
    prefix = prefix_loss_of(variant)
    tokens = sum(target - 1 for _, target in LENGTHS)
    assert teacher_forced.tokens == prefix.tokens == tokens
    difference = prefix.per_token - teacher_forced.per_token
    if model_of(variant).looks_ahead:
        assert abs(difference) > 0.01
    else:
        assert teacher_forced.per_token == pytest.approx(
            prefix.per_token, rel=1e-5
        )
        assert teacher_forced.mean_of_batches == pytest.approx(
            prefix.mean_of_batches, rel=1e-5
        )


@pytest.mark.parametrize("variant", ["baseline", "repe, padding counts"])
def test_the_teacher_forced_loss_is_keras_own(variant):
    model = model_of(variant)
    model.compile(loss=MaskedCrossentropy())
    expected = model.evaluate(batches(SPLIT, BATCH), verbose=0)
    loss = teacher_forced_loss_of(variant)
    assert loss.mean_of_batches == pytest.approx(expected, rel=1e-5)
    # Batches of tokens, in their own order.
    plan = BatchPlan(SPLIT.lengths, size=20, name="tokens").batches()
    expected = model.evaluate(planned_batches(SPLIT, plan), verbose=0)
    loss = teacher_forced_loss(model, SPLIT, batches=plan)
    assert loss.mean_of_batches == pytest.approx(expected, rel=1e-5)
    if not model.looks_ahead:
        loss = prefix_loss(model, SPLIT, batches=plan)
        assert loss.mean_of_batches == pytest.approx(expected, rel=1e-5)


def test_a_translation_is_compared_with_its_reference_word_by_word():
    letters = string.ascii_lowercase
    continuations = [f"##{letter}" for letter in letters]
    tokenizer = WordPiece([*RESERVED, *letters, *continuations, ".", "'"])
    references = ["It's late.", "Não."]
    messages = []

    def search_all(source, progress):
        progress("translated")
        # The best and another one, which nobody asked for.
        other = Hypothesis((4,), True, -9.0, -9.0)
        hypotheses = []
        for row in tokenizer.encode(["It's very late.", "Não."]):
            ids = tuple(row[1:-1].tolist())
            hypotheses.append([Hypothesis(ids, True, -1.0, -1.0), other])
        return hypotheses

    translator = types.SimpleNamespace(
        target_tokenizer=tokenizer, search_all=search_all
    )
    source = [np.array([2, 5, 3])] * 2
    translations, results = translation_scores(
        translator, source, references, messages.append
    )
    assert list(translations) == ["it ' s very late .", "nao ."]
    assert messages == ["translated"]
    assert results == scores(tokenizer, translations, references)
    assert 10 < results[0].value < 90 and 10 < results[1].value < 90


def test_weights_that_were_added_later_count():
    keras.utils.set_random_seed(0)
    model = models.build("baseline", 10, 10, **SIZES)
    rows = [np.array([2, 5, 7, 3])]
    split = EncodedSplit(rows, rows)
    search = BeamSearch(model, 2, 3, max_tokens=5)
    prefix_loss(model, split)
    search([[2, 5, 3]])
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.Dense | keras.layers.EinsumDense):
            layer.enable_lora(2)
            layer.lora_kernel_b.assign(layer.lora_kernel_b + 1)
    forced, prefix = (
        loss(model, split) for loss in (teacher_forced_loss, prefix_loss)
    )
    assert prefix.per_token == pytest.approx(forced.per_token, rel=1e-5)
    [old], [new] = (
        each([[2, 5, 3]])
        for each in (search, BeamSearch(model, 2, 3, max_tokens=5))
    )
    assert old == new
