"""What may stand where in a file that was read: types and ranges."""

import difflib
import math
import types
import typing
from collections.abc import Collection, Iterable
from typing import Any

SHOWN = 200  # signs of a value that a message repeats

FiniteNumber = typing.NewType("FiniteNumber", float)


def shown(value: Any) -> str:
    """Returns a value as messages show it: a long one without its end."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def check(value: Any, expected: Any, where: str):
    """Checks the type of a value, and of all that is in it.

    Args:
        value: what was read.
        expected: a plain type, a `TypedDict`, a list, tuple or dict of these, or
            several joined by `|`. An integer passes as a float. A bool is no number.
            A dict may have more keys than a `TypedDict` names.
        where: how the value is called in messages.

    Raises:
        ValueError: naming the first part that is not as expected.

    Example:

    >>> check({"sizes": [1, "2"]}, dict[str, list[int]], "mine.json")
    Traceback (most recent call last):
    ...
    ValueError: Expected item 1 of 'sizes' in mine.json to be of type int. Received: \
'2', of type str.
    """
    kind, parts = typing.get_origin(expected), typing.get_args(expected)
    if not _is(value, expected):
        name = str(expected) if kind else getattr(expected, "__name__", str(expected))
        table = typing.is_typeddict(expected) or dict in (kind, expected)
        raise ValueError(
            f"Expected {where} to be {'a table' if table else f'of type {name}'}. "
            f"Received: {shown(value)}, of type {type(value).__name__}."
        )
    if kind is types.UnionType:
        check(value, next(each for each in parts if _is(value, each)), where)
    elif typing.is_typeddict(expected):
        missing = sorted(expected.__required_keys__ - value.keys())
        if missing:
            raise ValueError(f"Missing in {where}: {', '.join(missing)}.")
        for name, each in typing.get_type_hints(expected).items():
            if name in value:
                check(value[name], each, f"{name!r} in {where}")
    elif kind in (list, tuple):
        for number, item in enumerate(value):
            check(item, parts[0], f"item {number} of {where}")
    elif kind is dict:
        for name, item in value.items():
            check(item, parts[1], f"{name!r} in {where}")


def _is(value, expected) -> bool:
    """Whether a value is of a type, whatever is in it."""
    kind = typing.get_origin(expected)
    if kind is types.UnionType:
        return any(_is(value, each) for each in typing.get_args(expected))
    expected = kind or expected
    if expected in (int, float, FiniteNumber):
        number = isinstance(value, int if expected is int else (int, float))
        finite = expected is not FiniteNumber or number and math.isfinite(value)
        return number and finite and not isinstance(value, bool)
    if expected is tuple:  # as files have it
        return isinstance(value, list | tuple)
    return isinstance(value, dict if typing.is_typeddict(expected) else expected)


def check_known(name: str, known: Iterable[str], where: str):
    """Raises a `ValueError` with the nearest known name, unless a name is known."""
    if name not in known:
        (nearest,) = difflib.get_close_matches(name[:SHOWN], known, n=1, cutoff=0)
        raise ValueError(
            f"Unknown key {shown(name)} in {where}; the nearest known one is "
            f"{nearest!r}. Known keys: {', '.join(known)}."
        )


def check_choice(choices: Collection, **values: Any):
    """Raises a `ValueError` unless all values, by name, are among the choices."""
    for name, value in values.items():
        if value not in choices:
            raise ValueError(
                f"Expected `{name}` to be one of {choices}. Received: {name}={value!r}."
            )


def check_range(where: str, lowest: float, highest: float, **numbers: float):
    """Raises a `ValueError` unless all numbers are within a range.

    Args:
        where: how their table is called in the message.
        lowest, highest: the ends of the range, which are part of it.
        **numbers: by their keys.
    """
    for name, number in numbers.items():
        if not lowest <= number <= highest:  # which nan is not, either
            raise ValueError(
                f"Expected {name!r} in {where} to be from {lowest} to {highest}. "
                f"Received: {shown(number)}."
            )
