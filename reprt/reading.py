"""Text files, with one error for each fault."""

import csv
import io
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reprt.files import read_text
from reprt.schema import check

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
        ValueError: if it is not TOML.
    """
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
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{where} is not valid {language}: {error}.") from error


def read_csv(path: Path) -> list[dict[str, str]]:
    """Returns the rows of a CSV file; none if it is empty.

    Raises:
        OSError: as `read_text`.
        ValueError: if it is no such file, or has a row that is longer or shorter than
            the first.
    """
    text = _text(path, universal_newlines=False)
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[dict[str, str]] = []
    try:
        head = next(lines, [])
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
