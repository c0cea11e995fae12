"""Tables of sentence pairs, one column a language: which files, and how they are read.

Writers of `.tsv` and `.csv` disagree on quotes. Each reading here is strict, so that a
file of another writer hardly ever fits. What fits two readings is refused.
"""

import csv
import hashlib
import itertools
import json
import re
import reprlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from reprt.data.corpora.lines import lines
from reprt.imports import load_pyarrow

TABLES = ".tsv", ".csv", ".jsonl", ".parquet"
Quoting = Literal["none", "double", "backslash", "escapes"]

# The usual one stands first.
DELIMITERS = {".tsv": "\t,;|", ".csv": ",;\t|"}
# A backslash before a character that its writers never leave bare, or before another.
_ESCAPE = re.compile(r'\\([\\"\t,;|\r\n])|\\')
# What PostgreSQL's COPY and MySQL's client write after a backslash.
_MEANINGS = {
    "\\": "\\",
    "0": "\0",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
# The csv module takes a bare CR for the end of a row, this for a letter. Unicode
# promises that no text has it.
_CR = "\ufdd0"
_HOW_TO_READ = (
    "Say how cells are quoted by --set text.quoting=NAME, in Python by quoting=: "
    "'none' if quotes are part of the sentences, 'double' if cells stand in quotes and "
    "quotes within are doubled, 'backslash' if those have a \\ before them, 'escapes' "
    "if a line break is written as \\n and a tab as \\t."
)
_HOW_TO_NAME = (
    'Name columns by --set \'text.columns=["SOURCE","TARGET"]\', in Python by '
    "columns=, or the languages by --pair."
)


class Row(NamedTuple):
    """A pair, and the number of the line, or the row, where it begins."""

    number: int
    source: str
    target: str


def is_table(path: str) -> bool:
    """Whether it is the name of a table that `read_table` reads."""
    return Path(path).suffix.lower() in TABLES


def read_table(
    path: Path,
    columns: Sequence[str],
    quoting: Quoting | None = None,
) -> Iterator[Row]:
    """Yields the pairs of a table's two columns; what is not clear is a `ValueError`.

    Args:
        path: a file whose name ends with one of `TABLES`.
        columns: the source's and the target's.
        quoting: how `.tsv` and `.csv` treat quotes; by default the one way that fits.
    """
    match path.suffix.lower():
        case ".jsonl":
            return _read_jsonl(path, columns)
        case ".parquet":
            return _read_parquet(path, columns)
        case _:
            return _rows(path, columns, quoting or _quoting(path, columns))


def _quoting(path: Path, columns) -> Quoting:
    """Returns the way of quoting that fits a table, which is read in all of them."""
    first = next(_lines(path), "")
    has_quotes = path.suffix.lower() == ".csv" or first.startswith('"')
    ways = ("double", "backslash", "none") if has_quotes else get_args(Quoting)
    readings: dict[Quoting, tuple[int, str]] = {}
    errors = []
    for way in ways:
        try:
            readings[way] = _count_and_digest(_rows(path, columns, way))
        except ValueError as error:
            errors.append(error)
    if has_quotes and "none" in readings and _contains(path, '"'):
        # Quotes around cells are usual here. But a cell of several lines, each of
        # which would be a row, has begun with a quote that is part of its sentence.
        line_count, _ = readings["none"]
        joins_lines = any(count < line_count for count, _ in readings.values())
        if not joins_lines:
            del readings["none"]
    if not readings:
        raise errors[0]
    first_way, *other_ways = readings
    for way in other_ways:
        if readings[way] != readings[first_way]:
            rows = _rows(path, columns, first_way)
            other_rows = _rows(path, columns, way)
            raise ValueError(_first_difference(path, rows, other_rows))
    return first_way


def _count_and_digest(rows: Iterator[Row]) -> tuple[int, str]:
    count = 0
    sha = hashlib.sha256()
    for count, row in enumerate(rows, 1):
        sha.update(repr(row).encode())
    return count, sha.hexdigest()


def _lines(path: Path) -> Iterator[str]:
    """Yields the lines of a table; rows may end as on old Macs."""
    stripped = (line.rstrip("\r") for line in lines(path))
    first = next(stripped, "")
    second = next(stripped, None)
    if second is None:
        yield from first.split("\r")
    else:
        yield from itertools.chain([first, second], stripped)


def _contains(path: Path, mark: str) -> bool:
    return any(mark in line for line in _lines(path))


def _rows(path: Path, columns, quoting: Quoting) -> Iterator[Row]:
    """Yields the rows of a table by one way of quoting, all of which have to fit."""
    delimiter = _delimiter(path, columns)
    cells_of_rows = _cells(path, delimiter, quoting)
    _, head = next(cells_of_rows, (1, []))
    names = [name.strip() for name in head]
    _check_names(path, names, columns, "line 1")
    source, target = map(names.index, columns)
    for number, cells in cells_of_rows:
        if not any(map(str.strip, cells)):
            continue
        if len(cells) != len(names):
            raise ValueError(
                f"Expected rows of {path} with as many cells as its head, {len(names)}."
                f" Received: {len(cells)} in line {number}. {_HOW_TO_READ}"
            )
        yield Row(number, cells[source], cells[target])


def _delimiter(path: Path, columns) -> str:
    """Returns what parts the names of the columns in the first line."""
    delimiters = DELIMITERS[path.suffix.lower()]
    head = next(_lines(path), "").replace('"', "")
    for delimiter in delimiters:
        names = [name.strip() for name in head.split(delimiter)]
        if set(columns) <= set(names):
            return delimiter
    return delimiters[0]


def _cells(
    path: Path,
    delimiter: str,
    quoting: Quoting,
) -> Iterator[tuple[int, list[str]]]:
    """Yields the cells of each row, and the number of the line where it begins."""
    if quoting in ("none", "escapes"):
        for number, line in enumerate(_lines(path), 1):
            cells = line.split(delimiter)
            if quoting == "escapes":
                cells = [_unescape(cell, path, number) for cell in cells]
            yield number, cells
        return
    rows = _with_breaks(path)
    escape = None
    if quoting == "backslash":
        escape = "\\"
        # The csv module would drop a backslash before any character.
        rows = (_ESCAPE.sub(_double_bare, row) for row in rows)
    # A cell may be longer than the csv module's usual limit.
    csv.field_size_limit(max(csv.field_size_limit(), path.stat().st_size))
    reader = csv.reader(
        (row.replace("\r", _CR) for row in rows),
        delimiter=delimiter,
        escapechar=escape,
        skipinitialspace=_contains(path, f'{delimiter} "'),
        strict=True,
    )
    number = 1
    try:
        for cells in reader:
            cells = [cell.replace(_CR, "\r") for cell in cells]
            # MySQL writes NULL in this way.
            if escape:
                cells = ["" if cell == r"\N" else cell for cell in cells]
            yield number, cells
            number = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"Expected cells of {path} in whole quotes, or without. Received: {error}, "
            f"in the row that begins in line {number}. {_HOW_TO_READ}"
        ) from error


def _with_breaks(path: Path) -> Iterator[str]:
    """Yields the lines of a table, all but the last with their break."""
    rest = _lines(path)
    line = next(rest)
    for following in rest:
        yield f"{line}\n"
        line = following
    yield line


def _double_bare(escape: re.Match) -> str:
    return escape[0] if escape[1] else r"\\"


def _unescape(cell: str, path: Path, number: int) -> str:
    """Returns a cell with what its escapes stand for; NULL has no text."""
    if cell == r"\N":
        return ""
    try:
        return re.sub(r"\\(.?)", lambda match: _MEANINGS[match[1]], cell)
    except KeyError as error:
        raise ValueError(
            f"Expected a \\ in {path} only before {' '.join(_MEANINGS)}. Received: one "
            f"before {error} in line {number}. {_HOW_TO_READ}"
        ) from error


def _check_names(path: Path, names: Sequence[str], columns, where: str):
    """Refuses a table in which a column is missing, or is there twice."""
    for column in columns:
        count = list(names).count(column)
        if count != 1:
            reason = (
                f"without {column}" if not count else f"{column} {count} times"
            )
            raise ValueError(
                f"Expected {path} to have the columns {' and '.join(columns)}, each "
                f"once. Received: {', '.join(names)} in {where}, {reason}. "
                f"{_HOW_TO_NAME}"
            )


def _first_difference(
    path: Path,
    rows: Iterator[Row],
    other_rows: Iterator[Row],
) -> str:
    """Names the first row that two ways of quoting read as two."""
    for row, other_row in itertools.zip_longest(rows, other_rows):
        if row != other_row:
            break
    # One way may read a row more than the other.
    numbers, *sides = zip(*filter(None, (row, other_row)))
    cells = " or ".join(map(reprlib.repr, zip(*sides)))
    return (
        f"Expected {path} to have quotes of one meaning. Received: line "
        f"{min(numbers)}, which may be {cells}. {_HOW_TO_READ}"
    )


def _read_jsonl(path: Path, columns) -> Iterator[Row]:
    """Reads an object a line."""
    names: dict[str, None] = {}
    for number, line in enumerate(lines(path), 1):
        if not line.strip():
            continue
        where = f"line {number}"
        try:
            cells = json.loads(line, object_pairs_hook=_object)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{path} cannot be read as a table: {where}: {error}"
            ) from error
        if not isinstance(cells, dict):
            raise ValueError(
                f"Expected an object in each line of {path}. Received: "
                f"{reprlib.repr(cells)} in {where}."
            )
        names |= dict.fromkeys(cells)
        source, target = map(cells.get, columns)
        yield Row(
            number,
            _sentence(source, path, where),
            _sentence(target, path, where),
        )
    _check_names(path, list(names), columns, "its objects")


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Makes an object, none of whose names may be there twice."""
    cells = dict(pairs)
    if len(cells) < len(pairs):
        raise ValueError(
            f"a name is there twice: {', '.join(n for n, _ in pairs)}"
        )
    return cells


def _read_parquet(path: Path, columns) -> Iterator[Row]:
    pyarrow = load_pyarrow()
    parquet = load_pyarrow("pyarrow.parquet")
    number = 0
    try:
        table = parquet.ParquetDataset(path)
        _check_names(path, table.schema.names, columns, "its schema")
        for part in table.fragments:
            reader = part.to_batches(columns=list(columns), batch_readahead=1)
            for batch in reader:
                sides = [column.to_pylist() for column in batch.columns]
                for number, pair in enumerate(zip(*sides), number + 1):
                    where = f"row {number}"
                    cells = [_sentence(cell, path, where) for cell in pair]
                    yield Row(number, *cells)
    # Their messages name no file.
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"{path} cannot be read as a table: {reason}"
        ) from error


def _sentence(cell: Any, path: Path, where: str) -> str:
    """Returns a cell's text; null, and what is no number, have none."""
    if cell is None or cell != cell:
        return ""
    text = str(cell)
    # Half a surrogate pair is valid in JSON, but in no text.
    halves = re.search("[\ud800-\udfff]", text)
    if halves or isinstance(cell, (bytes, list, dict)):
        raise ValueError(
            f"Expected sentences in {path}. Received: {reprlib.repr(cell)} in {where}."
        )
    return text
