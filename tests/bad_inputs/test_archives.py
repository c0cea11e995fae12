"""Archives made by those who wish harm, or cut and garbled on their way."""

import gzip
import io
import lzma
import os
import pathlib
import socket
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprt_command import main
from reprt.data.corpora.archive import MOST_MEMBERS, SMALL, ArchiveError, unpack

RECIPE = str(pathlib.Path(__file__).parents[2] / "experiments" / "pt_to_en.toml")


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


def chain_of_links():
    """Links so deep that `os.path.realpath` gives up, as in CVE-2025-4517."""
    deep, steps, place, members = "d" * 247, "abcdefghijklmnop", "", []
    for step in steps:
        members.append(member(f"{place}{deep}", type=tarfile.DIRTYPE))
        members.append(link(f"{place}{step}", deep))
        place += f"{deep}/"
    long = "/".join([*steps, "l" * 254])
    return [
        *members,
        link(long, "../" * len(steps)),
        link("escape", f"{long}/../../thesis.txt"),
        link("flag", "escape", tarfile.LNKTYPE),
        member("flag", b"overwritten"),
    ]


def sparse():
    """A file of 8 TB, by the form of GNU's sparse files."""
    header = bytearray(member("big", type=tarfile.GNUTYPE_SPARSE)[0].tobuf())
    header[483:495] = tarfile.itn(8 << 40, 12, tarfile.GNU_FORMAT)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + bytes(2 * tarfile.BLOCKSIZE)


def pax(records, content=b""):
    with io.BytesIO() as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            entry, _ = member("a", content)
            entry.pax_headers = records
            tar.addfile(entry, io.BytesIO(content))
        return file.getvalue()


HUGE = 8 << 40
HOSTILE = {
    "chain of links": (packed(*chain_of_links()), "'a' is no plain file"),
    "link": (packed(link("a", "b")), "'a' is no plain file"),
    "link out": (packed(link("a", ".."), member("a/evil")), "'a' is no plain file"),
    "hard link": (packed(link("a", "/etc/passwd", tarfile.LNKTYPE)), "'a' is no plain"),
    "pipe": (packed(member("a", type=tarfile.FIFOTYPE)), "'a' is no plain file"),
    "device": (packed(member("a", type=tarfile.BLKTYPE)), "'a' is no plain file"),
    "another type": (packed(member("a", type=b"Z")), "'a' is no plain file"),
    "up": (packed(member("a", b"x"), member("../evil")), "'../evil' would be written"),
    "up within": (packed(member("a/../../evil")), "would be written outside"),
    "folder up": (packed(member("..", type=tarfile.DIRTYPE)), "be written outside"),
    "absolute": (packed(member("/tmp/evil")), "'/tmp/evil' would be written outside"),
    "pax path": (pax({"path": "/tmp/evil"}), "'/tmp/evil' would be written outside"),
    "huge": (packed(member("big", size=HUGE)), "'big' it holds 8,796,093,022,208"),
    "huge in parts": (
        packed(*[member(name, bytes(SMALL // 2)) for name in "abc"]),
        "'c' it holds 100,663,296",
    ),
    "sparse": (sparse(), "'big' is no plain file"),
    "pax sparse": (pax({"GNU.sparse.size": str(HUGE), "GNU.sparse.map": "0,1"}), "pla"),
    "long name": (packed(member("n", size=HUGE, type=tarfile.GNUTYPE_LONGNAME)), "'n'"),
    "pax header": (packed(member("n", size=HUGE, type=tarfile.XHDTYPE)), "a header of"),
    "many": (
        packed(*[member("a", type=tarfile.DIRTYPE)] * (MOST_MEMBERS + 1)),
        "'a' is one more than 10,000",
    ),
    "file and folder": (packed(member("a", b"x"), member("a/b")), "'a/b' cannot be"),
    "folder and file": (packed(member("a/b"), member("a", b"x")), "'a' cannot be"),
    "its own name": (packed(member(".", b"x")), "'.' cannot be written"),
    "long path": (pax({"path": "a" * 999}), "cannot be written (File name too long)"),
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
BAD_TARS = {
    "negative size": packed(member("a", size=-512)),
    "pax of a negative size": pax({"size": "-5"}),
    "pax with a NUL": pax({"path": "a\0b"}),
    "no number of sparse parts": pax(
        {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}, b"x" * 600
    ),
    "garbled second header": TAR[:512] + b"?" + TAR[513:],
    "without an end": TAR[: -2 * tarfile.BLOCKSIZE],
}


@pytest.mark.parametrize("name", BAD_TARS)
@pytest.mark.parametrize("compress", PLAIN.values(), ids=PLAIN)
def test_damaged_tars_are_refused(tmp_path, name, compress):
    (tmp_path / "a").write_bytes(compress(BAD_TARS[name]))
    with pytest.raises(ArchiveError, match="/a should be a whole tar .*Get it again"):
        unpack(tmp_path / "a", tmp_path / "new" / "folder")
    assert not list((tmp_path / "new").iterdir())


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


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(["gz", "tar", "xz"]),
    changes=st.lists(
        st.tuples(st.integers(0, len(TAR) - 1), st.binary(min_size=1, max_size=8)),
        min_size=1,
        max_size=4,
    ),
    compressed_first=st.booleans(),
)
def test_garbled_bytes_are_found_out_or_harmless(
    tmp_path_factory, kind, changes, compressed_first
):
    content = bytearray(PLAIN[kind](TAR) if compressed_first else TAR)
    for place, new in changes:
        place %= len(content)
        content[place : place + len(new)] = new
    if not compressed_first:
        content = PLAIN[kind](bytes(content))
    outcome(tmp_path_factory.mktemp("garbled"), bytes(content))


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.binary(max_size=2000))
def test_what_is_no_archive_is_refused(tmp_path_factory, content):
    assert outcome(tmp_path_factory.mktemp("other"), content) is None


def listening(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


@pytest.mark.parametrize(
    "kind, make",
    [("a pipe", os.mkfifo), ("a socket", listening)],
)
@pytest.mark.parametrize("name", ["text", "text.tgz"])
def test_a_text_is_a_file_or_a_folder(tmp_path, monkeypatch, capsys, name, kind, make):
    monkeypatch.chdir(tmp_path)
    make(name)
    assert main(["train", RECIPE, "--text", name]) == 2
    said = capsys.readouterr().err
    assert f"{name}, given as a path" in said and f"Received {kind}: '" in said


def test_a_device_is_no_text(capsys):
    assert main(["train", RECIPE, "--text", "/dev/zero"]) == 2
    assert "Expected a file. Received a device: '/dev/zero'" in capsys.readouterr().err
