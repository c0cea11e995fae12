"""TOML and JSON files, with one error for what is neither."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reprt.files import read_text


def read_toml(path: Path) -> dict[str, Any]:
    """Returns the tables of a TOML file; a `ValueError` names a file that is none."""
    return _parsed(tomllib.loads, path, "TOML")


def read_json(path: Path) -> Any:
    """Returns the content of a JSON file; a `ValueError` names a file that is none."""
    return _parsed(json.loads, path, "JSON")


def _parsed(parse: Callable[[str], Any], path: Path, language: str) -> Any:
    # Some editors put a byte order mark before a text.
    text = read_text(path).removeprefix("\ufeff")
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{path} is not valid {language}: {error}.") from error
