import shutil

import naive
import numpy as np
import pytest
import tensorflow as tf
import tiny_run
from naive import END, START

import reprt
from reprt.constants import UNKNOWN_ID
from reprt.data.tokenizers.spacing import detokenised
from reprt.decoding.beam_search import BeamSearch
from reprt.decoding.translator import Translation, Translator

SENTENCES = ["o homem sabe", "", "a casa", "ele não sabe que a casa é grande.", "e"]


@pytest.fixture(scope="module", params=["baseline", "repe"])
def run(request, tmp_path_factory):
    return tiny_run.lively(tmp_path_factory.getbasetemp(), request.param)


@pytest.fixture(scope="module")
def repe(tmp_path_factory):
    return tiny_run.lively(tmp_path_factory.getbasetemp(), "repe")


@pytest.fixture(scope="module")
def translator(repe):
    return Translator.load(repe, beam_size=2, max_tokens=20)


@pytest.fixture(scope="module")
def translations(translator):
    return translator(SENTENCES)


def test_a_translation_is_what_a_naive_search_says(run):
    translator = Translator.load(run, beam_size=2, max_tokens=20)
    read = naive.Reader(translator.model)
    for sentence, found in zip(SENTENCES, translator(SENTENCES), strict=True):
        assert found.source == sentence
        if not sentence:
            assert found == Translation("", (), ()) and found.text == ""
            continue
        (source,) = translator.source_tokenizer.encode([sentence])
        expected = naive.beam_search(read, source, 20, 2, 0.6)
        for one, (words, ended, log_probability, score) in zip(
            found.alternatives, expected, strict=True
        ):
            pieces = [translator.target_tokenizer.vocabulary[word] for word in words]
            assert list(one.tokens) == pieces and one.ended == ended
            assert one.log_probability == pytest.approx(log_probability, rel=1e-3)
            assert one.score == pytest.approx(score, rel=1e-3)
            (text,) = translator.target_tokenizer.decode([words])
            assert one.text == detokenised(text)


def test_the_best_stands_for_all(translations):
    texts = {found.text for found in translations}
    assert len(texts) == len(SENTENCES)  # the empty one among them
    for found in translations:
        if found.source:
            best, second = found.alternatives
            assert (found.text, found.tokens) == (best.text, best.tokens)
            assert found.score == best.score
            assert (best.ended, best.score) > (second.ended, second.score)
    assert translations[1].tokens == () and translations[1].score == 0.0


def assert_same(found, expected):
    """Compares translations, whose scores another batch rounds otherwise."""
    for one, other in zip(found, expected, strict=True):
        assert (one.source, one.notes) == (other.source, other.notes)
        for this, that in zip(one.alternatives, other.alternatives, strict=True):
            assert this.score == pytest.approx(that.score, rel=1e-4)
            assert this.log_probability == pytest.approx(that.log_probability, rel=1e-4)
            assert (this.text, this.tokens) == (that.text, that.tokens)
            assert this.ended == that.ended


def test_one_sentence_or_several(translator, translations):
    assert_same([translator("a casa")], [translations[2]])
    assert_same(translator(["a casa"]), [translations[2]])
    assert translator([]) == []
    assert translator(["", " \t\n"]) == [Translation("", ()), Translation(" \t\n", ())]


class Column:
    """A column of a table, as pandas and others have it."""

    def __init__(self, values):
        self.values = values

    def tolist(self):
        return list(self.values)


COLUMNS = {
    "tuple": tuple,
    "generator": iter,
    "array": np.array,
    "array of objects": lambda values: np.array(values, object),
    "array of bytes": lambda values: np.char.encode(values, "utf-8"),
    "bytes": lambda values: [value.encode() for value in values],
    "tensor": tf.constant,
    "tensors": lambda values: list(map(tf.constant, values)),
    "dataset": tf.data.Dataset.from_tensor_slices,
    "column": Column,
    "column of pandas": lambda values: pytest.importorskip("pandas").Series(values),
}


@pytest.mark.parametrize("make", COLUMNS.values(), ids=COLUMNS)
def test_sentences_in_arrays_tensors_and_columns(translator, translations, make):
    for found in (
        translator(make(SENTENCES)),
        list(translator.stream(make(SENTENCES), ahead=2)),
    ):
        assert_same(found, translations)
        assert {type(each.source) for each in found} <= {str, np.str_}


@pytest.mark.parametrize("make", [np.array, np.str_, str.encode, tf.constant])
def test_one_sentence_of_another_kind(translator, translations, make):
    assert_same([translator(make(SENTENCES[3]))], [translations[3]])
    maps = translator.attention(make(SENTENCES[3]))
    assert maps.sentence == SENTENCES[3]


NO_SENTENCES = {
    "NaN": ([*SENTENCES, float("nan")], "nan of type float in row 5"),
    "None": (["a casa", None], "None of type NoneType in row 1"),
    "a number": ([3, "a casa"], "3 of type int in row 0"),
    "NumPy's number": (["a", np.float32(2.5)], "2.5 of type float in row 1"),
    "numbers": (np.arange(2), "0 of type int in row 0"),
    "numbers of TensorFlow": (tf.constant([1.5]), "1.5 of type float in row 0"),
    "a list": ([["a casa"]], r"\['a casa'\] of type list in row 0"),
    "a matrix": (tf.constant([["a casa"]]), r"\[b'a casa'\] of type list in row 0"),
    "a column": (Column(["a", float("nan")]), "nan of type float in row 1"),
    "Latin-1": (["a", "olá".encode("latin-1")], r"b'ol\\xe1' of type bytes in row 1"),
    "no sequence": (None, "None of type NoneType"),
    "one number": (np.float64("nan"), "nan of type float"),
}


@pytest.mark.parametrize("values, told", NO_SENTENCES.values(), ids=NO_SENTENCES)
def test_what_is_no_sentence_is_told_by_its_row_before_the_search(
    translator, monkeypatch, values, told
):
    monkeypatch.setattr(translator, "search_all", None)  # it is not called
    for translate in (translator, lambda given: list(translator.stream(given))):
        with pytest.raises(ValueError, match=f"Expected sentences.* Received: {told}"):
            translate(values)


@pytest.mark.parametrize("value", [None, float("nan"), 3])
def test_attention_to_what_is_no_sentence_is_refused(translator, value):
    with pytest.raises(ValueError, match="Expected sentences"):
        translator.attention(value)


def test_neither_order_nor_portions_matter(translator, translations):
    assert_same(translator.stream(reversed(SENTENCES)), translations[::-1])
    for ahead in (1, 2):
        assert_same(translator.stream(iter(SENTENCES), ahead), translations)


def test_a_stream_is_read_no_further_than_need_be(translator):
    read = []

    def sentences():
        for sentence in SENTENCES * 2:
            read.append(sentence)
            yield sentence

    found = translator.stream(sentences(), ahead=2)
    assert read == []
    for number in range(1, 6):
        assert next(found).source == SENTENCES[number - 1]
        assert len(read) == 2 * -(-number // 2)


def test_a_stream_that_fails_has_given_what_came_before(translator, translations):
    def sentences():
        yield from SENTENCES[:2]
        raise OSError("the file is gone")

    found = translator.stream(sentences(), ahead=1)
    assert_same([next(found), next(found)], translations[:2])
    with pytest.raises(OSError, match="the file is gone"):
        next(found)


@pytest.mark.parametrize(
    "sentence, unknown",
    [
        ("a casa 😀", 1),
        ("שלום עולם", 2),
        ("漢字 a casa", 2),
        ("a\u200bcasa", 0),  # a space of no width is none
        ("a\x00casa \ufffd", 1),
        ("A CASA", 0),
    ],
)
def test_what_the_vocabulary_does_not_know_is_said(translator, sentence, unknown):
    found = translator(sentence)
    assert found.source == sentence and found.alternatives
    notes = [note for note in found.notes if "lacks" in note]
    said = f"the vocabulary lacks {unknown} words or signs"
    assert notes == ([said] if unknown else [])
    (ids,) = translator.source_tokenizer.encode([sentence])
    assert np.sum(ids == UNKNOWN_ID) == unknown


def test_a_sentence_that_is_too_long_is_cut_and_that_is_said(repe):
    full = Translator.load(repe, max_tokens=20)
    short = Translator(
        full.model,
        full.source_tokenizer,
        full.target_tokenizer,
        max_tokens=9,
        search={"max_tokens": 20},
    )
    sentence = "o homem sabe que ele não sabe"
    (ids,) = full.source_tokenizer.encode([sentence])
    found = short(sentence)
    assert found.notes[0] == f"the first 9 of {len(ids)} tokens were read"
    assert found.source == sentence
    # As in training: what is left is the beginning, without an end.
    read = naive.Reader(full.model)
    words, ended = naive.greedy(read, ids[:9], 20)
    pieces = [full.target_tokenizer.vocabulary[word] for word in words]
    assert list(found.tokens) == pieces and found.alternatives[0].ended == ended
    assert not [note for note in full(sentence).notes if "tokens" in note]
    # The folder says how long: a run's own text is never longer.
    assert full.max_tokens == 128
    assert full("a " * 127).notes[0] == "the first 128 of 129 tokens were read"


def test_a_translation_that_does_not_end_is_said_to_be_cut(repe):
    translator = Translator.load(repe, max_tokens=3)
    translator.model.output_dense.bias.assign(
        np.where(np.arange(len(translator.target_tokenizer)) == END, -1e9, 0.0)
    )
    found = translator("a casa")
    assert found.notes == ("the translation did not end within the limit",)
    assert len(found.tokens) == 3 and not found.alternatives[0].ended


def test_attention_is_that_of_every_head(run):
    translator = Translator.load(run, max_tokens=20)
    maps, found = translator.attention("a casa é"), translator("a casa é")
    (ids,) = translator.source_tokenizer.encode(["a casa é"])
    assert maps.source == tuple(
        translator.source_tokenizer.vocabulary[index] for index in ids
    )
    assert maps.target == ("[START]", *found.tokens)
    assert maps.translation == found.text and maps.model == run.name
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


def test_attention_knows_no_padding(translator):
    """A sentence has the same weights alone and padded in a batch."""
    model = translator.model
    ids = np.array([[START, 9, 5, END], [START, 7, END, 0]], "int32")
    weights = model.attention_weights(ids, ids[:, :3])
    assert {name: tuple(each.shape) for name, each in weights.items()} == {
        "encoder": (1, 2, 2, 4, 4),
        "decoder": (1, 2, 2, 3, 3),
        "cross": (1, 2, 2, 3, 4),
    }
    # Padding is attended to by nobody.
    for name in ("encoder", "cross"):
        assert not np.array(weights[name])[:, 1, ..., 3].any()
    for sentence in range(2):
        length = (4, 3)[sentence]
        alone = model.attention_weights(
            ids[sentence : sentence + 1, :length], ids[sentence : sentence + 1, :3]
        )
        for name, each in alone.items():
            rows = length if name == "encoder" else 3
            together = np.array(weights[name])[:, sentence, :, :rows]
            np.testing.assert_allclose(
                together[..., : np.array(each).shape[-1]], each[:, 0], atol=1e-5
            )


def test_attention_to_an_empty_sentence_is_refused(translator):
    with pytest.raises(ValueError, match="Expected a sentence. Received an empty one."):
        translator.attention(" \n")


def test_attention_of_a_translation_without_words(repe):
    translator = Translator.load(repe)
    ends = np.arange(len(translator.target_tokenizer)) == END
    translator.model.output_dense.bias.assign(1e9 * ends)
    maps = translator.attention("a casa")
    assert maps.target == ("[START]",) and maps.translation == ""


def test_attention_of_the_longest_translation_that_does_not_end(repe):
    """Its last token is not read again: the model has no position for it."""
    run = Translator.load(repe)
    model = run.model
    config = model.config.changed(max_length=6)
    sizes = model.source_vocab_size, model.target_vocab_size
    short = reprt.models.Transformer(*sizes, config)
    short.build()
    short.set_weights(model.get_weights())
    ends = np.arange(model.target_vocab_size) == END
    short.output_dense.bias.assign(np.where(ends, -1e9, 0.0))
    tokenizers = run.source_tokenizer, run.target_tokenizer
    translator = Translator(short, *tokenizers, max_tokens=6)
    maps = translator.attention("a casa")
    found = translator("a casa").tokens
    assert len(found) == 6 and maps.target == ("[START]", *found[:5])
    assert maps.decoder.shape[2:] == (6, 6)


def test_the_search_is_as_asked_for(repe):
    search = Translator.load(
        repe, beam_size=3, length_penalty=0.1, max_tokens=7
    ).search
    assert isinstance(search, BeamSearch)
    assert (search.beam_size, search.length_penalty, search.max_tokens) == (3, 0.1, 7)
    assert (search.start_id, search.end_id) == (START, END)
    with pytest.raises(ValueError, match="beam_size=0"):
        Translator.load(repe, beam_size=0)


def test_vocabularies_the_wrong_way_round_are_refused(translator):
    sides = translator.target_tokenizer, translator.source_tokenizer
    assert len(sides[0]) != len(sides[1])
    with pytest.raises(ValueError, match="`source_tokenizer` to have the"):
        Translator(translator.model, *sides)


def damaged(run, tmp_path, name, change):
    """A copy of a run with a file changed, or without it."""
    copy = tmp_path / "run"
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("checkpoints"))
    if change is None:
        (copy / name).unlink()
    else:
        (copy / name).write_bytes(change((copy / name).read_bytes()))
    return copy


def half(content):
    return content[: len(content) // 2]


def scrambled(content):
    """A zip file still, whose contents are not what they were."""
    middle = len(content) // 2
    turned = bytes(byte ^ 255 for byte in content[middle - 500 : middle])
    return content[: middle - 500] + turned + content[middle:]


def beginning(content):
    """As of a file that was copied in part: the first ten pieces."""
    return b"".join(content.splitlines(keepends=True)[:10])


@pytest.mark.parametrize(
    "name, change, message",
    [
        ("model.keras", None, "{}/model.keras. A run has its model.keras"),
        ("model.keras", half, "{}/model.keras cannot be read as a Keras model"),
        ("model.keras", scrambled, "{}/model.keras cannot be read as a Keras model"),
        ("model.keras", lambda _: b"", "{}/model.keras cannot be read as a Keras"),
        ("config.toml", None, "{} to be a run folder"),
        ("config.toml", lambda _: b"[text", "{}/config.toml"),
        ("config.toml", lambda _: b"title = 'mine'", "{}/config.toml"),
        ("source.vocab", None, "{}/source.vocab"),
        (
            "source.vocab",
            lambda content: content + b"\xff\n",
            "source.vocab cannot be used: Expected it to be UTF-8",
        ),
        (
            "target.vocab",
            lambda content: b"hello\n",
            "The vocabulary {}/target.vocab cannot be used: Expected a vocabulary that "
            "begins with [PAD] [UNK] [START] [END]. Received one that begins with "
            "'hello'",
        ),
        ("source.vocab", beginning, "`source_tokenizer` to have the"),
        ("target.vocab", beginning, "`target_tokenizer` to have the"),
    ],
)
def test_what_cannot_be_read_is_named(repe, tmp_path, name, change, message):
    copy = damaged(repe, tmp_path, name, change)
    with pytest.raises(ValueError) as error:
        Translator.load(copy)("o homem sabe")
    assert message.format(copy) in str(error.value)


@pytest.mark.parametrize("make", ["mkdir", "touch", "exists"])
def test_what_is_no_run_folder_is_named(tmp_path, make):
    getattr(tmp_path / "run", make)()
    with pytest.raises(ValueError, match="Expected .*/run to be a run folder"):
        Translator.load(tmp_path / "run")
