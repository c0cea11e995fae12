import pickle

import numpy as np
import pytest

from reprt.data.rows import Rows, read_rows, shards, write_rows

ARRAYS = [np.array(row, "int32") for row in ([5, 6, 7], [], [8], [9, 10])]


@pytest.fixture
def rows():
    return Rows.of(ARRAYS)


def same(rows, arrays):
    return [row.tolist() for row in rows] == [row.tolist() for row in arrays]


def test_rows_are_read_as_a_list_of_arrays_is(rows):
    assert len(rows) == 4 and rows.lengths.tolist() == [3, 0, 1, 2]
    assert same(rows, ARRAYS) and same(reversed(rows), ARRAYS[::-1])
    assert same(rows[1:], ARRAYS[1:]) and same(rows[::-2], ARRAYS[::-2])
    assert rows[-1].tolist() == rows[np.int64(3)].tolist() == [9, 10]
    assert rows[0].dtype == np.int32 and rows[0].base is rows.ids
    for index in (4, -5):
        with pytest.raises(IndexError):
            rows[index]


def test_rows_stay_rows(rows):
    assert Rows.of(rows) is rows
    assert same(pickle.loads(pickle.dumps(rows)), ARRAYS)


def test_a_file_gives_back_what_was_written_into_it(rows, tmp_path):
    path = tmp_path / "new" / "rows"
    write_rows(Rows.joined([rows, rows]), path)
    assert same(read_rows(path), ARRAYS * 2)
    assert read_rows(path).ids.dtype == np.int32
    write_rows(rows, path)
    assert same(read_rows(path), ARRAYS)
    assert list(path.parent.iterdir()) == [path]  # and no temporary file
    write_rows(Rows(np.array([], "int32"), []), path)
    assert len(read_rows(path)) == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: whole[:7],
        lambda whole: whole[:-1],
        lambda whole: b"text",
    ],
)
def test_a_damaged_file_is_told_by_its_name(rows, tmp_path, damage):
    path = tmp_path / "rows"
    write_rows(rows, path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=f"{path} is damaged: "):
        read_rows(path)


def test_rows_of_several_files_are_read_as_those_of_one(tmp_path, monkeypatch):
    monkeypatch.setattr("reprt.data.rows.SHARD", 2)
    rows, parts = Rows.of([*ARRAYS, *ARRAYS[1:]]), []
    for number, part in enumerate(shards(len(rows))):
        write_rows(Rows.of(rows[part]), tmp_path / f"{number}")
        parts.append(read_rows(tmp_path / f"{number}"))
    joined = Rows.joined(parts)
    assert len(parts) == 4 and same(joined, rows) and same(joined[::-1], rows[::-1])
    assert joined.lengths.tolist() == rows.lengths.tolist()
    assert joined.ids.tolist() == rows.ids.tolist()
    # The same for all, and for no others.
    assert joined.digest() == rows.digest() != Rows.of(rows[:-1]).digest()
    moved = Rows(rows.ids, sorted(rows.lengths))
    assert moved.digest() != rows.digest()


def test_a_digest_is_that_of_runs_begun_before(rows):
    digest = "ad729f8c0453e0b28f820addf08240182d65382729386e0b3fceb028af9de8ef"
    assert rows.digest() == digest


def test_what_is_read_is_mapped_and_not_copied(rows, tmp_path):
    write_rows(rows, tmp_path / "rows")
    row = read_rows(tmp_path / "rows")[0]
    assert not row.flags.owndata and not row.flags.writeable
