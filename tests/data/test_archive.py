import gzip
import io
import random
import tarfile
import threading
from concurrent import futures

import pytest

from reprt.data.corpora import archive as module
from reprt.data.corpora.archive import ArchiveError, unpack

CONTENT = random.Random(1).randbytes(300_000)


def _archive(path, *members, mode="w:gz"):
    with tarfile.open(path, mode) as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(bytes(member.size)))
    return path


def _member(name, **attributes):
    member = tarfile.TarInfo(name)
    for key, value in attributes.items():
        setattr(member, key, value)
    return member


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_unpack(tmp_path, mode):
    archive = _archive(tmp_path / "a", _member("b/c", size=5), mode=mode)

    folder = unpack(archive, tmp_path / "new" / "folder")

    assert folder == tmp_path / "new" / "folder"
    assert (folder / "b" / "c").read_bytes() == bytes(5)
    assert list((tmp_path / "new").iterdir()) == [folder]


def test_unpack_leaves_a_whole_folder_alone(tmp_path):
    (tmp_path / "folder").mkdir()

    unpack("no such archive", tmp_path / "folder")

    assert not list((tmp_path / "folder").iterdir())


def _damaged():
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        member = _member("file", size=len(CONTENT))
        archive.addfile(member, io.BytesIO(CONTENT))
    whole = gzip.compress(tar.getvalue())
    yield "truncated", whole[: len(whole) // 2]
    yield "truncated in its first bytes", whole[:30]
    yield "without its last bytes", whole[:-4]
    yield "wrong checksum", whole[:-8] + bytes(4) + whole[-4:]
    yield "garbled", whole[:1000] + bytes(1000) + whole[2000:]
    yield "uncompressed and truncated", tar.getvalue()[:100_000]
    yield "text", b"<!DOCTYPE html>" * 100
    yield "compressed text", gzip.compress(b"<!DOCTYPE html>" * 100)
    yield "nothing", b""


@pytest.mark.parametrize("_, data", _damaged(), ids=[name for name, _ in _damaged()])
def test_damaged_archives_leave_nothing_behind(tmp_path, _, data):
    (tmp_path / "archive").write_bytes(data)

    with pytest.raises(ArchiveError, match="should be a whole tar .*Get it again"):
        unpack(tmp_path / "archive", tmp_path / "new" / "folder")
    assert not list((tmp_path / "new").iterdir())


def test_unpacking_twice_at_once(tmp_path, monkeypatch):
    archive = _archive(tmp_path / "a", _member("b/c", size=5))
    extract, both_are_done = module._extract, threading.Barrier(2, timeout=5)

    def extract_and_wait(*args):
        extract(*args)
        both_are_done.wait()

    monkeypatch.setattr(module, "_extract", extract_and_wait)
    with futures.ThreadPoolExecutor() as pool:
        one, other = pool.map(unpack, [archive] * 2, [tmp_path / "new" / "folder"] * 2)

    assert one == other and (one / "b" / "c").read_bytes() == bytes(5)
    assert list((tmp_path / "new").iterdir()) == [one]


def test_unpacks_what_is_asked_for_past_what_is_not_safe(tmp_path):
    link = _member("link", type=tarfile.SYMTYPE, linkname="/etc/passwd")
    members = [link, _member("./a/b", size=5), _member("../evil"), _member("c")]
    archive = _archive(tmp_path / "a.tgz", *members)

    folder = unpack(archive, tmp_path / "folder", only=["a/b"])

    assert [path.name for path in folder.rglob("*")] == ["a", "b"]
    with pytest.raises(ArchiveError, match="is refused.* has no d and no e"):
        unpack(archive, tmp_path / "other", only=["e", "c", "d"])
    assert not (tmp_path / "other").exists()
