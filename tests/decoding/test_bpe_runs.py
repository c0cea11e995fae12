"""A run with BPE from its folder: translated and exported."""


import naive
import pytest
import tensorflow as tf
import tiny

from reprt import models
from reprt.data.corpora import embedded
from reprt.data.encoding import encode
from reprt.data.tokenizers.bpe import BPESettings
from reprt.decoding.export import ExportedTranslator
from reprt.decoding.translator import Translator
from reprt.lab.folder import RunFolder
from reprt.training.settings import TextSettings
from reprt_command import main

SENTENCES = ["O homem", "", "a  casa", " \t ", "漢 a\u00a0casa", "a " * 20, "<en>"]
TAGGED = BPESettings(size=150, shared=True, tags=True)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    corpus = embedded.load(train=60, dev=2, test=2)
    return encode(corpus, TAGGED, 24, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def run(text, tmp_path_factory):
    """A run whose model has one embedding table for both languages."""
    folder, shared = tmp_path_factory.mktemp("runs"), {"shared_embedding": True}
    folder = RunFolder(folder / "repe")
    of_text = {"vocabulary": TAGGED, "text": TextSettings(max_tokens=9)}
    settings = tiny.settings(model=shared, **of_text)
    folder.open(settings, text)
    sizes = len(text.source_tokenizer), len(text.target_tokenizer)
    model = models.build("repe", *sizes, **tiny.TINY, **shared)
    folder.save_model(naive.lively(model, seed=3, end=1.0))
    return folder.path


def test_what_is_exported_translates_as_the_command_does(run, briefly, capsys):
    translator = Translator.load(run, beam_size=1, max_tokens=4)
    translations = translator(SENTENCES)
    expected = [one.text for one in translations]
    assert len(set(expected)) > 4 and expected[1] == expected[3] == ""
    exported = ExportedTranslator(translator)(tf.constant(SENTENCES))
    assert [text.decode() for text in exported.numpy()] == expected
    search = ["--beam", "1", "--max-tokens", "4"]
    assert main(["translate", str(run), *SENTENCES[:2], *search]) == 0
    assert capsys.readouterr().out.splitlines() == expected[:2]
    assert "the vocabulary lacks 1 words or signs" in translations[4].notes
    assert any("the first 9 of" in note for note in translations[5].notes)
    attended = translator.attention(SENTENCES[0])
    assert (attended.source[0], attended.target[0]) == ("<pt>", "<en>")
