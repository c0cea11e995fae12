"""Locks on disks that have none; text files as other programs write them."""

import errno
import fcntl

import pytest

from reprt.files import held, lock_file, locked
from reprt.lab.folder import RunFolder
from reprt.reading import read_json, read_toml


def test_a_disk_without_locks_is_no_reason_to_stop(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)
    with held(tmp_path / "a.lock"), RunFolder(tmp_path / "run").claimed() as mine:
        assert mine


def test_other_errors_of_a_lock_are_told(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(OSError, match="Input/output"), held(tmp_path / "a.lock"):
        pass


def test_a_lock_has_one_holder(tmp_path):
    with lock_file(tmp_path / "a") as one, lock_file(tmp_path / "a") as other:
        assert locked(one) and not locked(other)


def test_a_byte_order_mark_is_no_text(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert read_toml(tmp_path / "a") == {"a": 1}
    (tmp_path / "a").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_json(tmp_path / "a") == {"a": 1}
