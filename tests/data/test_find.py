import dataclasses
import hashlib
import pathlib
import re
import shutil
import tarfile
from unittest import mock

import pytest

from reprt.data.corpora import embedded, ted
from reprt.data.corpora import find as find_module
from reprt.data.corpora.corpus import Corpus, Split
from reprt.data.corpora.find import NothingFound, TextUnavailable, find


def write(folder, label):
    """Writes a text of gl_to_en that tells where it is from."""
    pair_folder = folder / "datasets" / "gl_to_en"
    pair_folder.mkdir(parents=True)
    for split in ted.SPLITS:
        for name in ted.PAIRS["gl_to_en"].files(split):
            (pair_folder / name).write_text(f"{label}\n")
    return folder


def pack(folder, archive):
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder / "datasets", "datasets")
    return archive


def label_of(corpus):
    return corpus.train.source[0]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Keeps the search away from the user's own data."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for variable in (
        "REPRT_TED",
        "REPRT_CACHE",
        "TFDS_DATA_DIR",
        "XDG_CACHE_HOME",
    ):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path / "home"


@pytest.fixture(autouse=True)
def built_in_corpus(monkeypatch):
    split = Split(["built in"], ["built in"])
    corpus = Corpus("built-in", "pt_to_en", False, "reprt", split, split, split)
    monkeypatch.setattr(embedded, "load", lambda: corpus)
    return corpus


@pytest.fixture(autouse=True)
def official_archive(tmp_path, monkeypatch):
    """The archive that the search takes for the official one."""
    folder = write(tmp_path / "official", "archive")
    archive = pack(folder, tmp_path / "ted.tar.gz")
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    monkeypatch.setattr(ted, "NAME", "ted.tar.gz")
    monkeypatch.setattr(ted, "SHA256", sha256)
    monkeypatch.setattr(
        ted, "ADDRESSES", ("http://original/ted", "http://copy/ted")
    )
    return archive


@pytest.fixture(autouse=True)
def network(monkeypatch):
    """What can be downloaded: paths of files by address. Empty means offline."""
    files: dict[str, pathlib.Path] = {}

    def download(address, path, sha256):
        if address not in files:
            raise OSError(f"{address} cannot be reached: offline.")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(files.pop(address), path)

    monkeypatch.setattr(find_module, "download", download)
    return files


@pytest.fixture
def cache_file(home, official_archive):
    path = home / ".cache" / "reprt" / "ted.tar.gz"
    path.parent.mkdir(parents=True)
    shutil.copy(official_archive, path)
    return path


@pytest.fixture
def prepared_folder(home, monkeypatch):
    """What TFDS has prepared, as far as the search looks before it asks TFDS."""
    folder = (
        home
        / "tensorflow_datasets"
        / "ted_hrlr_translate"
        / "gl_to_en"
        / "1.0.0"
    )
    folder.mkdir(parents=True)
    split = Split(["prepared"], ["prepared"])
    corpus = Corpus("prepared", "gl_to_en", False, "TFDS", split, split, split)
    monkeypatch.setattr(ted, "read_prepared", lambda folder, pair: corpus)
    return folder


def test_each_source_wins_over_the_later_ones(
    tmp_path,
    monkeypatch,
    official_archive,
    network,
    cache_file,
    prepared_folder,
):
    folder = write(tmp_path / "mine", "environment")
    monkeypatch.setenv("REPRT_TED", str(folder))
    path = write(tmp_path / "other", "path")

    assert label_of(find(str(path), "gl_to_en")) == "path"
    assert label_of(find("auto", "gl_to_en")) == "environment"
    monkeypatch.delenv("REPRT_TED")
    assert label_of(find("auto", "gl_to_en")) == "prepared"
    folder = prepared_folder.parents[2].rename(tmp_path / "elsewhere")
    monkeypatch.setenv("TFDS_DATA_DIR", str(folder))
    assert label_of(find("ted", "gl_to_en")) == "prepared"
    shutil.rmtree(folder)
    # Both addresses work, but neither is asked.
    network |= {address: official_archive for address in ted.ADDRESSES}
    assert label_of(find("auto", "gl_to_en")) == "archive" and len(network) == 2
    for addresses in (["http://copy/ted"], []):
        cache_file.unlink()
        corpus = find("ted", "gl_to_en")
        assert label_of(corpus) == "archive"
        assert corpus.origin == str(cache_file)
        assert list(network) == addresses


def test_a_wrong_file_in_the_cache_is_not_used(
    cache_file, official_archive, network
):
    cache_file.write_bytes(b"<!DOCTYPE html>")
    with pytest.raises(
        TextUnavailable, match="in the cache: .*be a whole tar archive"
    ):
        find("ted", "gl_to_en")
    network["http://original/ted"] = official_archive
    assert label_of(find("ted", "gl_to_en")) == "archive"


def test_an_archive_by_its_path_is_read_as_its_folder_is(
    tmp_path, home, monkeypatch
):
    pair = dataclasses.replace(ted.PAIRS["gl_to_en"], train=1, dev=1)
    monkeypatch.setitem(ted.PAIRS, "gl_to_en", pair)
    folder = write(tmp_path / "mine", "mine")
    archive = pack(folder, tmp_path / "mine.tgz")
    monkeypatch.setenv("REPRT_TED", str(archive))
    corpora = find("auto", "gl_to_en"), find(str(archive), "gl_to_en")
    for corpus in corpora:
        assert corpus.official and corpus.name == "TED-HRLR gl_to_en"
        assert corpus.digest() == find(str(folder), "gl_to_en").digest()
        assert corpus.origin == str(archive)
    assert not home.exists()  # nothing is unpacked


@pytest.mark.parametrize("setting", ["REPRT_TED", "a path"])
@pytest.mark.parametrize(
    "name, pair, message",
    [
        ("nowhere", "gl_to_en", "there is no such folder, archive or table"),
        ("mine", "be_to_en", "datasets/be_to_en in .*are there: gl_to_en"),
        ("mine.tgz", "be_to_en", "datasets/be_to_en in .*are there: gl_to_en"),
        (
            "mine.txt",
            "gl_to_en",
            "tar archive laid .* by --train SOURCE TARGET",
        ),
    ],
)
def test_a_wrong_explicit_path_is_an_error(
    tmp_path,
    monkeypatch,
    prepared_folder,
    cache_file,
    setting,
    name,
    pair,
    message,
):
    pack(write(tmp_path / "mine", "mine"), tmp_path / "mine.tgz")
    (tmp_path / "mine.txt").write_text("no archive")
    path = str(tmp_path / name)
    monkeypatch.setenv("REPRT_TED", path if setting == "REPRT_TED" else "")
    with pytest.raises(
        TextUnavailable, match=f"{name}, given as {setting}.*{message}"
    ):
        find("auto" if setting == "REPRT_TED" else path, pair)


@pytest.mark.parametrize("text", ["auto", "ted", "embedded", "a path"])
@pytest.mark.parametrize(
    "name, suggestion",
    [
        ("pt_en", "pt_to_en"),
        ("de-en", "de_to_en"),
        ("de_en", "de_to_en"),
        ("de-to-en", "de_to_en"),
        ("german_to_english", None),
        ("../de_to_en", None),
    ],
)
def test_another_way_to_write_a_pair_is_told_the_right_one(
    text, name, suggestion
):
    question = f"Did you mean '{suggestion}'" if suggestion else ""
    message = f"SRC_to_TGT, such as .*{re.escape(name)}'. ?{question}"
    with pytest.raises(ValueError, match=message):
        find(text, name)
    if text in ("auto", "ted"):
        with pytest.raises(
            ValueError, match="Did you mean 'aztr_to_en'.* --text FOL"
        ):
            find(text, "az_tr_to_en")


def test_where_it_looked_and_what_helps_is_told(home, capsys):
    with pytest.raises(NothingFound) as error:
        find("auto", "gl_to_en")
    assert capsys.readouterr() == ("", "")
    message = str(error.value).replace("\n", " ")
    archive = f"{home}/.cache/reprt/ted.tar.gz"
    folder = f"{home}/tensorflow_datasets/"
    assert f"prepared by TFDS: there is no {folder}" in message
    assert f"in the cache: there is no {archive}" in message
    for address in ted.ADDRESSES:
        assert f"by download: {address} cannot be reached" in message
    first_hint, second_hint, third_hint = re.split(r" [123]\. ", message)[1:]
    assert "REPRT_TED=PATH or --text PATH" in first_hint
    assert "TFDS" in second_hint and archive in second_hint
    assert "http://copy/ted" in third_hint and ted.SHA256 in third_hint


def test_the_built_in_text_refuses_another_pair(capsys, built_in_corpus):
    assert find("embedded", "pt_to_en") is built_in_corpus
    assert capsys.readouterr() == ("", "")
    with pytest.raises(ValueError, match="text, pt_to_en. Received: gl_to_en."):
        find("embedded", "gl_to_en")


@pytest.mark.parametrize("text", ["", " "])
def test_a_text_without_a_name_is_not_searched_for(text):
    with pytest.raises(
        ValueError, match="one of auto, .* or a path. Received: ' *'."
    ):
        find(text, "gl_to_en")


def test_what_tfds_has_prepared_and_cannot_be_read_is_told(
    prepared_folder, monkeypatch
):
    read_prepared = mock.Mock(side_effect=RuntimeError("corrupted record"))
    monkeypatch.setattr(ted, "read_prepared", read_prepared)
    with pytest.raises(NothingFound) as error:
        find("ted", "gl_to_en")
    for part in (
        "WAS NOT FOUND",
        "1.0.0 cannot be read: corrupted",
        "3. Run this",
    ):
        assert part in str(error.value)
