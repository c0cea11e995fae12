import bz2
import gzip
import io
import lzma
import pickle
import zipfile

import pytest

from reprt.constants import RESERVED
from reprt.data.corpora import lines
from reprt.data.corpora.lines import Lines, decoded
from reprt.data.tokenizers.wordpiece import WordPiece

# Signs that end no line, though `str.splitlines` takes them for the end of one.
WITHIN = "quatro\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029cinco"
TEXT = f"um\n\ndois três\r\n{WITHIN}\rseis\n\rsete"
LINES = ["um", "", "dois três", f"{WITHIN}\rseis", "\rsete"]
TEXTS = [
    ("", []),
    ("um", ["um"]),
    ("\n", [""]),
    ("\r", [""]),
    ("\r\n", [""]),
    ("um\n\n", ["um", ""]),
    ("um\n\ndois", ["um", "", "dois"]),
    ("um\r\ndois\r\n", ["um", "dois"]),
    # Without any LF, CR ends a line.
    ("um\rdois", ["um", "dois"]),
    ("um\r\rdois\r", ["um", "", "dois"]),
    (f"{WITHIN}\r{WITHIN}\r", [WITHIN, WITHIN]),
    # With one it does not, wherever the two stand.
    ("um\rdois\n", ["um\rdois"]),
    ("um\ndois\rtrês", ["um", "dois\rtrês"]),
    ("um\r\ndois\rtrês\r\n", ["um", "dois\rtrês"]),
    ("um\rdois\ntrês", ["um\rdois", "três"]),
    (TEXT, LINES),
    (f"{TEXT}\r\n", LINES),
]


@pytest.fixture(params=[1, 2**26], ids=["mapped", "read"])
def path(request, tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LARGE", request.param)
    return tmp_path / "text"


@pytest.mark.parametrize("text, expected", TEXTS)
def test_where_lines_end(path, text, expected):
    path.write_bytes(text.encode())
    found = Lines.read(path)
    assert list(found) == expected == [found[i] for i in range(len(found))]
    assert found[1:-1] == expected[1:-1] and found[-1:] == expected[-1:]
    assert list(pickle.loads(pickle.dumps(found))) == expected


@pytest.mark.parametrize("text, expected", TEXTS)
def test_lines_of_a_stream_and_of_a_vocabulary_end_there_too(text, expected):
    assert list(decoded(io.BytesIO(text.encode()), "a stream")) == expected
    if len(set(expected)) == len(expected):  # the pieces of a vocabulary differ
        ending = "\n" if "\n" in text else "\r"
        data = "".join(f"{piece}{ending}" for piece in RESERVED) + text
        assert WordPiece.from_bytes(data.encode()).vocabulary == [*RESERVED, *expected]


def test_a_stream_is_read_line_by_line():
    def stream():
        yield b"um\n"
        raise OSError("it has broken off")

    found = decoded(stream(), "a stream")
    assert next(found) == "um"
    with pytest.raises(OSError, match="broken off"):
        next(found)


def test_some_of_the_lines(path):
    path.write_bytes(TEXT.encode())
    few = Lines.read(path).chosen([True, False, True, False, True])
    assert list(few) == ["um", "dois três", "\rsete"] and len(few) == 3
    assert list(few.chosen([False, True, True])) == ["dois três", "\rsete"]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("at", range(5))
def test_what_is_not_utf8_is_told_by_its_line(path, at, ending):
    content = ["um", "", "dois três", WITHIN, "sete"]
    parts = [part.encode() for part in content]
    parts[at] += b"\xea"
    path.write_bytes(ending.join(parts))
    message = f"Expected {path} to be UTF-8. Received: the byte 0xea in line {at + 1}."
    with pytest.raises(ValueError) as told:
        Lines.read(path)
    assert str(told.value) == message


SENTENCES = "Où est la gare ?\nElle est là.\n"


def document():
    """A file of an office."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", SENTENCES * 20)
    return file.getvalue()


NO_TEXT = {
    "gzip": (gzip.compress(SENTENCES.encode()), 1),
    "xz": (lzma.compress(SENTENCES.encode()), 1),
    "bz2": (bz2.compress(SENTENCES.encode()), 1),
    "office": (document(), 1),
    "old office": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), 1),
    "PDF": (b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj", 2),
    "Latin-1": (SENTENCES.encode("latin-1"), 1),
    "Windows": (f"a\nb\n{SENTENCES}".encode("cp1252"), 3),
    "Shift JIS": ("a\n駅はどこ\n".encode("shift-jis"), 2),
    "UTF-16": (SENTENCES.encode("utf-16"), 1),
    "UTF-32": (SENTENCES.encode("utf-32"), 1),
    "UTF-16 without a mark": (SENTENCES.encode("utf-16-le"), 1),
    "UTF-16 the other way": ("a b".encode("utf-16-be"), 1),
    # Most bytes of Cyrillic are ASCII; its line breaks are not.
    "Cyrillic UTF-16": ("да\nнет\n".encode("utf-16-le"), 2),
    "Cyrillic UTF-16 the other way": ("да\nнет\n".encode("utf-16-be"), 1),
}


@pytest.mark.parametrize("content, line", NO_TEXT.values(), ids=NO_TEXT)
def test_what_is_no_text_is_told_by_its_line(path, content, line):
    path.write_bytes(content)
    for read in (
        lambda: Lines.read(path),
        lambda: list(decoded(io.BytesIO(content), path)),
    ):
        with pytest.raises(ValueError) as told:
            read()
        assert str(told.value).startswith(f"Expected {path} to be UTF-8. Received: ")
        assert str(told.value).endswith(f" in line {line}.")


def test_a_line_of_nul_bytes_is_one_that_shows_nothing(path):
    path.write_bytes(b"um\n\0\n\0\0\r\ndois")
    assert list(Lines.read(path)) == ["um", "\0", "\0\0", "dois"]


def test_gzip_is_read_by_its_name(path):
    path = path.with_suffix(".gz")
    path.write_bytes(gzip.compress(TEXT.encode()))
    found = Lines.read(path)
    assert list(found) == LINES == list(pickle.loads(pickle.dumps(found)))
    path.write_bytes(gzip.compress(b"um\n\xea", mtime=0))
    with pytest.raises(ValueError, match=f"Expected {path} to be UTF-8. .* in line 2."):
        Lines.read(path)


PACKED = gzip.compress(TEXT.encode() * 9, mtime=0)


@pytest.mark.parametrize(
    "content",
    [TEXT.encode(), PACKED[:-9], PACKED[:5], PACKED[:-8] + bytes(8)]
    + [PACKED[:12] + bytes(20) + PACKED[32:]],
)
def test_damaged_gzip_is_told(path, content):
    path = path.with_suffix(".gz")
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"Expected {path} to be a whole gzip file. R"):
        Lines.read(path)
