"""Special ids, and checks of arguments."""

from collections.abc import Iterable
from typing import Any

PAD, UNKNOWN, START, END = "[PAD]", "[UNK]", "[START]", "[END]"
RESERVED = (PAD, UNKNOWN, START, END)
PAD_ID, UNKNOWN_ID, START_ID, END_ID = range(len(RESERVED))

TEXTS = ("auto", "ted", "embedded", "wmt14")  # by which no file is meant


def check_choice(choices: Iterable[str], **values: Any):
    """Raises a `ValueError` unless all values, by name, are among the choices."""
    names = tuple(choices)
    for name, value in values.items():
        if value not in names:
            raise ValueError(
                f"Expected `{name}` to be one of {names}. Received: {name}={value!r}."
            )


def check_sizes(**sizes: int | None):
    """Raises a `ValueError` unless all sizes, by name, are 1 or more, or None."""
    for name, size in sizes.items():
        if size is not None and size < 1:
            raise ValueError(
                f"Expected `{name}` to be 1 or more. Received: {name}={size!r}."
            )
