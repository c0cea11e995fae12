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


EXPORT_SCRIPT = """
import json, pathlib, sys
# Nobody can import the package.
sys.modules["reprt"] = None
import tensorflow as tf
import tensorflow_text

sentences, translations = json.load(sys.stdin), {}
for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    translate = tf.saved_model.load(str(folder / "saved_model"))
    decode = lambda tensor: [text.decode() for text in tensor.numpy()]
    read = lambda texts: decode(translate(texts))
    expected = read(sentences)
    translations[folder.name] = expected
    assert translate(tf.constant([], tf.string)).shape == (0,)
    assert read(["", " "]) == ["", ""]
    assert read(sentences[2:3]) == expected[2:3]
    serve = translate.signatures["serving_default"]
    [output] = serve(sentences=tf.constant(sentences)).values()
    assert decode(output) == expected
print(json.dumps(translations))
"""


@pytest.mark.long
def test_a_saved_model_needs_tensorflow_and_its_text_alone(
    tmp_path, tmp_path_factory
):
    base, expected = tmp_path_factory.getbasetemp(), {}
    for name, search in SEARCHES.items():
        translator = Translator.load(
            tiny_run.randomized_run(base, name), **search
        )
        folder = tmp_path / name
        paths = export(translator, folder)
        assert paths == (folder / "saved_model", folder / "model.keras")
        # Nothing unfinished is left.
        assert {*folder.iterdir()} == {*paths}
        model = keras.saving.load_model(paths[1])
        assert model.config == translator.model.config
        translations = translator(SENTENCES)
        expected[name] = [translation.text for translation in translations]
        # Translations that were all alike would show little.
        assert len(set(expected[name])) > 5
        assert any(
            "the first 128 of" in str(translation)
            for translation in translations
        )
    output = python(EXPORT_SCRIPT, tmp_path, input=json.dumps(SENTENCES))
    assert json.loads(output) == expected


def test_nothing_is_exported_over_another_export(tmp_path):
    folder = tmp_path / "repe"
    path = folder / "saved_model" / "a file"
    path.parent.mkdir(parents=True)
    path.write_text("another export")
    with pytest.raises(
        ValueError, match="without saved_model. .*repe, which has one"
    ):
        export(None, folder)
    assert path.read_text() == "another export"
    assert [*folder.rglob("*")] == [path.parent, path]


def test_what_no_graph_can_hold_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match="Received: KERAS_BACKEND=jax"):
        export(None, tmp_path)
    assert not [*tmp_path.iterdir()]


def test_graphs_find_words_where_the_package_does():
    characters = [
        chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000
    ]
    tensor = tf.strings.regex_full_match(characters, word_pattern())
    matches = tensor.numpy().tolist()
    assert matches == list(map(has_a_word, characters))
    assert 1000 < matches.count(False) < 3000


def test_bytes_that_are_not_utf8_are_unknown_and_not_empty(tmp_path_factory):
    run = tiny_run.randomized_run(tmp_path_factory.getbasetemp(), "baseline")
    translator = Translator.load(run, max_tokens=4)
    sentences = tf.constant([b"a \xff casa"])
    [text] = ExportedTranslator(translator)(sentences).numpy()
    assert text.decode() == translator("a \ufffd casa").text != ""
