import errno
import os
import pwd
from pathlib import Path

import pytest

from reprt.data.corpora import ted
from reprt.data.corpora.find import TextUnavailable, find
from reprt.files import (
    cache,
    expand_path,
    file_lock,
    read_json,
    read_toml,
    whole_folder,
    write_text,
)
from reprt_lab.folder import RunFolder


def test_a_lock_has_one_holder_and_keeps_what_the_file_holds(tmp_path):
    path = tmp_path / "new" / "a"
    with file_lock(path) as lock, file_lock(path, wait=False) as second_lock:
        path.write_text("a note")
        assert lock and not second_lock
    with file_lock(path, wait=False) as lock:
        assert lock and path.read_text() == "a note"


def test_a_disk_without_locks_is_no_reason_to_stop(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("portalocker.portalocker.LOCKER", flock)
    with (
        file_lock(tmp_path / "a") as lock,
        RunFolder(tmp_path / "run").claim() as claim,
    ):
        assert lock and claim


def test_a_byte_order_mark_is_no_text(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert read_toml(tmp_path / "a") == {"a": 1}
    (tmp_path / "a").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_json(tmp_path / "a") == {"a": 1}


@pytest.fixture
def missing_home(monkeypatch):
    """A user whom the system does not know, as containers have."""

    def raise_key_error(*_):
        raise KeyError

    for variable in ("HOME", "XDG_CACHE_HOME", "REPRT_CACHE", "REPRT_TED"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", raise_key_error)
    monkeypatch.setattr(pwd, "getpwnam", raise_key_error)


def test_a_user_without_a_home_is_told_what_to_set(
    missing_home, tmp_path, monkeypatch
):
    with pytest.raises(ValueError, match="a home folder.* Set REPRT_CACHE"):
        cache()
    with pytest.raises(ValueError, match="~/a, of a user without one"):
        expand_path("~/a")
    with pytest.raises(ValueError, match="~/text, of a user without one"):
        find("~/text", "gl_to_en")
    (tmp_path / "a").touch()
    with pytest.raises(OSError, match="a directory|exists"):
        write_text(tmp_path / "a" / "b", "")  # its error needs no cache
    monkeypatch.setenv("REPRT_CACHE", str(tmp_path))
    assert cache() == tmp_path
    monkeypatch.setattr(ted, "ADDRESSES", ("http://127.0.0.1:9/",))
    with pytest.raises(TextUnavailable, match="stands for a home folder"):
        # TFDS keeps its texts in the home.
        find("ted", "gl_to_en")


def test_only_errors_of_the_cache_advise_another_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRT_CACHE", str(tmp_path / "cache"))
    with pytest.raises(OSError, match="No such file") as failure:
        with whole_folder(cache() / "text"):
            open(tmp_path / "corpus.de")
    assert "REPRT_CACHE" not in str(failure.value)
    (tmp_path / "cache").rmdir()
    (tmp_path / "cache").touch()
    with pytest.raises(OSError, match="REPRT_CACHE"):
        with whole_folder(cache() / "text"):
            pass


def test_a_name_of_a_file_that_is_not_utf8_is_refused(tmp_path):
    name = os.fsdecode(b"gr\xfc\xdfe.tsv")
    Path(tmp_path, name).write_text("gl\ten\na\tb\n")
    with pytest.raises(ValueError, match=r"to be UTF-8. Received: .*gr.udcfc"):
        find(str(tmp_path / name), "gl_to_en")


def test_a_lock_follows_no_link(tmp_path):
    target, path = tmp_path / "outside", tmp_path / ".repe.lock"
    path.symlink_to(target)
    with file_lock(path) as lock:
        assert lock and not target.exists() and not path.is_symlink()
