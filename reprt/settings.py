"""What all settings share: they are checked as they are made."""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self

import pydantic
from pydantic import Field
from pydantic_core import PydanticCustomError, core_schema

from reprt.constants import check_choice, nearest
from reprt.files import expand_path

Size = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, lt=1)]
Positive = Annotated[float, Field(gt=0)]
# A place that another working directory does not change.
Place = Annotated[
    str,
    Field(min_length=1),
    pydantic.AfterValidator(lambda path: str(expand_path(path).absolute())),
]


class OneOf:
    """Annotates a `str` that is one of some names, such as a registry's at the time."""

    def __init__(self, names: Iterable[str]):
        self.names = names

    def check(self, value: str) -> str:
        """Returns a known name; pydantic words the error as that of a `Literal`."""
        if value not in self.names:
            *first, last = map(repr, self.names)
            choices = f"{', '.join(first)} or {last}"
            raise PydanticCustomError(
                "choice", "Input should be {c}", {"c": choices}
            )
        return value

    def __get_pydantic_core_schema__(self, source, handler):
        return core_schema.no_info_after_validator_function(
            self.check, handler(source)
        )

    def __get_pydantic_json_schema__(self, schema, handler):
        return {**handler(schema), "enum": [*self.names]}


class Settings(pydantic.BaseModel):
    """Settings that are checked as they are made, and do not change.

    A key that is not known is an error that names the nearest one. Numbers are finite,
    a bool is no number, and a whole number passes for a float.
    """

    model_config = pydantic.ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    @pydantic.model_validator(mode="before")
    @classmethod
    def _check_keys(cls, values):
        for key in values if isinstance(values, dict) else ():
            check_known(key, cls.model_fields)
        return values

    @classmethod
    def read(cls, values: Mapping[str, Any], where: str) -> Self:
        """Makes settings of what a file or a user has given.

        Messages of one line name `where`, such as `"[training]"`, the key, and what was
        expected and received.
        """
        try:
            return cls.model_validate(values)
        except pydantic.ValidationError as error:
            raise ValueError(in_one_line(error, where)) from None

    def changed(self, **overrides: Any) -> Self:
        """Returns a copy with other values of some settings, checked like new ones."""
        return self.read({**dict(self), **overrides}, type(self).__name__)

    def as_table(self) -> dict[str, Any]:
        """Returns the settings as TOML and JSON hold them; None is left out."""
        return self.model_dump(mode="json", exclude_none=True)


def check_known(key: str, known):
    """Raises a `ValueError` that names the nearest key unless a key is known."""
    if key not in known:
        raise ValueError(
            f"Unknown key {key!r}; the nearest known one is {nearest(key, known)!r}. "
            f"Known keys: {', '.join(known)}."
        )


def in_one_line(error: pydantic.ValidationError, where: str) -> str:
    """Returns the first fault that pydantic found, in the words of this package."""
    fault = error.errors()[0]
    key = ".".join(map(str, fault["loc"]))
    message = fault["msg"]
    within = f"{key!r} in {where}" if key else where
    if fault["type"] == "missing":
        return f"Missing in {where}: {key!r}."
    if fault["type"] == "value_error":
        return f"{within}: {message.removeprefix('Value error, ')}"
    expectation = re.sub(r"^\w+ should | or instance of \w+$", "", message)
    return f"Expected {within} to {expectation}. Received: {fault['input']!r}."


def by_name(*members: type[Settings]) -> pydantic.BeforeValidator:
    """Lets the `name` of a table choose among classes; the first is the default."""
    classes = {}
    for member in members:
        classes[member.model_fields["name"].default] = member

    def choose(values):
        if not isinstance(values, dict):
            return values
        name = values.get("name", next(iter(classes)))
        check_choice(classes, name=name)
        return classes[name].model_validate(values)

    return pydantic.BeforeValidator(choose)
