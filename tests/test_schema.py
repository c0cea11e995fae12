"""Types of what was read: several joined, with something in them."""

from typing import NotRequired, TypedDict

import pytest

from reprt.schema import check


class About(TypedDict):
    name: str
    sizes: NotRequired[list[int] | None]


@pytest.mark.parametrize("value", [{"name": "a"}, {"name": "a", "sizes": None}, None])
def test_one_of_several_types_is_enough(value):
    check(value, About | None, "x")


@pytest.mark.parametrize(
    "value, message",
    [
        ({}, "Missing in x: name"),
        ({"name": "a", "sizes": ["1"]}, "item 0 of 'sizes' in x to be of type int"),
        ({"name": "a", "sizes": 1}, "'sizes' in x to be of type"),
        (["a"], "Expected x to be of type"),
    ],
)
def test_what_is_in_it_is_checked_too(value, message):
    with pytest.raises(ValueError, match=message):
        check(value, About | None, "x")
