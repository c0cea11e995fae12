"""Archives made by those who wish harm, or cut and garbled on their way."""

import gzip
import io
import lzma
import os
import pathlib
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprt.data.corpora.archive import ArchiveError, unpack


def member(name, content=b"", **attributes):
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    for attribute, value in attributes.items():
        setattr(entry, attribute, value)
    return entry, content


def link(name, target, kind=tarfile.SYMTYPE):
    return member(name, type=kind, linkname=target)


def packed(*members):
    """The bytes of an archive, be its headers true or not."""
    parts = []
    for entry, content in members:
        parts.append(entry.tobuf(tarfile.GNU_FORMAT))
        parts.append(content + bytes(-len(content) % tarfile.BLOCKSIZE))
    return b"".join(parts) + bytes(2 * tarfile.BLOCKSIZE)


def pax(records, content=b""):
    with io.BytesIO() as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            entry, _ = member("a", content)
            entry.pax_headers = records
            tar.addfile(entry, io.BytesIO(content))
        return file.getvalue()


HOSTILE = {
    "link": (packed(link("a", "b")), "'a' is no plain file"),
    "link out": (packed(link("a", ".."), member("a/evil")), "'a' is no plain file"),
    "hard link": (packed(link("a", "/etc/passwd", tarfile.LNKTYPE)), "'a' is no plain"),
    "device": (packed(member("a", type=tarfile.BLKTYPE)), "'a' is no plain file"),
    "up": (packed(member("a", b"x"), member("../evil")), "'../evil' would be written"),
    "up within": (packed(member("a/../../evil")), "would be written outside"),
    "folder up": (packed(member("..", type=tarfile.DIRTYPE)), "be written outside"),
    "absolute": (packed(member("/tmp/evil")), "'/tmp/evil' would be written outside"),
    "pax path": (pax({"path": "/tmp/evil"}), "'/tmp/evil' would be written outside"),
    "pax sparse": (pax({"GNU.sparse.size": "9", "GNU.sparse.map": "0,1"}), "no plain"),
    "file and folder": (packed(member("a", b"x"), member("a/b")), "'a/b' cannot be"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives_are_refused(tmp_path, name):
    content, message = HOSTILE[name]
    (tmp_path / "thesis.txt").write_text("years of work")
    (tmp_path / "hostile.tgz").write_bytes(gzip.compress(content))
    with pytest.raises(ArchiveError) as error:
        unpack(tmp_path / "hostile.tgz", tmp_path / "new" / "folder")
    said = str(error.value)
    assert "hostile.tgz is refused, and nothing of it was unpacked: " in said
    assert message in said
    assert not list((tmp_path / "new").iterdir())
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
    assert not pathlib.Path("/tmp/evil").exists()


TEXT = os.urandom(2000)
TAR = packed(member("b", type=tarfile.DIRTYPE), member("b/c", TEXT), member("d", b"d"))
PLAIN = {"gz": gzip.compress, "xz": lzma.compress, "tar": bytes}


def outcome(folder, content):
    """What is unpacked; None if the archive is refused."""
    (folder / "a").write_bytes(content)
    try:
        place = unpack(folder / "a", folder / "new" / "folder")
    except ArchiveError as error:
        assert str(folder / "a") in str(error)
        assert not list((folder / "new").iterdir())
        return None
    found = {str(path.relative_to(place)): path for path in place.rglob("*")}
    assert not any(path.is_symlink() for path in found.values())
    place.rename(folder / f"done-{len(list(folder.iterdir()))}")
    return set(found)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(list(PLAIN)), share=st.floats(0, 1, exclude_max=True)
)
def test_an_archive_that_is_cut_is_refused(tmp_path_factory, kind, share):
    whole = PLAIN[kind](TAR)
    # The second block of the end, alone, is no loss.
    cut = int(share * (len(whole) - tarfile.BLOCKSIZE * (kind == "tar")))
    assert outcome(tmp_path_factory.mktemp("cut"), whole[:cut]) is None


def test_what_is_no_archive_is_refused(tmp_path):
    for content in (b"", b"um texto\n", b"PK\3\4" + bytes(600)):
        assert outcome(tmp_path, content) is None
