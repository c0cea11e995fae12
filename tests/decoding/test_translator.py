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
def run(tmp_path_factory):
    return tiny_run.randomized_run(tmp_path_factory.getbasetemp(), "repe")


@pytest.fixture(scope="module")
def translator(run):
    return Translator.load(run, beam_size=2, max_tokens=20)


@pytest.fixture(scope="module")
def translations(translator):
    return translator(SENTENCES)


def test_a_translation_is_what_a_naive_search_says(translator, translations):
    reader = naive.Reader(translator.model)
    tokenizer = translator.target_tokenizer
    for sentence, translation in zip(SENTENCES, translations, strict=True):
        assert translation.source == sentence
        if not sentence:
            assert translation == Translation("", (), ())
            assert translation.text == "" and translation.tokens == ()
            assert translation.score == 0.0
            continue
        (source,) = translator.source_tokenizer.encode([sentence])
        hypotheses = naive.beam_search(reader, source, 20, 2, 0.6)
        for alternative, hypothesis in zip(
            translation.alternatives, hypotheses, strict=True
        ):
            words, has_ended, log_probability, score = hypothesis
            pieces = [tokenizer.vocabulary[word] for word in words]
            assert list(alternative.tokens) == pieces
            assert alternative.ended == has_ended
            assert alternative.log_probability == pytest.approx(
                log_probability, rel=1e-3
            )
            assert alternative.score == pytest.approx(score, rel=1e-3)
            (text,) = tokenizer.decode([words])
            assert alternative.text == detokenize_words(text)
        best = translation.alternatives[0]
        assert translation.text == best.text
        assert translation.score == best.score


def assert_same(translations, expected):
    """Compares translations, whose scores another batch rounds otherwise."""
    for translation, expected_translation in zip(
        translations, expected, strict=True
    ):
        assert translation.source == expected_translation.source
        assert translation.notes == expected_translation.notes
        for alternative, hypothesis in zip(
            translation.alternatives,
            expected_translation.alternatives,
            strict=True,
        ):
            assert alternative.score == pytest.approx(
                hypothesis.score, rel=1e-4
            )
            assert alternative.log_probability == pytest.approx(
                hypothesis.log_probability, rel=1e-4
            )
            assert alternative.text == hypothesis.text
            assert alternative.tokens == hypothesis.tokens
            assert alternative.ended == hypothesis.ended


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


@pytest.mark.parametrize("make", COLUMNS.values(), ids=COLUMNS)
def test_sentences_in_arrays_tensors_and_columns(
    translator, translations, make
):
    for results in (
        translator(make(SENTENCES)),
        list(translator.stream(make(SENTENCES), ahead=2)),
    ):
        assert_same(results, translations)
        kinds = {type(translation.source) for translation in results}
        assert kinds <= {str, np.str_}


def test_pairs_have_two_sides_of_one_length(translator):
    with pytest.raises(ValueError, match="2 and 1 in sources and targets"):
        translator.encode(SENTENCES[:2], ["the house"])
    with pytest.raises(
        ValueError, match="several sentences. Received one: 'a casa'"
    ):
        translator.encode("a casa", "the house")
    # What Python makes of a Latin-1 terminal's argument.
    assert translator("a \udce9 casa").source.startswith("a \ufffd")


BAD_COLUMNS = {
    "NaN": (
        pandas.Series([*SENTENCES, math.nan]),
        "nan of type float in row 5",
    ),
    "None": (["a casa", None], "None of type NoneType in row 1"),
    "a number": ([3, "a casa"], "3 of type int in row 0"),
    "a list": ([["a casa"]], r"\['a casa'\] of type list in row 0"),
}


@pytest.mark.parametrize(
    "values, message", BAD_COLUMNS.values(), ids=BAD_COLUMNS
)
def test_what_is_no_sentence_is_told_by_its_row_before_the_search(
    translator, monkeypatch, values, message
):
    # A search would fail, for there is none.
    monkeypatch.setattr(Translator, "search_all", None)
    message = f"Expected sentences.* Received: {message}"
    with pytest.raises(ValueError, match=message):
        translator(values)
    with pytest.raises(ValueError, match=message):
        list(translator.stream(values))


def test_a_stream_is_read_no_further_than_need_be(translator):
    requests = []

    def sentences():
        for sentence in SENTENCES * 2:
            requests.append(sentence)
            yield sentence

    stream = translator.stream(sentences(), ahead=2)
    assert requests == []
    for number in range(1, 6):
        assert next(stream).source == SENTENCES[number - 1]
        assert len(requests) == 2 * -(-number // 2)


@pytest.mark.parametrize(
    "sentence, symbols",
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
    translator, sentence, symbols
):
    translation = translator(sentence)
    assert translation.source == sentence and translation.alternatives
    notes = [note for note in translation.notes if "lacks" in note]
    expected = [f"the vocabulary lacks {symbols}"] if symbols else []
    assert notes == expected
    (ids,) = translator.source_tokenizer.encode([sentence])
    assert (UNKNOWN_ID in ids) == bool(symbols)


def test_an_empty_answer_is_said(translator, monkeypatch):
    hypothesis = translator.search_all([np.array([2, 5, 3])])[0][0]
    results = [[dataclasses.replace(hypothesis, ids=())]]
    monkeypatch.setattr(Translator, "search_all", lambda *_: results)
    notes = translator("a").notes
    assert any("the translation is empty" in note for note in notes)


def test_a_sentence_that_is_too_long_is_cut_and_that_is_said(run):
    translator = Translator.load(run, max_tokens=20)
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
    note = f"the first 9 of {len(ids)} tokens were read"
    assert translation.notes[0] == note
    assert translation.source == sentence
    # As in training: what is left is the beginning, without an end.
    reader = naive.Reader(translator.model)
    [(words, has_ended, *_)] = naive.beam_search(reader, ids[:9], 20, 1, 0.6)
    vocabulary = translator.target_tokenizer.vocabulary
    assert list(translation.tokens) == [vocabulary[word] for word in words]
    assert translation.alternatives[0].ended == has_ended
    notes = translator(sentence).notes
    assert not [note for note in notes if "tokens" in note]
    # The folder says how long: a run's own text is never longer.
    assert translator.max_tokens == 128
    notes = translator("a " * 127).notes
    assert notes[0] == "the first 128 of 129 tokens were read"


def forbid_the_end(model):
    is_end = np.arange(model.target_vocab_size) == END
    model.output_dense.bias.assign(np.where(is_end, -1e9, 0.0))


def test_a_translation_that_does_not_end_is_said_to_be_cut(run):
    translator = Translator.load(run, max_tokens=3)
    forbid_the_end(translator.model)
    translation = translator("a casa")
    note = "the translation did not end within the limit"
    assert translation.notes == (note,)
    assert len(translation.tokens) == 3
    assert not translation.alternatives[0].ended


def test_attention_is_that_of_every_head(run):
    translator = Translator.load(run, max_tokens=20)
    maps = translator.attention("a casa é")
    translation = translator("a casa é")
    tokenizer = translator.source_tokenizer
    (ids,) = tokenizer.encode(["a casa é"])
    assert maps.source == tuple(tokenizer.vocabulary[index] for index in ids)
    assert maps.target == ("[START]", *translation.tokens)
    assert maps.written[:-1] == [*translation.tokens]
    assert maps.search == "greedy"
    assert translator.attention(b"a casa \xe9").sentence == "a casa \ufffd"
    first, *_, last = maps.tokens("cross")[0]
    assert first == f"[START] ⇒ {translation.tokens[0]}"
    has_ended = translation.alternatives[0].ended
    assert last.endswith("[END]" if has_ended else "…")
    assert maps.translation == translation.text and maps.model == run.name
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


def test_attention_of_the_longest_translation_that_does_not_end(run):
    """Its last token is not read again: the model has no position for it."""
    original = Translator.load(run)
    config = original.model.config.changed(max_length=6)
    sizes = original.model.source_vocab_size, original.model.target_vocab_size
    model = reprt.models.Transformer(*sizes, config)
    model.build()
    model.set_weights(original.model.get_weights())
    forbid_the_end(model)
    tokenizers = original.source_tokenizer, original.target_tokenizer
    translator = Translator(model, *tokenizers)
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
def test_what_cannot_be_read_is_named(run, tmp_path, name, change, message):
    folder = tmp_path / "run"
    shutil.copytree(run, folder, ignore=shutil.ignore_patterns("checkpoints"))
    path = folder / name
    content = path.read_bytes()
    path.unlink()
    if change:
        path.write_bytes(change(content))
    with pytest.raises(ValueError) as error:
        Translator.load(folder)("o homem sabe")
    assert message.format(folder) in str(error.value)
