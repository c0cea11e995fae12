"""Archives made by those who wish harm, or cut and garbled on their way."""

import gzip
import io
import random
import tarfile

import pytest

from reprt.data.corpora import ted

WORDS = random.Random(1).randbytes(3000).hex(" ")
FILES = {
    f"datasets/gl_to_en/{name}": f"{name} {WORDS}\n"
    for split in ted.SPLITS
    for name in ted.PAIRS["gl_to_en"].files(split)
}


def pack(*members, mode="w:gz"):
    """An archive of the pair's files, with others before them."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode=mode) as tar:
        for entry in members:
            tar.addfile(entry, io.BytesIO(bytes(entry.size)))
        for name, text in FILES.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return archive.getvalue()


def member(name, **attributes):
    entry = tarfile.TarInfo(name)
    for attribute, value in attributes.items():
        setattr(entry, attribute, value)
    return entry


def link(name, target, kind=tarfile.SYMTYPE):
    return member(name, type=kind, linkname=target)


@pytest.fixture
def read(tmp_path):
    """Reads the pair from an archive of that content."""

    def read(content):
        archive = tmp_path / "mine.tgz"
        archive.write_bytes(content)
        return ted.read(archive, "gl_to_en")

    return read


MEMBERS = {
    "link": [link("datasets/gl_to_en/gl.train", "/etc/passwd")],
    "link to a folder": [
        link("datasets", ".."),
        link("datasets/gl_to_en", "/tmp"),
    ],
    "hard link": [
        link("datasets/gl_to_en/en.dev", "/etc/passwd", tarfile.LNKTYPE)
    ],
    "device": [member("datasets/gl_to_en/en.dev", type=tarfile.BLKTYPE)],
    "outside": [member("../evil", size=1), member("/tmp/evil", size=1)],
    "pax": [member("a", size=1, pax_headers={"path": "/tmp/evil"})],
}


@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_an_archive_is_read_and_writes_nothing(tmp_path, read, name, mode):
    corpus = read(pack(*MEMBERS[name], mode=mode))
    assert corpus.train.source[0] == FILES["datasets/gl_to_en/gl.train"][:-1]
    assert corpus.dev.target[0] == FILES["datasets/gl_to_en/en.dev"][:-1]
    assert [path.name for path in tmp_path.rglob("*")] == ["mine.tgz"]


def sparse(name, size):
    """A member that claims as much, and has nothing but a hole."""
    headers = {"major": "0", "minor": "1", "map": "0,0", "size": str(size)}
    headers = {f"GNU.sparse.{key}": value for key, value in headers.items()}
    return member(name, pax_headers=headers | {"GNU.sparse.name": name})


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_a_member_that_claims_more_than_the_archive_can_have_is_refused(
    read, mode
):
    claim = sparse("datasets/gl_to_en/gl.train", 2**43)
    with pytest.raises(ValueError, match="gl.train, of 8,796,093,022,208"):
        read(pack(claim, mode=mode))
    # Another pair's files are not read.
    claim = sparse("datasets/pt_to_en/pt.train", 2**43)
    assert read(pack(claim, mode=mode)).train.source


def test_a_header_that_claims_more_than_there_is_memory_is_refused(read):
    header = member("a", type=tarfile.XHDTYPE, size=2**43).tobuf(
        tarfile.PAX_FORMAT
    )
    with pytest.raises(ValueError, match="mine.tgz "):
        read(header + pack(mode="w"))


ARCHIVE = pack()
CONTENTS = {
    "cut in half": ARCHIVE[: len(ARCHIVE) // 2],
    "garbled": ARCHIVE[:500] + bytes(50) + ARCHIVE[550:],
    "page": b"<!DOCTYPE html>" * 100,
    "compressed page": gzip.compress(b"<!DOCTYPE html>" * 100),
    "nothing": b"",
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_damage_is_told(read, content):
    with pytest.raises(
        ValueError, match=r"mine.tgz should be a whole tar .* it again"
    ):
        read(content)
