"""A text with its ids in one file."""

import dataclasses
import json

import numpy as np
import pytest
from tiny import VOCABULARY

from reprt.cli import main
from reprt.data.corpora import embedded, ted
from reprt.data.encoding import encode
from reprt.data.prepared import read_prepared, write_prepared
from reprt.data.search import TextUnavailable, find
from reprt.data.tokenizers.bpe import BPESettings
from reprt.data.tokenizers.wordpiece import WordPieceSettings


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    corpus = embedded.load(train=33, dev=5, test=6)
    return encode(corpus, VOCABULARY, 24, tmp_path_factory.mktemp("vocabularies"))


@pytest.fixture(scope="module")
def path(text, tmp_path_factory):
    path = tmp_path_factory.mktemp("prepared") / "text.npz"
    write_prepared(text, VOCABULARY, 24, path)
    return path


def test_all_of_it_comes_back(text, path):
    corpus = read_prepared(path)
    assert corpus.digest() == text.corpus.digest()
    for name in ("name", "pair", "official"):
        assert getattr(corpus, name) == getattr(text.corpus, name)
    assert corpus.origin == str(path)
    again = corpus.encoded(VOCABULARY, 24)
    assert again.corpus is corpus and again.test_words == list(text.test_words)
    for side in ("source", "target"):
        tokenizers = (getattr(each, f"{side}_tokenizer") for each in (text, again))
        assert len({tokenizer.digest() for tokenizer in tokenizers}) == 1
        for split in ("train", "dev", "test"):
            rows = zip(
                getattr(getattr(text, split), side),
                getattr(getattr(again, split), side),
                strict=True,
            )
            assert all(np.array_equal(one, other) for one, other in rows)


def test_a_file_of_the_first_format_is_read(path, tmp_path):
    """It has the size of a WordPiece vocabulary, and no name of any."""
    older = tmp_path / "older.npz"
    with np.load(path) as saved:
        arrays = {name: saved[name] for name in saved.files}
    label = json.loads(arrays["about"].tobytes().split(b"\n")[1])
    label["vocab_size"] = label.pop("vocabulary")["size"]
    lines = f"reprt prepared text 1\n{json.dumps(label)}"
    arrays["about"] = np.frombuffer(lines.encode(), "uint8")
    for side in ("source", "target"):  # whose last line did not end
        arrays[f"{side}_vocabulary"] = arrays[f"{side}_vocabulary"][:-1]
    np.savez(older, **arrays)
    texts = (read_prepared(each).encoded(VOCABULARY, 24) for each in (path, older))
    assert len({text.digest() for text in texts}) == 1


def test_it_is_found_as_a_text_of_its_pair_alone(path):
    assert find(str(path), "pt_to_en").origin == str(path)
    with pytest.raises(TextUnavailable, match="for gl_to_en: it holds pt_to_en"):
        find(str(path), "gl_to_en")


def test_other_settings_are_told(path):
    usual = WordPieceSettings()
    for asked in ((usual, 24), (VOCABULARY, 128), (BPESettings(size=150), 24)):
        with pytest.raises(ValueError, match=r"size=150\) and max_tokens=24. The rec"):
            read_prepared(path).encoded(*asked)


def test_damaged_files_and_others_are_told(path, tmp_path):
    other = tmp_path / "other.npz"
    np.savez(other, about=np.frombuffer(b"mine\n{}", "uint8"))
    half = tmp_path / "half.npz"
    half.write_bytes(path.read_bytes()[:-1000])
    without = tmp_path / "without.npz"
    with np.load(path) as saved:
        np.savez(without, **{n: saved[n] for n in saved.files if n != "dev_source_ids"})
    text = tmp_path / "text.npz"
    text.write_text("um texto")
    flipped = tmp_path / "flipped.npz"
    flipped.write_bytes(path.read_bytes())
    data = bytearray(path.read_bytes())
    for place in range(200, len(data), len(data) // 20):  # some break the compression
        data[place] ^= 0xFF
    flipped.write_bytes(data)
    for file in (other, half, without, text, flipped):
        with pytest.raises(TextUnavailable, match="not a text that `reprt prepare`"):
            find(str(file), "pt_to_en")


def test_a_file_name_has_to_say_what_it_is(text, tmp_path):
    with pytest.raises(ValueError, match="ends with .npz"):
        write_prepared(text, VOCABULARY, 24, tmp_path / "text")
    assert not list(tmp_path.iterdir())


def test_the_command_writes_what_a_recipe_reads(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("REPRT_CACHE", str(tmp_path / "cache"))
    load = embedded.load
    monkeypatch.setattr(embedded, "load", lambda: load(train=33, dev=5, test=6))
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(
        "[text]\nmax_tokens = 24\n[vocabulary]\nsize = 150\n"
        "[models.repe]\npreset = 'repe'\n"
    )
    file = tmp_path / "text.npz"
    asked = ["prepare", str(recipe), str(file), "--text", "embedded"]
    assert main(asked) == 0
    assert capsys.readouterr().out.strip() == str(file)
    corpus = read_prepared(file)
    assert len(corpus.encoded(VOCABULARY, 24).train) == 33
    several = '\n[trials]\npairs = ["pt_to_en", "gl_to_en"]\n'
    recipe.write_text(recipe.read_text() + several)
    assert main(asked) == 2
    assert "Expected one pair" in capsys.readouterr().err


def test_only_an_official_text_is_labelled_so(text, tmp_path, monkeypatch):
    corpus = dataclasses.replace(text.corpus, official=True, name="TED-HRLR pt_to_en")
    path = tmp_path / "text.npz"
    write_prepared(dataclasses.replace(text, corpus=corpus), VOCABULARY, 24, path)
    with pytest.raises(ValueError, match="official = True, and its sentences are not"):
        read_prepared(path)
    known = ted.Pair(("pt",), "en", train=33, dev=5)
    monkeypatch.setitem(ted.PAIRS, "pt_to_en", known)
    assert read_prepared(path).official
