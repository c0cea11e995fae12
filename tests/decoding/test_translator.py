import dataclasses
import math
import shutil

import naive
import numpy as np
import pandas
import pytest
import tensorflow as tf
import tiny_run
from naive import END

import reprt
from reprt.constants import UNKNOWN_ID
from reprt.data.tokenizers.spacing import detokenize_words
from reprt.decoding.translator import Translation, Translator

SENTENCES = [
    "o homem sabe",
    "",
    "a casa",
    "ele não sabe que a casa é grande.",
    "e",
]


@pytest.fixture(scope="module")
def repe(tmp_path_factory):
    return tiny_run.lively(tmp_path_factory.getbasetemp(), "repe")


@pytest.fixture(scope="module")
def translator(repe):
    return Translator.load(repe, beam_size=2, max_tokens=20)


@pytest.fixture(scope="module")
def translations(translator):
    return translator(SENTENCES)


def test_a_translation_is_what_a_naive_search_says(translator, translations):
    read = naive.Reader(translator.model)
    for sentence, translation in zip(SENTENCES, translations, strict=True):
        assert translation.source == sentence
        if not sentence:
            assert translation == Translation("", (), ())
            assert translation.text == "" and translation.tokens == ()
            assert translation.score == 0.0
            continue
        (source,) = translator.source_tokenizer.encode([sentence])
        expected = naive.beam_search(read, source, 20, 2, 0.6)
        for alternative, (words, ended, log_probability, score) in zip(
            translation.alternatives, expected, strict=True
        ):
            pieces = [
                translator.target_tokenizer.vocabulary[word] for word in words
            ]
            assert list(alternative.tokens) == pieces
            assert alternative.ended == ended
            assert alternative.log_probability == pytest.approx(
                log_probability, rel=1e-3
            )
            assert alternative.score == pytest.approx(score, rel=1e-3)
            (text,) = translator.target_tokenizer.decode([words])
            assert alternative.text == detokenize_words(text)
        best = translation.alternatives[0]
        assert (translation.text, translation.score) == (best.text, best.score)


def assert_same(translations, expected):
    """Compares translations, whose scores another batch rounds otherwise."""
    for translation, reference in zip(translations, expected, strict=True):
        assert translation.source == reference.source
        assert translation.notes == reference.notes
        for alternative, reference_alternative in zip(
            translation.alternatives, reference.alternatives, strict=True
        ):
            assert_same_alternative(alternative, reference_alternative)


def assert_same_alternative(alternative, expected):
    assert alternative.score == pytest.approx(expected.score, rel=1e-4)
    assert alternative.log_probability == pytest.approx(
        expected.log_probability, rel=1e-4
    )
    assert alternative.text == expected.text
    assert alternative.tokens == expected.tokens
    assert alternative.ended == expected.ended


def test_one_sentence_or_several(translator, translations):
    assert_same([translator(np.str_("a casa"))], [translations[2]])
    assert_same(translator(["a casa"]), [translations[2]])
    assert translator([]) == []
    assert translator(["", " \t\n"]) == [
        Translation("", ()),
        Translation(" \t\n", ()),
    ]


COLUMNS = {
    "generator": iter,
    "array": np.array,
    "array of objects": lambda values: np.array(values, object),
    "bytes": lambda values: [value.encode() for value in values],
    "tensor": tf.constant,
    "dataset": tf.data.Dataset.from_tensor_slices,
    "column of pandas": pandas.Series,
}


@pytest.mark.parametrize("make_column", COLUMNS.values(), ids=COLUMNS)
def test_sentences_in_arrays_tensors_and_columns(
    translator, translations, make_column
):
    for results in (
        translator(make_column(SENTENCES)),
        list(translator.stream(make_column(SENTENCES), ahead=2)),
    ):
        assert_same(results, translations)
        types = {type(translation.source) for translation in results}
        assert types <= {str, np.str_}


def test_pairs_have_two_sides_of_one_length(translator):
    with pytest.raises(ValueError, match="2 and 1 in sources and targets"):
        translator.encode(SENTENCES[:2], ["the house"])
    with pytest.raises(
        ValueError, match="several sentences. Received one: 'a casa'"
    ):
        translator.encode("a casa", "the house")
    # What Python makes of a Latin-1 terminal's argument.
    assert translator("a \udce9 casa").source.startswith("a \ufffd")


NO_SENTENCES = {
    "NaN": (
        pandas.Series([*SENTENCES, math.nan]),
        "nan of type float in row 5",
    ),
    "None": (["a casa", None], "None of type NoneType in row 1"),
    "a number": ([3, "a casa"], "3 of type int in row 0"),
    "a list": ([["a casa"]], r"\['a casa'\] of type list in row 0"),
}


@pytest.mark.parametrize(
    "values, message", NO_SENTENCES.values(), ids=NO_SENTENCES
)
def test_what_is_no_sentence_is_told_by_its_row_before_the_search(
    translator, monkeypatch, values, message
):
    # A search would fail, for there is none.
    monkeypatch.setattr(Translator, "search_all", None)
    for translate in (
        translator,
        lambda sentences: list(translator.stream(sentences)),
    ):
        with pytest.raises(
            ValueError, match=f"Expected sentences.* Received: {message}"
        ):
            translate(values)


def test_a_stream_is_read_no_further_than_need_be(translator):
    lines = []

    def sentences():
        for sentence in SENTENCES * 2:
            lines.append(sentence)
            yield sentence

    stream = translator.stream(sentences(), ahead=2)
    assert lines == []
    for number in range(1, 6):
        assert next(stream).source == SENTENCES[number - 1]
        assert len(lines) == 2 * -(-number // 2)


@pytest.mark.parametrize(
    "sentence, unknown_words",
    [
        ("a casa 😀", "😀"),
        ("שלום a עולם", "שלום, עולם"),
        ("漢字 a casa", "漢字"),
        # A space of no width is no space.
        ("a\u200bcasa", ""),
        ("a\x00casa \ufffd", "\ufffd"),
        ("A CASA", ""),
    ],
)
def test_what_the_vocabulary_does_not_know_is_said(
    translator, sentence, unknown_words
):
    translation = translator(sentence)
    assert translation.source == sentence and translation.alternatives
    notes = [note for note in translation.notes if "lacks" in note]
    expected = f"the vocabulary lacks {unknown_words}"
    assert notes == ([expected] if unknown_words else [])
    (ids,) = translator.source_tokenizer.encode([sentence])
    assert (UNKNOWN_ID in ids) == bool(unknown_words)


def test_an_empty_answer_is_said(translator, monkeypatch):
    hypothesis = translator.search_all([np.array([2, 5, 3])])[0][0]
    results = [[dataclasses.replace(hypothesis, ids=())]]
    monkeypatch.setattr(Translator, "search_all", lambda *_: results)
    notes = translator("a").notes
    assert any("the translation is empty" in note for note in notes)


def test_a_sentence_that_is_too_long_is_cut_and_that_is_said(repe):
    translator = Translator.load(repe, max_tokens=20)
    short_translator = Translator(
        translator.model,
        translator.source_tokenizer,
        translator.target_tokenizer,
        max_tokens=9,
        search={"max_tokens": 20},
    )
    sentence = "o homem sabe que ele não sabe"
    (ids,) = translator.source_tokenizer.encode([sentence])
    translation = short_translator(sentence)
    assert translation.notes[0] == f"the first 9 of {len(ids)} tokens were read"
    assert translation.source == sentence
    # As in training: what is left is the beginning, without an end.
    read = naive.Reader(translator.model)
    [(words, ended, *_)] = naive.beam_search(read, ids[:9], 20, 1, 0.6)
    pieces = [translator.target_tokenizer.vocabulary[word] for word in words]
    assert list(translation.tokens) == pieces
    assert translation.alternatives[0].ended == ended
    assert not [note for note in translator(sentence).notes if "tokens" in note]
    # The folder says how long: a run's own text is never longer.
    assert translator.max_tokens == 128
    notes = translator("a " * 127).notes
    assert notes[0] == "the first 128 of 129 tokens were read"


def test_a_translation_that_does_not_end_is_said_to_be_cut(repe):
    translator = Translator.load(repe, max_tokens=3)
    translator.model.output_dense.bias.assign(
        np.where(np.arange(len(translator.target_tokenizer)) == END, -1e9, 0.0)
    )
    translation = translator("a casa")
    assert translation.notes == (
        "the translation did not end within the limit",
    )
    assert len(translation.tokens) == 3
    assert not translation.alternatives[0].ended


def test_attention_is_that_of_every_head(repe):
    translator = Translator.load(repe, max_tokens=20)
    maps = translator.attention("a casa é")
    translation = translator("a casa é")
    (ids,) = translator.source_tokenizer.encode(["a casa é"])
    assert maps.source == tuple(
        translator.source_tokenizer.vocabulary[index] for index in ids
    )
    assert maps.target == ("[START]", *translation.tokens)
    assert maps.written[:-1] == [*translation.tokens]
    assert maps.search == "greedy"
    assert translator.attention(b"a casa \xe9").sentence == "a casa \ufffd"
    first_label, *_, last_label = maps.tokens("cross")[0]
    assert first_label == f"[START] ⇒ {translation.tokens[0]}"
    end = "[END]" if translation.alternatives[0].ended else "…"
    assert last_label.endswith(end)
    assert maps.translation == translation.text and maps.model == repe.name
    sources, targets = len(maps.source), len(maps.target)
    for name, queries, keys in (
        ("encoder", sources, sources),
        ("decoder", targets, targets),
        ("cross", targets, sources),
    ):
        weights = getattr(maps, name)
        assert weights.shape == (1, 2, queries, keys)
        np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-5)
        assert weights.std() > 0.01
    assert not np.triu(maps.decoder, 1).any()


def test_attention_of_the_longest_translation_that_does_not_end(repe):
    """Its last token is not read again: the model has no position for it."""
    original = Translator.load(repe)
    model = original.model
    config = model.config.changed(max_length=6)
    sizes = model.source_vocab_size, model.target_vocab_size
    short_model = reprt.models.Transformer(*sizes, config)
    short_model.build()
    short_model.set_weights(model.get_weights())
    is_end = np.arange(model.target_vocab_size) == END
    short_model.output_dense.bias.assign(np.where(is_end, -1e9, 0.0))
    tokenizers = original.source_tokenizer, original.target_tokenizer
    translator = Translator(short_model, *tokenizers)
    assert "the first 6 of" in translator("a casa " * 4).notes[0]
    maps = translator.attention("a casa")
    tokens = translator("a casa").tokens
    assert len(tokens) == 6 and maps.target == ("[START]", *tokens[:5])
    assert maps.decoder.shape[2:] == (6, 6)


def first_half(content):
    return content[: len(content) // 2]


@pytest.mark.parametrize(
    "name, change, message",
    [
        ("model.keras", None, "{}/model.keras. A run has its model.keras"),
        (
            "model.keras",
            first_half,
            "{}/model.keras cannot be read as a Keras model",
        ),
        ("config.toml", None, "{} to be a run folder"),
        ("config.toml", lambda _: b"[text", "{}/config.toml"),
        ("source.vocab", None, "{}/source.vocab"),
        (
            "target.vocab",
            first_half,
            "{}/target.vocab to be the vocabulary of the run",
        ),
    ],
)
def test_what_cannot_be_read_is_named(repe, tmp_path, name, change, message):
    copy = tmp_path / "run"
    shutil.copytree(repe, copy, ignore=shutil.ignore_patterns("checkpoints"))
    content = (copy / name).read_bytes()
    (copy / name).unlink()
    if change:
        (copy / name).write_bytes(change(content))
    with pytest.raises(ValueError) as error:
        Translator.load(copy)("o homem sabe")
    assert message.format(copy) in str(error.value)
