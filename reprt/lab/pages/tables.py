"""What pages are written with: templates, tables, and words that others chose.

`report.md` beside `report.py` is the template of that page, and so on.
"""

import re
import string
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from tabulate import tabulate

from reprt.files import write_text

# Signs that tabulate leaves as they are and LaTeX does not have.
LATEX = str.maketrans({"±": r"$\pm$", "−": "$-$", "–": "--"})


def write_filled(path: Path, **values: Any) -> Path:
    """Writes a page from the template of its name, and returns its path."""
    write_text(path, fill(path.stem, **values) + "\n")
    return path


def fill(template: str, **values: Any) -> str:
    """Returns a template with its values.

    A paragraph that has a place for a value that is empty, or for several, is left out.
    """
    text = resources.files(__package__).joinpath(f"{template}.md").read_text("utf-8")
    paragraphs = []
    for paragraph in text.strip().split("\n\n"):
        places = [name for _, name, *_ in string.Formatter().parse(paragraph) if name]
        if "" not in [values[place] for place in places]:
            paragraphs.append(paragraph.replace("\n", " ").format(**values))
    return "\n\n".join(paragraphs)


def markdown(
    head: Sequence[str], rows: Iterable[Sequence[str]], align: str = "l"
) -> str:
    """Returns a table in Markdown.

    Args:
        head: the columns' names.
        rows: the cells of each line; a short one is filled with dashes.
        align: a letter for each of the first columns, `"l"` or `"r"`; the others are
            numbers, and stand to the right.

    Example:

    >>> print(markdown(["loss", "1", "2"], [["training", "1.5", "0.5"], ["prefix"]]))
    | loss     |   1 |   2 |
    |:---------|----:|----:|
    | training | 1.5 | 0.5 |
    | prefix   |   – |   – |
    """
    cells = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    return _table(head, cells, align, "pipe")


def latex(head: Sequence[str], rows: Iterable[Sequence[str]], align: str) -> str:
    """Returns a table for LaTeX's booktabs, with arguments as `markdown`."""
    return _table(head, rows, align, "latex_booktabs").translate(LATEX)


def _table(head, rows, align, kind):
    sides = [{"l": "left", "r": "right"}[each] for each in align.ljust(len(head), "r")]
    options = {"disable_numparse": True, "missingval": "–"}
    return tabulate(rows, head, kind, colalign=sides, **options)


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
