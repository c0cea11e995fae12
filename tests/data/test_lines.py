import gzip
import io

import pytest

from reprt.constants import RESERVED
from reprt.data.corpora.lines import decode_lines, read_lines
from reprt.data.tokenizers.wordpiece import WordPiece

# Signs that end no line, though `str.splitlines` takes them for the end of one.
SIGNS = "quatro\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029cinco"
TEXT = f"um\n\ndois três\r\n{SIGNS}\rseis\n\rsete"
LINES = ["um", "", "dois três", f"{SIGNS}\rseis", "\rsete"]
TEXTS = [
    ("", []),
    ("um", ["um"]),
    ("\n", [""]),
    ("\r\n", [""]),
    ("um\n\n", ["um", ""]),
    (TEXT, LINES),
    (f"{TEXT}\r\n", LINES),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "text"


@pytest.mark.parametrize("text, expected", TEXTS)
def test_where_lines_end(path, text, expected):
    path.write_bytes(text.encode())
    assert read_lines(path) == expected
    assert list(decode_lines(io.BytesIO(text.encode()), "a stream")) == expected
    if len(set(expected)) == len(expected):  # the pieces of a vocabulary differ
        data = "".join(f"{piece}\n" for piece in RESERVED) + text
        assert WordPiece.from_bytes(data.encode()).vocabulary == (
            *RESERVED,
            *expected,
        )


def test_a_byte_order_mark_is_no_part_of_the_first_line(path):
    path.write_text("\ufeffum\n\ufeffdois", "utf-8")
    assert read_lines(path) == ["um", "\ufeffdois"]
    path.write_bytes("\ufeffum".encode() + b"\xea\n")
    with pytest.raises(ValueError, match="the byte 0xea in line 1"):
        read_lines(path)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@pytest.mark.parametrize("index", range(5))
def test_what_is_not_utf8_is_told_by_its_line(path, index, ending):
    parts = [part.encode() for part in ("um", "", "dois três", SIGNS, "sete")]
    parts[index] += b"\xea"
    path.write_bytes(ending.join(parts))
    stream = io.BytesIO(path.read_bytes())
    for read in (read_lines, lambda path: list(decode_lines(stream, path))):
        with pytest.raises(ValueError) as error:
            read(path)
        assert str(error.value) == (
            f"Expected {path} to be UTF-8. Received: the byte 0xea in line {index + 1}."
        )


def test_gzip_is_read_by_its_name(path):
    path = path.with_suffix(".gz")
    path.write_bytes(gzip.compress(TEXT.encode()))
    assert read_lines(path) == LINES
    archive = gzip.compress(TEXT.encode() * 9, mtime=0)
    for content in (
        TEXT.encode(),
        archive[:-9],
        archive[:-8] + bytes(8),
        archive[:12],
    ):
        path.write_bytes(content)
        with pytest.raises(
            ValueError, match=f"Expected {path} to be a whole gzip f"
        ):
            read_lines(path)
