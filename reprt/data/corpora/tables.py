"""Tables of sentence pairs, one column a language: which files, and how they are read.

Writers of `.tsv` and `.csv` disagree on quotes. Each reading here is strict, so that a
file of another writer hardly ever fits. What fits two readings is refused.
"""

import csv
import io
import itertools
import json
import re
import reprlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from reprt.data.corpora.lines import read_lines
from reprt.imports import load_extra

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
) -> list[Row]:
    """Returns the pairs of a table's two columns; what is not clear is a `ValueError`.

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
            return _read_delimited(path, columns, quoting)


def _read_delimited(path: Path, columns, quoting: Quoting | None) -> list[Row]:
    text = "\n".join(line.rstrip("\r") for line in read_lines(path))
    # Rows may end as on old Macs.
    if "\n" not in text:
        text = text.replace("\r", "\n")
    readings: dict[Quoting, list[Row]] = {}
    errors = []
    quoted = path.suffix.lower() == ".csv" or text.startswith('"')
    ways = ("double", "backslash", "none") if quoted else get_args(Quoting)
    for way in [quoting] if quoting else ways:
        try:
            readings[way] = list(_rows(path, text, columns, way))
        except ValueError as error:
            errors.append(error)
    if not quoting and quoted and '"' in text:
        # Quotes around cells are usual here. But a cell of several lines, each of
        # which would be a row, has begun with a quote that is part of its sentence.
        lines = readings.pop("none", [])
        if any(len(rows) < len(lines) for rows in readings.values()):
            readings["none"] = lines
    if not readings:
        raise errors[0]
    first, *others = readings.values()
    for other in others:
        if first != other:
            raise ValueError(_told_apart(path, first, other))
    return first


def _rows(path: Path, text: str, columns, quoting: Quoting) -> Iterator[Row]:
    """Yields the rows of a text by one way of quoting, all of which have to fit."""
    delimiter = _delimiter(path, text, columns)
    lines = _cells(path, text, delimiter, quoting)
    _, head = next(lines, (1, []))
    names = [name.strip() for name in head]
    _check_names(path, names, columns, "line 1")
    source, target = map(names.index, columns)
    for number, cells in lines:
        if not any(map(str.strip, cells)):
            continue
        if len(cells) != len(names):
            raise ValueError(
                f"Expected rows of {path} with as many cells as its head, {len(names)}."
                f" Received: {len(cells)} in line {number}. {_HOW_TO_READ}"
            )
        yield Row(number, cells[source], cells[target])


def _delimiter(path: Path, text: str, columns) -> str:
    """Returns what parts the names of the columns in the first line."""
    delimiters = DELIMITERS[path.suffix.lower()]
    head = text.partition("\n")[0].replace('"', "")
    for delimiter in delimiters:
        names = [name.strip() for name in head.split(delimiter)]
        if set(columns) <= set(names):
            return delimiter
    return delimiters[0]


def _cells(
    path: Path,
    text: str,
    delimiter: str,
    quoting: Quoting,
) -> Iterator[tuple[int, list[str]]]:
    """Yields the cells of each row, and the number of the line where it begins."""
    if quoting in ("none", "escapes"):
        for number, line in enumerate(text.split("\n"), 1):
            cells = line.split(delimiter)
            if quoting == "escapes":
                cells = [_unescaped(cell, path, number) for cell in cells]
            yield number, cells
        return
    escape = None
    if quoting == "backslash":
        escape = "\\"
        # The csv module would drop a backslash before any character.
        text = _ESCAPE.sub(lambda found: found[0] if found[1] else r"\\", text)
    # A cell may be longer than the csv module's usual limit.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    reader = csv.reader(
        io.StringIO(text.replace("\r", _CR), newline="\n"),
        delimiter=delimiter,
        escapechar=escape,
        skipinitialspace=f'{delimiter} "' in text,
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


def _unescaped(cell: str, path: Path, number: int) -> str:
    """Returns a cell with what its escapes stand for; NULL has no text."""
    if cell == r"\N":
        return ""
    try:
        return re.sub(r"\\(.?)", lambda found: _MEANINGS[found[1]], cell)
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


def _told_apart(path: Path, one: list[Row], other: list[Row]) -> str:
    """Names the first row that two ways of quoting read as two."""
    rows = itertools.zip_longest(one, other)
    first = next(filter(None, pair) for pair in rows if pair[0] != pair[1])
    numbers, *sides = zip(*first)
    cells = " or ".join(map(reprlib.repr, zip(*sides)))
    return (
        f"Expected {path} to have quotes of one meaning. Received: line "
        f"{min(numbers)}, which may be {cells}. {_HOW_TO_READ}"
    )


def _read_jsonl(path: Path, columns) -> list[Row]:
    """Reads an object a line."""
    names: dict[str, None] = {}
    rows = []
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        where = f"line {number}"
        try:
            cells = json.loads(line, object_pairs_hook=_unique)
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
        sides = (_sentence(cells.get(each), path, where) for each in columns)
        rows.append(Row(number, *sides))
    _check_names(path, list(names), columns, "its objects")
    return rows


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Makes an object, none of whose names may be there twice."""
    cells = dict(pairs)
    if len(cells) < len(pairs):
        raise ValueError(
            f"a name is there twice: {', '.join(n for n, _ in pairs)}"
        )
    return cells


def _read_parquet(path: Path, columns) -> list[Row]:
    need = "Tables in .parquet need pyarrow: pip install '.[train]'."
    pyarrow = load_extra("pyarrow", need)
    parquet = load_extra("pyarrow.parquet", need)
    try:
        dataset = parquet.ParquetDataset(path)
        _check_names(path, dataset.schema.names, columns, "its schema")
        table = dataset.read(list(columns))
        sides = [table.column(each).to_pylist() for each in columns]
    # Their messages name no file.
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"{path} cannot be read as a table: {reason}"
        ) from error
    rows = []
    for number, pair in enumerate(zip(*sides), 1):
        cells = (_sentence(cell, path, f"row {number}") for cell in pair)
        rows.append(Row(number, *cells))
    return rows


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
