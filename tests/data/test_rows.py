import pickle

import numpy as np
import pytest

from reprt.data.rows import Rows, read_rows, write_rows

ARRAYS = [np.array(row, "int32") for row in ([5, 6, 7], [], [8], [9, 10])]


@pytest.fixture
def rows():
    return Rows.of(ARRAYS)


def are_equal(rows, arrays):
    return [row.tolist() for row in rows] == [row.tolist() for row in arrays]


def test_rows_are_read_as_a_list_of_arrays_is(rows):
    assert len(rows) == 4 and rows.lengths.tolist() == [3, 0, 1, 2]
    assert are_equal(rows, ARRAYS) and are_equal(reversed(rows), ARRAYS[::-1])
    assert are_equal(rows[1:], ARRAYS[1:])
    assert are_equal(rows[::-2], ARRAYS[::-2])
    assert rows[-1].tolist() == rows[np.int64(3)].tolist() == [9, 10]
    assert rows[0].base is rows.ids and Rows.of(rows) is rows
    assert are_equal(pickle.loads(pickle.dumps(rows)), ARRAYS)
    for index in (4, -5):
        with pytest.raises(IndexError):
            rows[index]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_file_gives_back_what_was_written_into_it(rows, tmp_path, count):
    path = tmp_path / "new" / "rows"
    write_rows([rows] * count, path)
    result = read_rows(path)
    assert are_equal(result, ARRAYS * count)
    assert result.ids.dtype == np.int32
    assert list(path.parent.iterdir()) == [path]  # and no temporary file
    # Mapped, not copied.
    assert not result.ids.flags.owndata
    assert not result.ids.flags.writeable


@pytest.mark.parametrize("end", [0, 7, -1, -4])
def test_a_damaged_file_is_told_by_its_name(rows, tmp_path, end):
    path = tmp_path / "rows"
    write_rows([rows], path)
    path.write_bytes(path.read_bytes()[:end])
    with pytest.raises(ValueError, match=f"{path} is damaged: .* Remove it."):
        read_rows(path)
