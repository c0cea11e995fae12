import functools
import importlib.util
import json
import math
import pathlib
import pickle

import keras
import naive
import numpy as np
import pytest
from elsewhere import python
from keras import ops
from naive import END, PAD, SIZES, START
from variants import ALL, POSITIONED

from reprt import layers, models
from reprt.bucketing import MORE_ROOM
from reprt.constants import RESERVED
from reprt.data.tokenizers.wordpiece import WordPiece
from reprt.decoding import beam_search
from reprt.decoding.beam_search import EXTRA_TOKENS, BeamSearch
from reprt.decoding.sampling import sample
from reprt.decoding.translator import Translator

NAMES = ("baseline", "repe", "repe, prefix", "repe, causal")
VARIANTS = {name: ALL[name] for name in NAMES}
LIMIT = 24


def sentences(lengths, seed=0):
    """Ids of random sentences, with 0 after the shorter ones."""
    ids = np.random.default_rng(seed).integers(
        4, 11, (len(lengths), max(lengths))
    )
    ids[np.arange(max(lengths)) >= np.array(lengths)[:, None]] = PAD
    return ids.astype("int32")


SOURCES = sentences([7, 3, 5, 2, 7, 6, 4, 1])


def build(variant, end=1.0, **overrides):
    name, settings = variant
    model = models.build(name, 11, 10, **{**SIZES, **settings, **overrides})
    return naive.randomize(model, seed=1, end=end)


# Models, and the graphs that a search makes, are the dearest things here.
@functools.cache
def model_of(variant):
    return build(VARIANTS[variant])


@functools.cache
def reader_of(variant):
    return naive.Reader(model_of(variant))


@functools.cache
def search_of(variant, size, length_penalty=0.6, jit_compile=False):
    return BeamSearch(
        model_of(variant),
        START,
        END,
        beam_size=size,
        length_penalty=length_penalty,
        max_tokens=LIMIT,
        jit_compile=jit_compile,
    )


@functools.cache
def translations_of(variant, size, length_penalty=0.6):
    return search_of(variant, size, length_penalty)(SOURCES)


def column(hypotheses, name):
    return [getattr(hypothesis, name) for hypothesis in hypotheses]


def assert_same(hypotheses, expected):
    """Compares the hypotheses of one sentence with those of another search."""
    for name in ("ids", "ended"):
        assert column(hypotheses, name) == column(expected, name)
    for name in ("log_probability", "score"):
        np.testing.assert_allclose(
            column(hypotheses, name),
            column(expected, name),
            rtol=1e-4,
            atol=1e-5,
        )


@pytest.mark.parametrize(
    "variant, size, length_penalty",
    [
        *((variant, size, 0.6) for variant in VARIANTS for size in (1, 2)),
        ("baseline", 2, 2.5),
        ("baseline", 4, 0.6),
        ("repe", 4, 0.0),
        ("repe, prefix", 4, 1.0),
    ],
)
def test_a_batch_is_searched_as_by_hand(variant, size, length_penalty):
    reader = reader_of(variant)
    translations = translations_of(variant, size, length_penalty)
    assert len(translations) == len(SOURCES)
    for source, hypotheses in zip(SOURCES, translations):
        expected = naive.beam_search(
            reader, source, LIMIT, size, length_penalty
        )
        words, ends, log_probabilities, scores = zip(*expected)
        assert tuple(column(hypotheses, "ids")) == words
        assert tuple(column(hypotheses, "ended")) == ends
        np.testing.assert_allclose(
            column(hypotheses, "log_probability"), log_probabilities, rtol=1e-4
        )
        np.testing.assert_allclose(
            column(hypotheses, "score"), scores, rtol=1e-4
        )


def test_xla_finds_what_graphs_find():
    search = search_of("repe, causal", 2, jit_compile=True)
    translations = translations_of("repe, causal", 2)
    for hypotheses, expected in zip(search(SOURCES), translations):
        assert_same(hypotheses, expected)


@pytest.mark.parametrize("columns, count", [(1000, 2), (1024, 1), (200, 8)])
def test_the_best_columns_are_those_of_a_full_sort(columns, count):
    # Whole numbers, so that there are equals.
    x = np.random.default_rng(0).integers(0, 30, (6, columns)).astype("float32")
    x[0], x[1, 5:] = -np.inf, -np.inf
    values, indices = beam_search._top_k(ops.convert_to_tensor(x), count)
    expected = np.argsort(-x, axis=1, kind="stable")[:, :count]
    np.testing.assert_array_equal(
        values, np.take_along_axis(x, expected, axis=1)
    )
    np.testing.assert_array_equal(indices, expected)


def bias(model, **words):
    """Adds to the logits of some words."""
    ids = {"pad": PAD, "start": START, "end": END}
    amounts = np.zeros(10)
    for name, amount in words.items():
        amounts[ids[name]] = amount
    variable = model.output_dense.bias
    variable.assign(np.array(variable) + amounts)
    return model


def test_no_translation_is_longer_than_its_source_and_50_words():
    model = bias(build(VARIANTS["repe"]), end=-1e9)
    translations = BeamSearch(model, START, END)(SOURCES[:2])
    assert EXTRA_TOKENS == 50
    for (hypothesis,), length in zip(translations, (7, 3), strict=True):
        assert len(hypothesis.ids) == length + 50 and not hypothesis.ended
        assert END not in hypothesis.ids


@pytest.mark.parametrize(
    "variant, max_length",
    [("baseline", 20), ("repe", 20), ("repe, prefix", 20), ("repe", 10)],
)
def test_no_translation_is_longer_than_the_model_can_read(variant, max_length):
    model = bias(build(VARIANTS[variant], max_length=max_length), end=-1e9)
    search = BeamSearch(model, START, END, beam_size=2, max_tokens=10**30)
    for hypotheses in search(SOURCES[:2]):
        lengths = [len(hypothesis.ids) for hypothesis in hypotheses]
        assert lengths == [max_length, max_length]


def test_neither_padding_nor_the_start_is_ever_said():
    model = bias(build(VARIANTS["repe"]), pad=100.0, start=100.0)
    search = BeamSearch(model, START, END, 2, max_tokens=6)
    for hypotheses in search(SOURCES):
        for hypothesis in hypotheses:
            assert not {PAD, START, END} & set(hypothesis.ids)
            # The model's own probabilities: nobody makes up for what is forbidden.
            assert math.isfinite(hypothesis.score)
            assert hypothesis.log_probability < -90


def test_a_search_follows_the_weights():
    model = build(VARIANTS["baseline"])
    search = BeamSearch(model, START, END, max_tokens=5)
    assert search(SOURCES[:1])[0][0].ids
    bias(model, end=1e9)
    assert search(SOURCES[:1])[0][0].ids == ()


def test_where_padding_counts_sentences_of_one_length_are_searched_together():
    model = build(ALL["repe, padding counts"])
    rows = [row[row != PAD] for row in sentences([5, 2, 5, 2], seed=1)]
    options = {"beam_size": 2, "max_tokens": 8}
    tokenizers = [
        WordPiece([*RESERVED, *map(str, range(size - len(RESERVED)))])
        for size in (model.source_vocab_size, model.target_vocab_size)
    ]
    translator = Translator(model, *tokenizers, search=options)
    messages = []
    translations = translator.search_all(rows, messages.append)
    assert [line.split()[1] for line in messages] == ["2/4", "4/4"]
    search = BeamSearch(model, START, END, **options)
    expected_translations = [search(row[None])[0] for row in rows]
    for hypotheses, expected in zip(
        translations, expected_translations, strict=True
    ):
        assert_same(hypotheses, expected)
    # For in one batch they would come out otherwise.
    batch = search(sentences([5, 2, 5, 2], seed=1))
    assert any(
        column(hypotheses, "ids") != column(expected, "ids")
        for hypotheses, expected in zip(batch, expected_translations)
    )


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"beam_size": 0},
            "`beam_size` to lie between 1 and 1000. Received: beam_si",
        ),
        ({"max_tokens": 0}, "Received: max_tokens=0"),
        (
            {"length_penalty": float("nan")},
            "between 0 and 10. Received: length_penalt",
        ),
        (
            {"end_id": 1000},
            "`end_id` to lie between 1 and 9. Received: end_id=1000",
        ),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        options = {"start_id": START, "end_id": END, **options}
        BeamSearch(model_of("baseline"), **options)


def test_a_model_of_another_kind_is_named():
    with pytest.raises(ValueError, match="TranslationModel.*Sequential"):
        BeamSearch(keras.Sequential([keras.layers.Dense(2)]), START, END)


def test_a_sentence_may_begin_with_the_end():
    model = build(VARIANTS["baseline"], end=5.0)
    translations = BeamSearch(model, END, END, beam_size=2)(SOURCES[:3])
    assert all(hypotheses[0].ended for hypotheses in translations)


@pytest.mark.parametrize("variant", VARIANTS)
def test_nothing_is_translated_into_nothing(variant):
    no_sentences = np.zeros((0, 5), "int32")
    assert search_of(variant, 2)(no_sentences) == []
    # A sentence without a word is still a sentence.
    ((hypothesis, *_),) = search_of(variant, 2)(np.zeros((1, 3), "int32"))
    assert math.isfinite(hypothesis.score)


def test_a_model_whose_weights_are_not_finite_is_told():
    model = build(VARIANTS["baseline"])
    model.output_dense.bias.assign(np.full(10, np.nan))
    with pytest.raises(ArithmeticError, match="not finite"):
        BeamSearch(model, START, END)(SOURCES[:2])


BACKEND_SCRIPT = """
import json, pickle, sys
sys.path[:0] = sys.argv[2:]
from test_beam_search import check_masks_and_prompts, translate_variants

check_masks_and_prompts()
with open(sys.argv[1], "rb") as file:
    print(json.dumps(translate_variants(pickle.load(file))))
"""


# All methods of positions, too.
BACKEND_VARIANTS = {**VARIANTS, **POSITIONED}


def json_rows(hypotheses):
    return [
        [list(hypothesis.ids), hypothesis.ended, hypothesis.score]
        for hypothesis in hypotheses
    ]


def translate_variants(weights):
    """Each variant's translations, for two backends to agree on."""
    results = {}
    for variant, (name, settings) in BACKEND_VARIANTS.items():
        model = models.build(name, 11, 10, **{**SIZES, **settings})
        for size in (1, 2) if variant in VARIANTS else (1,):
            # JAX compiles anew for every shape: only one of them outgrows its room,
            # and only one has a sentence that ends before another.
            if (variant, size) == ("repe", 1):
                sources, max_tokens = SOURCES[:4], MORE_ROOM + 1
            else:
                sources, max_tokens = SOURCES[:1], 4
            search = BeamSearch(model, START, END, size, max_tokens=max_tokens)
            # A search goes by the weights that the model has when it is called.
            model.set_weights([0 * weight for weight in weights[variant]])
            search(sources)
            model.set_weights(weights[variant])
            translations = search(sources)
            results[f"{variant} {size}"] = [*map(json_rows, translations)]
    return results


def check_masks_and_prompts():
    """Attached masks last in a step's graph, and a language model has no source."""
    ids = keras.Input((None,), dtype="int32")
    x = layers.TokenNorm()(keras.layers.Embedding(11, 8, mask_zero=True)(ids))
    x = layers.EncoderBlock(num_heads=2, key_dim=4, feed_forward_dim=8)(x)
    model = keras.Model(ids, keras.layers.GlobalAveragePooling1D()(x))
    outputs = [
        model.predict(SOURCES[1:2, :width], verbose=0) for width in (3, 7)
    ]
    np.testing.assert_allclose(*outputs, atol=1e-5)
    model = models.build("decoder-only-tiny", 11, 11)
    tokenizer = WordPiece([*RESERVED, *"abcdefg"])
    samples = sample(model, tokenizer, ["a b"], max_tokens=5)
    assert samples[0].startswith("a b")


@pytest.mark.long
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_other_backends_find_what_tensorflow_finds(
    backend, tmp_path, monkeypatch
):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    weights = {
        variant: build(settings, end=0.0).get_weights()
        for variant, settings in BACKEND_VARIANTS.items()
    }
    (tmp_path / "weights").write_bytes(pickle.dumps(weights))
    folder = pathlib.Path(__file__).parent
    monkeypatch.setenv("KERAS_BACKEND", backend)
    output = python(BACKEND_SCRIPT, tmp_path / "weights", folder, folder.parent)
    results = json.loads(output)
    expected_results = translate_variants(weights)
    assert results.keys() == expected_results.keys()
    for name, translations in expected_results.items():
        for rows, expected in zip(results[name], translations, strict=True):
            assert [row[:2] for row in rows] == [row[:2] for row in expected]
            np.testing.assert_allclose(
                [row[2] for row in rows],
                [row[2] for row in expected],
                rtol=1e-4,
            )
