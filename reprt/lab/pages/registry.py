"""The pages that can be written on runs: each is a module here that registers itself.

A recipe's `page`, the commands that write pages and what a job writes all come from
`pages`. A page's module loads without Keras and matplotlib.
"""

import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Write = Callable[..., Path]
_REGISTERED: dict[str, "Page"] = {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Page:
    """What can be written on the runs in a folder.

    Attributes:
        name: in a recipe's `page`, and of its command.
        help: what it is, in a line.
        files: which files are written.
        folder: which folder it takes.
        write: called with that folder and perhaps `out`, the folder of its files, which
            is the same by default; returns the path of the page.
        several_texts: whether its folder holds the folders of several texts.
        each_text: the page that is written in the folder of each text besides.
        instead_of: the page whose place it takes where it `suits`.
        suits: whether it suits the runs in a folder.
    """

    name: str
    help: str
    files: str
    folder: str
    write: Write
    several_texts: bool = False
    each_text: str | None = None
    instead_of: str | None = None
    suits: Callable[[Path], bool] = lambda folder: True

    @property
    def file(self) -> str:
        """The file that is read first."""
        return f"{self.name}.md"


def register(name: str, **of_page: Any) -> Callable[[Write], Write]:
    """Returns a decorator that makes a function the writer of a page.

    Args:
        name: the page's name.
        **of_page: fields of `Page`.
    """

    def add(write: Write) -> Write:
        _REGISTERED[name] = Page(name=name, write=write, **of_page)
        return write

    return add


@functools.cache
def _load():
    package = __name__.rpartition(".")[0]
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")


def pages() -> Mapping[str, Page]:
    """Returns every page by its name.

    Example:

    >>> list(pages())
    ['comparison', 'families', 'figure3', 'readings', 'report', 'table1']
    """
    _load()
    return dict(sorted(_REGISTERED.items()))


def page_named(name: str, where: str) -> Page:
    """Returns a page.

    Args:
        name: its name.
        where: where the name stands, for the message.

    Raises:
        ValueError: if there is no such page.
    """
    if name not in pages():
        raise ValueError(
            f"Expected 'page' in {where} to be one of {tuple(pages())}. "
            f"Received: {name!r}."
        )
    return pages()[name]


def page_on(name: str, folder: Path) -> Page:
    """Returns a page, or the one that takes its place on the runs in a folder."""
    for page in pages().values():
        if page.instead_of == name and page.suits(folder):
            return page
    return pages()[name]
