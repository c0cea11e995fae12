"""Text files that anyone may have changed, with one error for each fault."""

import csv
import io
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reprt.files import read_text
from reprt.schema import check, shown

DEEPEST = 20  # tables and arrays in one another
LARGEST = 2**63  # as TOML has it, whatever Python can hold
MOST_DOTS = 1_000  # in a line of TOML, whose parser needs their square in memory
BYTE_ORDER_MARK = "\ufeff"  # which some editors put before a text


def read_toml(path: Path) -> dict[str, Any]:
    """Returns the tables of a TOML file.

    Raises:
        OSError: as `read_text`.
        ValueError: as `read_text` and `parse_toml`.
    """
    return parse_toml(_text(path), str(path))


def read_json(path: Path, schema: Any = dict) -> Any:
    """Returns the content of a JSON file.

    Args:
        path: the file.
        schema: what it holds, as `reprt.schema.check` takes it.

    Raises:
        OSError: as `read_text`.
        ValueError: as `read_text` and `parse_json`.
    """
    return parse_json(_text(path), schema, str(path))


def _text(path: Path, **options: bool) -> str:
    return read_text(path, **options).removeprefix(BYTE_ORDER_MARK)


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Returns the tables of a text.

    Raises:
        ValueError: if it is not TOML, is nested too deep or has too large an integer.
    """
    if any(line.count(".") > MOST_DOTS for line in text.splitlines()):
        raise ValueError(
            f"Expected each line of {where} to have at most {MOST_DOTS:,} dots. "
            "Received one with more."
        )
    return _parsed(tomllib.loads, text, "TOML", where)


def parse_json(text: str, schema: Any, where: str) -> Any:
    """Returns the content of a text.

    Raises:
        ValueError: if it is not JSON, or as `reprt.schema.check`.
    """
    content = _parsed(json.loads, text, "JSON", where)
    check(content, schema, where)
    return content


def _parsed(parse: Callable[[str], Any], text, language, where):
    try:
        content = parse(text)
    except ValueError as error:
        raise ValueError(f"{where} is not valid {language}: {error}.") from error
    except RecursionError:
        raise ValueError(_too_deep(where)) from None
    _check_sizes(content, where)
    return content


def _too_deep(where):
    return f"Expected {where} to be nested at most {DEEPEST} deep. Received more."


def _check_sizes(content, where, depth=0):
    if isinstance(content, int) and not -LARGEST <= content < LARGEST:
        raise ValueError(f"Expected {where} to have 64 bits. Received more.")
    if not isinstance(content, dict | list):
        return
    if depth == DEEPEST:
        raise ValueError(_too_deep(where))
    names = content if isinstance(content, dict) else range(len(content))
    for name in names:
        _check_sizes(content[name], f"{shown(name)} in {where}", depth + 1)


def read_csv(path: Path) -> list[dict[str, str]]:
    """Returns the rows of a CSV file; none if it is empty.

    Raises:
        OSError: as `read_text`.
        ValueError: if it is no such file, has a column twice, or a row that is longer
            or shorter than the first.
    """
    text = _text(path, universal_newlines=False)
    if "\0" in text:
        raise ValueError(f"Expected {path} to be text. Received a file with NUL bytes.")
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[dict[str, str]] = []
    try:
        head = next(lines, [])
        if len(set(head)) < len(head):
            raise ValueError(
                f"Expected each column of {path} once. Received: {shown(head)}."
            )
        for cells in filter(None, lines):
            if len(cells) != len(head):
                raise ValueError(
                    f"Expected the {len(head)} columns of {path} in line "
                    f"{lines.line_num}. Received: {len(cells)}."
                )
            rows.append(dict(zip(head, cells)))
    except csv.Error as error:
        raise ValueError(
            f"{path} is not valid CSV: {error}, in line {lines.line_num}."
        ) from error
    return rows
