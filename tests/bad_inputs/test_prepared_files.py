"""Prepared texts that were damaged or edited: named, and never trained on."""

import json
import re
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import VOCABULARY

from reprt.cli import main
from reprt.data.prepared import FORMAT, read_prepared, write_prepared
from reprt.settings import as_table


@pytest.fixture(scope="module")
def whole(text, tmp_path_factory):
    path = tmp_path_factory.mktemp("prepared") / "whole.npz"
    write_prepared(text, VOCABULARY, 24, path)
    return path


@pytest.fixture
def arrays(whole):
    with np.load(whole) as saved:
        return {name: saved[name] for name in saved.files}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "text.npz"


def of_bytes(text):
    return np.frombuffer(text.encode(), "uint8")


def about(**changes):
    label = {"name": "mine", "pair": "pt_to_en", "official": False}
    label |= {"vocabulary": as_table(VOCABULARY), "max_tokens": 24, **changes}
    return of_bytes(f"{FORMAT}\n{json.dumps(label)}")


def edited(array, place, value):
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize(
    "name, change, message",
    [
        ("about", lambda _: about(official=True), "are not those of the official"),
        ("about", lambda _: about(official=1), "'official' in its label to be of type"),
        ("about", lambda _: about(name=None), "'name' in its label"),
        ("about", lambda _: about(vocabulary=150), "'vocabulary' in its label to be"),
        ("about", lambda _: about(vocabulary={"size": "1"}), "'size' in its label to"),
        ("about", lambda _: about(vocabulary={"name": "x"}), "'name' in its label to"),
        ("about", lambda _: about(vocabulary={"name": "bpe"}), "model of sentencepie"),
        ("about", lambda _: about(max_tokens=0), "'max_tokens' in its label to be"),
        ("about", lambda _: about(max_tokens=10**400), "to have 64 bits"),
        ("about", lambda _: about(pair="x"), "Expected a pair of languages"),
        ("about", lambda _: about(max_tokens=3), "lengths' to be from 1 to 3"),
        ("about", lambda _: of_bytes(FORMAT), "it begins with"),
        ("about", lambda _: of_bytes(f"{FORMAT}\n[]"), "its label to be a table"),
        ("about", lambda _: of_bytes(f"{FORMAT}\n{'[' * 60_000}"), "at most 20 deep"),
        ("about", lambda _: of_bytes("mine\n{}"), "it begins with 'mine'"),
        ("about", lambda a: a.astype("int64"), "'about' to be a row of bytes"),
        ("about", lambda _: None, "it has no 'about'"),
        ("about", lambda _: np.array([print], object), "Object arrays cannot be"),
        ("train_source_ids", lambda a: edited(a, 3, -1), "to be from 1 to"),
        ("train_source_ids", lambda a: edited(a, 3, 0), "to be from 1 to"),
        ("train_target_ids", lambda a: edited(a, 3, 9999), "received 2 to 9999"),
        ("train_source_ids", lambda a: a[:-1], "that add up to"),
        ("train_source_ids", lambda a: a.astype("float32"), "a row of integers"),
        ("train_source_ids", lambda a: a[None], "a row of integers"),
        ("train_source_ids", lambda _: None, "it has no 'train_source_ids'"),
        ("dev_target_lengths", lambda a: edited(a, 0, -1), "lengths' to be from 1 to"),
        ("dev_target_lengths", lambda a: edited(a, 0, 0), "lengths' to be from 1 to"),
        ("dev_target_lengths", lambda a: edited(a, 0, 2**62), "lengths' to be from"),
        ("dev_target_lengths", lambda a: edited(a, 0, a[0] + 1), "add up to"),
        ("dev_target_lengths", lambda a: a[:-1], "received 9 that add up to"),
        ("dev_target_lengths", lambda a: a[:0], "received 0 that add up to 0"),
        ("dev_source_text", lambda a: a[: len(a) // 2], "same number of sentences"),
        ("dev_source_text", lambda a: edited(a, 0, 255), "'dev_source_text' to be UTF"),
        ("source_vocabulary", lambda a: a[1:], "vocabulary that begins with [PAD]"),
        ("source_vocabulary", lambda a: a[:60], "to be from 1 to"),
        ("test_words", lambda a: a[:1], "lines of 'test_words', received 1"),
    ],
)
def test_what_was_edited_is_named(arrays, path, capsys, name, change, message):
    changed = {**arrays, name: change(arrays[name])}
    np.savez(path, **{n: a for n, a in changed.items() if a is not None})
    with pytest.raises(ValueError, match=re.escape(message)):
        read_prepared(path)
    recipe = path.with_name("mine.toml")
    recipe.write_text("[models.repe]\npreset = 'repe'\n")
    out = path.with_name("out")
    assert main(["train", str(recipe), "--text", str(path), "--out", str(out)]) == 2
    assert str(path) in capsys.readouterr().err and not out.exists()


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\1\0", b"PK\5\6" + bytes(18)])
def test_what_is_no_prepared_file_is_named(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a text that `reprt prepare` made"):
        read_prepared(path)


def test_a_file_of_more_than_the_memory_is_refused(whole, monkeypatch):
    monkeypatch.setattr("reprt.arrays.MEMORY", 1000)
    with pytest.raises(ValueError, match="do not fit in memory"):
        read_prepared(whole)


@given(at=st.floats(0, 1), cut=st.integers(0, 20), new=st.binary(max_size=20))
def test_any_damage_is_read_or_named(whole, path, at, cut, new):
    content = whole.read_bytes()
    place = int(at * len(content))
    path.write_bytes(content[:place] + new + content[place + cut :])
    _read(path)


@given(data=st.data())
def test_any_bytes_in_the_place_of_an_array_are_read_or_named(whole, path, data):
    with zipfile.ZipFile(whole) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = data.draw(st.sampled_from(sorted(members)))
    at = data.draw(st.integers(0, len(members[name])))
    new = data.draw(st.binary(max_size=12))
    members[name] = members[name][:at] + new + members[name][at + len(new) :]
    with zipfile.ZipFile(path, "w") as archive:
        for each, content in members.items():
            archive.writestr(each, content)
    _read(path)


def _read(path):
    try:
        corpus = read_prepared(path)
    except ValueError as error:
        assert str(path) in str(error)
    else:
        rows = corpus.ids.train.source
        assert len(rows) == len(corpus.train) and min(map(len, rows)) > 0
