"""What the gallery has of a model."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Entry:
    """A model to audit.

    Attributes:
        package: the distribution that the model comes from.
        name: its class, and what else a reader needs to build it.
        make: builds it, small and with random weights.
        options: the options of `audit`.
        note: what the page says of it.
    """

    package: str
    name: str
    make: Callable[[], Any]
    options: Mapping[str, Any]
    note: str = ""
