"""What pages are written with: templates, tables, and words that others chose."""

import itertools
import re
from collections.abc import Mapping, Sequence
from importlib import resources

from tabulate import tabulate

from reprt.progress import printable

# The cell of a number that there is none of.
NONE = "–"


def fill(template: str, **values) -> str:
    """Returns a template's text, without paragraphs whose values are empty."""
    file = resources.files(__package__).joinpath(f"{template}.md")
    paragraphs = []
    for paragraph in file.read_text("utf-8").strip().split("\n\n"):
        places = re.findall(r"{(\w+)", paragraph)
        if "" in [values[place] for place in places]:
            continue
        if "|" not in paragraph:
            paragraph = paragraph.replace("\n", " ")
        paragraphs.append(paragraph.format(**values))
    return "\n\n".join(paragraphs)


def markdown(rows: Sequence[Mapping[str, str]], words: int = 1) -> str:
    """Returns a table of rows, without the columns that no row fills.

    Args:
        rows: the cells of each row by the heads of their columns.
        words: how many of the first columns are of words, which stand to the left.
    """
    columns = {}
    for head in dict.fromkeys(itertools.chain(*rows)):
        cells = [row.get(head, NONE) for row in rows]
        if {*cells} != {NONE}:
            columns[head] = cells
    if not columns:
        return ""
    sides = ["left"] * words + ["right"] * (len(columns) - words)
    return tabulate(
        columns,
        "keys",
        "pipe",
        colalign=sides,
        disable_numparse=True,
    )


def plain(text: str) -> str:
    """Returns words that others chose as Markdown shows them, in tables as well."""
    words = printable(" ".join(text.split()))
    return re.sub(r"[\\`*<\[|]", r"\\\g<0>", words)
