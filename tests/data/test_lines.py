import pickle

import pytest

from reprt.data.corpora import lines
from reprt.data.corpora.lines import Lines
from reprt.files import read_text

TEXT = "um\n\ndois três\r\nquatro\x0b\x85cinco\rseis\n\rsete"


@pytest.fixture(params=[1, 2**26], ids=["mapped", "read"])
def path(request, tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LARGE", request.param)
    monkeypatch.setattr(lines, "_CHUNK", 3)
    return tmp_path / "text"


@pytest.mark.parametrize("text", ["", "\n", "\r", "um", TEXT, f"{TEXT}\r\n"])
def test_lines_end_at_any_line_break_and_at_nothing_else(path, text):
    path.write_bytes(text.encode())
    found, expected = Lines.read(path), read_text(path).split("\n")
    assert list(found) == expected == [found[i] for i in range(len(found))]
    assert found[1:-1] == expected[1:-1] and found[-1] == expected[-1]
    assert list(pickle.loads(pickle.dumps(found))) == expected


def test_some_of_the_lines(path):
    path.write_bytes(TEXT.encode())
    few = Lines.read(path).chosen([True, False, True, False, True, False, True])
    assert list(few) == ["um", "dois três", "seis", "sete"] and len(few) == 4
    assert list(few.chosen([False, True, True, False])) == ["dois três", "seis"]


@pytest.mark.parametrize("at", range(7))
def test_what_is_not_utf8_is_told_by_its_line(path, at):
    parts = TEXT.encode().replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    parts[at] += b"\xea"
    path.write_bytes(b"\n".join(parts))
    with pytest.raises(ValueError, match=f"byte 0xea at .*, in line {at + 1}") as told:
        Lines.read(path)
    with pytest.raises(ValueError) as expected:
        read_text(path)
    assert str(told.value) == str(expected.value)
