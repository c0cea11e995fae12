import dataclasses
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import tarfile

import pytest

from reprt.data import search
from reprt.data.corpora import embedded, ted
from reprt.data.corpora.corpus import Corpus, Split
from reprt.data.corpora.download import DownloadError
from reprt.data.search import TextUnavailable, find
from reprt.files import sha256_of


def write(folder, where):
    """Writes a text of gl_to_en that tells where it is from."""
    place = folder / "datasets" / "gl_to_en"
    place.mkdir(parents=True)
    for split in ted.SPLITS:
        for name in ted.PAIRS["gl_to_en"].files(split):
            (place / name).write_text(f"{where}\n")
    return folder


def pack(folder, archive):
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder / "datasets", "datasets")
    return archive


def where(corpus):
    return corpus.train.source[0]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Keeps the search away from the user's own data."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for variable in ("REPRT_TED", "REPRT_CACHE", "TFDS_DATA_DIR"):
        monkeypatch.delenv(variable, raising=False)
    search._announce.cache_clear()
    return tmp_path / "home"


@pytest.fixture(autouse=True)
def built_in(monkeypatch):
    split = Split(["built in"], ["built in"])
    corpus = Corpus("built-in", "pt_to_en", False, "reprt", split, split, split)
    monkeypatch.setattr(embedded, "load", lambda: corpus)
    return corpus


@pytest.fixture(autouse=True)
def official(tmp_path, monkeypatch):
    """The archive that the search takes for the official one."""
    archive = pack(write(tmp_path / "official", "archive"), tmp_path / "ted.tar.gz")
    facts = ted.Archive(
        name="ted.tar.gz",
        size=archive.stat().st_size,
        sha256=sha256_of(archive),
        addresses=("http://original/ted", "http://copy/ted"),
    )
    monkeypatch.setattr(ted, "ARCHIVE", facts)
    return archive


@pytest.fixture(autouse=True)
def network(monkeypatch):
    """What can be downloaded: paths of files by address. Empty means offline."""
    files: dict[str, pathlib.Path] = {}

    def download(address, path, sha256):
        if address not in files:
            raise DownloadError(f"{address} cannot be reached: offline.")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(files.pop(address), path)

    monkeypatch.setattr(search, "download", download)
    return files


@pytest.fixture
def cached(home, official):
    path = home / ".cache" / "reprt" / "ted.tar.gz"
    path.parent.mkdir(parents=True)
    shutil.copy(official, path)
    return path


@pytest.fixture
def prepared(home, monkeypatch):
    """What TFDS has prepared, as far as the search looks before it asks TFDS."""
    folder = home / "tensorflow_datasets" / "ted_hrlr_translate" / "gl_to_en" / "1.0.0"
    folder.mkdir(parents=True)
    split = Split(["prepared"], ["prepared"])
    corpus = Corpus("prepared", "gl_to_en", False, "TFDS", split, split, split)
    monkeypatch.setattr(ted, "read_prepared", lambda folder, pair: corpus)
    return folder


def test_each_source_wins_over_the_later_ones(
    tmp_path, monkeypatch, official, network, cached, prepared
):
    monkeypatch.setenv("REPRT_TED", str(write(tmp_path / "mine", "environment")))
    path = write(tmp_path / "other", "path")

    assert where(find(str(path), "gl_to_en")) == "path"
    assert where(find("auto", "gl_to_en")) == "environment"
    monkeypatch.delenv("REPRT_TED")
    assert where(find("auto", "gl_to_en")) == "prepared"
    shutil.rmtree(prepared)
    # Both addresses work, but neither is asked.
    network |= {address: official for address in ted.ARCHIVE.addresses}
    assert where(find("auto", "gl_to_en")) == "archive"
    assert len(network) == 2
    # The unpacked folder is as good as the archive.
    cached.unlink()
    assert where(find("auto", "gl_to_en")) == "archive"
    assert len(network) == 2
    for remaining in (["http://copy/ted"], []):
        shutil.rmtree(cached.parent)
        assert where(find("auto", "gl_to_en")) == "archive"
        assert list(network) == remaining
    shutil.rmtree(cached.parent)
    assert where(find("auto", "gl_to_en")) == "built in"


@pytest.mark.parametrize("mode", ["auto", "ted"])
def test_downloads_into_the_cache(tmp_path, monkeypatch, official, network, mode):
    monkeypatch.setenv("REPRT_CACHE", str(tmp_path / "cache"))
    network["http://copy/ted"] = official

    corpus = find(mode, "gl_to_en")

    assert (tmp_path / "cache" / "ted.tar.gz").is_file()
    assert corpus.origin.startswith(str(tmp_path / "cache" / "ted.tar.gz@"))


def test_a_wrong_file_in_the_cache_is_not_used(cached, official, network):
    cached.write_bytes(b"<!DOCTYPE html>")
    with pytest.raises(TextUnavailable, match="in the cache: .*to have the sha256 "):
        find("ted", "gl_to_en")

    network["http://original/ted"] = official
    assert where(find("ted", "gl_to_en")) == "archive"


def test_an_archive_by_its_path(tmp_path, home, monkeypatch):
    archive = pack(write(tmp_path / "mine", "my archive"), tmp_path / "mine.tgz")

    corpus = find(str(archive), "gl_to_en")

    assert where(corpus) == "my archive"
    digest = sha256_of(archive)[:16]
    assert corpus.origin.startswith(f"{home}/.cache/reprt/mine.tgz@{digest}/")
    assert corpus.name.startswith("gl_to_en from mine.tgz@")
    monkeypatch.setenv("REPRT_TED", str(archive))
    again = find("auto", "gl_to_en")
    assert (again.origin, again.digest()) == (corpus.origin, corpus.digest())


def test_archives_of_the_same_name_are_kept_apart(tmp_path):
    archive = pack(write(tmp_path / "old", "old"), tmp_path / "mine.tgz")
    assert where(find(str(archive), "gl_to_en")) == "old"

    pack(write(tmp_path / "new", "new"), archive)
    assert where(find(str(archive), "gl_to_en")) == "new"


def test_official_by_the_counts(tmp_path, monkeypatch):
    pair = dataclasses.replace(ted.PAIRS["gl_to_en"], train=1, dev=1)
    monkeypatch.setitem(ted.PAIRS, "gl_to_en", pair)

    corpus = find(str(write(tmp_path / "mine", "mine")), "gl_to_en")

    assert corpus.official and corpus.name == "TED-HRLR gl_to_en"


@pytest.mark.parametrize("setting", ["REPRT_TED", "a path"])
@pytest.mark.parametrize(
    "name, pair, message",
    [
        ("nowhere", "gl_to_en", "no such folder or archive"),
        ("mine", "be_to_en", "datasets/be_to_en in .*are there: gl_to_en"),
        ("mine.txt", "gl_to_en", "whole tar archive"),
    ],
)
def test_a_wrong_explicit_path_is_an_error(
    tmp_path, monkeypatch, prepared, cached, setting, name, pair, message
):
    write(tmp_path / "mine", "mine")
    (tmp_path / "mine.txt").write_text("no archive")
    path = str(tmp_path / name)
    monkeypatch.setenv("REPRT_TED", path if setting == "REPRT_TED" else "")

    with pytest.raises(TextUnavailable, match=f"{name}, given as {setting}.*{message}"):
        find("auto" if setting == "REPRT_TED" else path, pair)


@pytest.mark.parametrize("setting", ["REPRT_TED", "a path"])
@pytest.mark.parametrize(
    "path, message",
    [
        ("m\udcffne", "its name is not UTF-8. Rename it"),
        ("~nobody-of-this-name/text", "There is no home folder for ~nobody"),
    ],
)
def test_a_path_that_cannot_be(tmp_path, monkeypatch, setting, path, message):
    write(tmp_path / "m\udcffne", "mine")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", {**os.environ, "REPRT_TED": path})
    with pytest.raises(TextUnavailable, match=f"given as {setting}.*{message}"):
        find("auto" if setting == "REPRT_TED" else path, "gl_to_en")


def test_without_a_home_the_cache_has_to_be_named(monkeypatch, tmp_path):
    def unknown(user):
        raise KeyError(user)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(ValueError, match="no home folder .*Set REPRT_CACHE"):
        find("auto", "pt_to_en")
    monkeypatch.setenv("REPRT_CACHE", str(tmp_path / "cache"))
    assert where(find("auto", "pt_to_en")) == "built in"


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    archive = pack(write(tmp_path / "mine", "my archive"), tmp_path / "mine.tgz")
    monkeypatch.setenv("REPRT_CACHE", str(archive))
    with pytest.raises(TextUnavailable, match="set REPRT_CACHE to .*/mine.tgz"):
        find(str(archive), "gl_to_en")


def test_unknown_pair():
    with pytest.raises(ValueError, match="Did you mean 'pt_to_en'"):
        find("embedded", "pt_en")


def test_falls_back_loudly_and_once(home, capsys, built_in):
    assert find("auto", "pt_to_en") is built_in
    assert find("auto", "pt_to_en") is built_in

    out, err = capsys.readouterr()
    assert not out
    assert err.count("WAS NOT FOUND") == 1
    frame, *body, last = err.strip().splitlines()
    assert frame == last == "=" * 80
    assert all(line.startswith("| ") for line in body)
    said = " ".join(line.removeprefix("| ") for line in body)
    assert f"prepared by TFDS: there is no {home}/tensorflow_datasets/" in said
    assert f"in the cache: there is no {home}/.cache/reprt/ted.tar.gz" in said
    for address in ted.ARCHIVE.addresses:
        assert f"by download: {address} cannot be reached: offline." in said
    first, second, third = re.split(r" [123]\. ", said)[1:]
    assert "REPRT_TED=PATH or --text PATH" in first
    assert "TFDS" in second and f"{home}/.cache/reprt/ted.tar.gz" in second
    assert "http://copy/ted" in third and ted.ARCHIVE.sha256 in third
    assert "NOT TED: built-in, from and to the languages of pt_to_en. " in said


def test_the_notice_says_that_the_built_in_text_is_another_pair(capsys, built_in):
    assert find("auto", "gl_to_en") is built_in
    said = " ".join(capsys.readouterr().err.replace("\n| ", " ").split())
    assert "the languages of pt_to_en. You asked for gl_to_en." in said
    assert said.count("You asked for") == 1

    assert find("embedded", "gl_to_en") is built_in
    said = capsys.readouterr().err
    assert "The built-in text is pt_to_en. You asked for gl_to_en." in said


def test_the_built_in_text_on_request_needs_no_notice(capsys, built_in, monkeypatch):
    monkeypatch.setenv("REPRT_TED", "nowhere")

    assert find("embedded", "pt_to_en") is built_in
    assert capsys.readouterr() == ("", "")


def test_ted_refuses_to_fall_back(capsys):
    with pytest.raises(TextUnavailable) as error:
        find("ted", "pt_to_en")

    for part in ("WAS NOT FOUND", "1. Name the archive", "2. Let TFDS", "3. Run this"):
        assert part in str(error.value)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "error, message",
    [
        (ImportError("No module"), "reading it needs tensorflow-datasets: No module"),
        (RuntimeError("corrupted record"), "cannot be read: corrupted record"),
    ],
)
def test_unreadable_prepared_data_is_reported(prepared, monkeypatch, error, message):
    def fail(folder, pair):
        raise error

    monkeypatch.setattr(ted, "read_prepared", fail)

    with pytest.raises(TextUnavailable, match=f"prepared by TFDS: .*1.0.0.* {message}"):
        find("ted", "gl_to_en")


def test_the_folder_of_tfds_can_be_elsewhere(home, tmp_path, monkeypatch, prepared):
    (home / "tensorflow_datasets").rename(tmp_path / "elsewhere")
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "elsewhere"))

    assert where(find("ted", "gl_to_en")) == "prepared"


def test_looking_does_not_import_tfds(tmp_path):
    folder = write(tmp_path / "mine", "mine")
    program = (
        "import sys; from reprt.data.search import find; "
        f"find({str(folder)!r}, 'gl_to_en'); "
        "assert 'tensorflow_datasets' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
