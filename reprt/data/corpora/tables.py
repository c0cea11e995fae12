"""Tables of sentence pairs, one column a language, and how they are read."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from reprt.data.corpora.lines import read_lines
from reprt.loading import load_extra

TABLES = ".tsv", ".csv", ".jsonl", ".parquet"
Quoting = Literal["none", "double", "backslash"]
_HOW_TO_READ = (
    "Say how cells are quoted by --set text.quoting=NAME, in Python by quoting=: "
    "'none' if quotes are part of the sentences, 'double' if cells stand in quotes and "
    "quotes within are doubled, 'backslash' if those have a \\ before them."
)


def is_table(path: str) -> bool:
    """Whether it is the name of a table that `read_table` reads."""
    return Path(path).suffix.lower() in TABLES


def read_table(
    path: Path, columns: Sequence[str], quoting: Quoting | None = None
) -> tuple[list[str], list[str]]:
    """Returns two columns of a table; what cannot be read is a `ValueError`.

    Args:
        path: a file whose name ends with one of `TABLES`.
        columns: the source's and the target's.
        quoting: how `.tsv` and `.csv` treat quotes. Defaults to `"none"` for `.tsv` and
            to `"double"` for `.csv`.
    """
    match path.suffix.lower():
        case ".csv":
            return _read_delimited(path, columns, quoting or "double")
        case ".tsv":
            if quoting is None:
                _check_for_quotes(path)
            return _read_delimited(path, columns, quoting or "none")
        case _:
            return _read_by_pyarrow(path, columns)


def _check_for_quotes(path):
    """Refuses a table with doubled quotes, which a program has put into quotes."""
    for number, line in enumerate(read_lines(path), 1):
        if '""' in line:
            raise ValueError(
                f"Expected {path} to have no quoted cells, as a .tsv usually has none. "
                f'Received: "" in line {number}. {_HOW_TO_READ}'
            )


def _check_columns(path, columns, names):
    """Refuses a table in which a column is missing."""
    if not set(columns) <= set(names):
        raise ValueError(
            f"Expected {path} to have the columns {' and '.join(columns)}. Received: "
            f"{', '.join(names)}. Name columns by --set "
            '\'text.columns=["SOURCE","TARGET"]\', in Python by columns=, or the '
            "languages by --pair."
        )


def _read_delimited(path, columns, quoting):
    lines = read_lines(path)
    head = lines[0] if lines else ""
    reader = csv.reader(
        (f"{line}\n" for line in lines),
        delimiter=max("\t,;|", key=head.count),
        quoting=csv.QUOTE_NONE if quoting == "none" else csv.QUOTE_MINIMAL,
        escapechar="\\" if quoting == "backslash" else None,
        strict=True,
    )
    names = [name.strip() for name in next(reader, [])]
    _check_columns(path, columns, names)
    source, target = map(names.index, columns)
    sources, targets = [], []
    number = reader.line_num + 1
    try:
        for cells in reader:
            if len(cells) not in (0, len(names)):
                raise csv.Error(f"{len(cells)} cells, where {names} are named")
            if cells:
                sources.append(cells[source])
                targets.append(cells[target])
            number = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{path} cannot be read as a table: the row that begins in line {number} "
            f"has {error}. {_HOW_TO_READ}"
        ) from error
    return sources, targets


def _read_by_pyarrow(path, columns):
    need = "Tables in .jsonl and .parquet need pyarrow: pip install '.[train]'."
    try:
        if path.suffix.lower() == ".jsonl":
            table = load_extra("pyarrow.json", need).read_json(path)
        else:
            table = load_extra("pyarrow.parquet", need).read_table(path)
        # It fails where a cell is not UTF-8.
        table.validate(full=True)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} cannot be read as a table, whose first row is row 0: {error}"
        ) from error
    _check_columns(path, columns, table.column_names)
    sides = []
    for name in columns:
        column = table.column(name)
        if str(column.type) not in ("string", "large_string", "null"):
            raise ValueError(
                f"Expected sentences in the column {name} of {path}. Received: "
                f"{column.type}."
            )
        # A cell that is null has no text.
        sides.append([cell or "" for cell in column.to_pylist()])
    return tuple(sides)
