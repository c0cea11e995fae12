"""What pages are written with: tables, words that others chose, notes, paragraphs."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tabulate import tabulate

from reprt.files import read_text, write_text
from reprt.lab.pages.runs import NOTES

# Signs that tabulate leaves as they are and LaTeX does not have.
LATEX = str.maketrans({"±": r"$\pm$", "−": "$-$", "–": "--"})


def markdown(
    head: Sequence[str], rows: Iterable[Sequence[str]], names: int = 1
) -> str:
    """Returns a table in Markdown.

    Args:
        head: the columns' names.
        rows: the cells of each line; a short one is filled with dashes.
        names: how many columns stand to the left; the others are numbers.

    Example:

    >>> print(markdown(["loss", "1", "2"], [["training", "1.5", "0.5"], ["prefix"]]))
    | loss     |   1 |   2 |
    |:---------|----:|----:|
    | training | 1.5 | 0.5 |
    | prefix   |   – |   – |
    """
    return tabulate(
        [[cell.replace("|", r"\|") for cell in row] for row in rows],
        head,
        tablefmt="pipe",
        colalign=_align(head, names),
        disable_numparse=True,
        missingval="–",
    )


def latex(head: Sequence[str], rows: Iterable[Sequence[str]], names: int) -> str:
    """Returns a table for LaTeX's booktabs, with arguments as `markdown`."""
    return tabulate(
        rows,
        head,
        tablefmt="latex_booktabs",
        colalign=_align(head, names),
        disable_numparse=True,
    ).translate(LATEX)


def _align(head, names):
    return ["left"] * names + ["right"] * (len(head) - names)


def epochs_table(rows: Sequence[Sequence[str]]) -> str:
    """Returns a table of losses by epoch: what each line is of, and its losses."""
    epochs = range(1, max(2, *map(len, rows)))
    return markdown(["loss", *map(str, epochs)], rows)


def plain(text: str) -> str:
    r"""Returns words that others chose as Markdown shows them.

    A bar is markup only within a table, where `markdown` escapes it.

    Example:

    >>> print(plain("5 * 3 <b>"))
    5 \* 3 \<b>
    """
    return re.sub(r"[\\`*<\[]", r"\\\g<0>", " ".join(text.split()))


def notes(folder: Path) -> str:
    """Returns the folder's `notes.md`, which its page takes in, or nothing."""
    path = folder / NOTES
    return read_text(path).strip() if path.exists() else ""


def write_markdown(path: Path, *blocks: str) -> Path:
    """Writes the blocks of a page that are not empty, and returns its path."""
    write_text(path, "\n\n".join(filter(None, blocks)) + "\n")
    return path
