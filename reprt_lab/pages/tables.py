"""What pages are written with: templates, tables, and words that others chose."""

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

from tabulate import tabulate

from reprt.progress import printable


def fill(template: str, **values: Any) -> str:
    """Returns a template's text, without paragraphs whose values are empty."""
    text = (
        resources.files(__package__)
        .joinpath(f"{template}.md")
        .read_text("utf-8")
    )
    paragraphs = []
    for paragraph in text.strip().split("\n\n"):
        places = [
            name for _, name, *_ in string.Formatter().parse(paragraph) if name
        ]
        if "" not in [values[place] for place in places]:
            joined = (
                paragraph if "|" in paragraph else paragraph.replace("\n", " ")
            )
            paragraphs.append(joined.format(**values))
    return "\n\n".join(paragraphs)


def markdown(rows: Sequence[Mapping[str, str]], align: str = "l") -> str:
    """Returns a table of rows; `align` is that of the first columns, of words."""
    head = list(dict.fromkeys(name for row in rows for name in row))
    cells = [
        [row.get(name, "–").replace("|", r"\|") for name in head]
        for row in rows
    ]
    if not rows:
        return ""
    sides = [
        {"l": "left", "r": "right"}[each]
        for each in align.ljust(len(head), "r")
    ]
    return tabulate(cells, head, "pipe", colalign=sides, disable_numparse=True)


def by_epoch(name: str, losses: Iterable[str]) -> dict[str, str]:
    return {"loss": name} | {str(n): loss for n, loss in enumerate(losses, 1)}


def plain(text: str) -> str:
    """Returns words that others chose as Markdown shows them, outside tables."""
    words = printable(" ".join(text.split()))
    return re.sub(r"[\\`*<\[]", r"\\\g<0>", words)
