"""What is exported translates as the package does, without the package."""

import json

import keras
import pytest
import tensorflow as tf
import tiny_run
from elsewhere import python

from reprt.data.corpora.corpus import has_a_word, word_pattern
from reprt.decoding.export import ExportedTranslator, export
from reprt.decoding.translator import Translator

SEARCHES = {
    "baseline": {},
    "repe": {"beam_size": 2, "length_penalty": 1.5, "max_tokens": 30},
}
SENTENCES = [
    "o homem sabe que a casa é grande.",
    "",
    "A casa!",
    " \t\n ",
    "😀 שלום 漢",
    "e",
    'olá — "não", disse: (9:30)',
    # The next sentence is longer than the model was trained for.
    "a " * 200,
    "a\x00casa\u200b",
]


WITHOUT_THE_PACKAGE = """
import json, pathlib, sys
# Nobody can import the package.
sys.modules["reprt"] = None
import tensorflow as tf
import tensorflow_text

sentences, found = json.load(sys.stdin), {}
for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    translate = tf.saved_model.load(str(folder / "saved_model"))
    read = lambda texts: [text.decode() for text in translate(texts).numpy()]
    found[folder.name] = read(sentences)
    assert translate(tf.constant([], tf.string)).shape == (0,)
    assert read(["", " "]) == ["", ""]
    assert read(sentences[2:3]) == found[folder.name][2:3]
    served = translate.signatures["serving_default"](sentences=tf.constant(sentences))
    [output] = served.values()
    assert [text.decode() for text in output.numpy()] == found[folder.name]
print(json.dumps(found))
"""


@pytest.mark.long
def test_a_saved_model_needs_tensorflow_and_its_text_alone(
    tmp_path, tmp_path_factory
):
    base, expected = tmp_path_factory.getbasetemp(), {}
    for name, search in SEARCHES.items():
        translator = Translator.load(tiny_run.lively(base, name), **search)
        paths = export(translator, place := tmp_path / name)
        assert paths == (place / "saved_model", place / "model.keras")
        # Nothing unfinished is left.
        assert {*place.iterdir()} == {*paths}
        assert (
            keras.saving.load_model(paths[1]).config == translator.model.config
        )
        found = translator(SENTENCES)
        expected[name] = [one.text for one in found]
        # Translations that were all alike would show little.
        assert len(set(expected[name])) > 5
        assert any("the first 128 of" in str(one) for one in found)
    told = python(WITHOUT_THE_PACKAGE, tmp_path, input=json.dumps(SENTENCES))
    assert json.loads(told) == expected


def test_nothing_is_exported_over_another_export(tmp_path):
    kept = tmp_path / "repe" / "saved_model" / "a file"
    kept.parent.mkdir(parents=True)
    kept.write_text("another export")
    with pytest.raises(
        ValueError, match="without saved_model. .*repe, which has one"
    ):
        export(None, tmp_path / "repe")
    assert kept.read_text() == "another export"
    assert [*(tmp_path / "repe").rglob("*")] == [kept.parent, kept]


def test_what_no_graph_can_hold_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match="Received: KERAS_BACKEND=jax"):
        export(None, tmp_path)
    assert not [*tmp_path.iterdir()]


def test_graphs_find_words_where_the_package_does():
    signs = [
        chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000
    ]
    found = tf.strings.regex_full_match(signs, word_pattern()).numpy().tolist()
    assert found == list(map(has_a_word, signs))
    assert 1000 < found.count(False) < 3000


def test_bytes_that_are_not_utf8_are_unknown_and_not_empty(tmp_path_factory):
    run = tiny_run.lively(tmp_path_factory.getbasetemp(), "baseline")
    translator = Translator.load(run, max_tokens=4)
    [found] = ExportedTranslator(translator)(
        tf.constant([b"a \xff casa"])
    ).numpy()
    assert found.decode() == translator("a \ufffd casa").text != ""
