import errno

from reprt.files import file_lock, read_json, read_toml
from reprt.lab.folder import RunFolder


def test_a_lock_has_one_holder_and_keeps_what_the_file_holds(tmp_path):
    path = tmp_path / "new" / "a"
    with file_lock(path) as mine, file_lock(path, wait=False) as too:
        path.write_text("a note")
        assert mine and not too
    with file_lock(path, wait=False) as mine:
        assert mine and path.read_text() == "a note"


def test_a_disk_without_locks_is_no_reason_to_stop(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("portalocker.portalocker.LOCKER", flock)
    with file_lock(tmp_path / "a") as one, RunFolder(tmp_path / "run").claimed() as two:
        assert one and two


def test_a_byte_order_mark_is_no_text(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert read_toml(tmp_path / "a") == {"a": 1}
    (tmp_path / "a").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_json(tmp_path / "a") == {"a": 1}


def test_a_lock_follows_no_link(tmp_path):
    outside, lock = tmp_path / "outside", tmp_path / ".repe.lock"
    lock.symlink_to(outside)
    with file_lock(lock) as mine:
        assert mine and not outside.exists() and not lock.is_symlink()
