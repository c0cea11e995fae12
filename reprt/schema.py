"""What may stand where: one of a few choices."""

from collections.abc import Collection
from typing import Any


def check_choice(choices: Collection, **values: Any):
    """Raises a `ValueError` unless all values, by name, are among the choices."""
    for name, value in values.items():
        if value not in choices:
            raise ValueError(
                f"Expected `{name}` to be one of {choices}. Received: {name}={value!r}."
            )
