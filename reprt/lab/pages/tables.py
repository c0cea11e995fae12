"""Tables in Markdown, CSV and LaTeX."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reprt.lab.pages.escaping import in_latex


def markdown(
    head: Sequence[str], align: str, rows: Iterable[Sequence[str]]
) -> list[str]:
    """Returns a table's lines.

    Args:
        head: the columns' names.
        align: a letter a column, `"l"` or `"r"`.
        rows: the cells of each line.

    Example:

    >>> print(*markdown(["loss", ""], "lr", [["training", "1.5"]]), sep="\\n")
    | loss | |
    |---|--:|
    | training | 1.5 |
    """
    rule = "".join({"l": "---|", "r": "--:|"}[letter] for letter in align)
    return [_markdown_row(head), f"|{rule}", *map(_markdown_row, rows)]


def _markdown_row(cells):
    # A blank cell is one space wider than it says, any other two.
    escaped = (cell.replace("|", r"\|") for cell in cells)
    return "|" + "".join(f" {c} |" if c.strip() else f" {c}|" for c in escaped)


def epochs_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns a table of losses by epoch, in Markdown.

    Args:
        rows: what each line is of, and its losses, of as many epochs as there were.

    Example:

    >>> print(*epochs_table([["repe", "2.5", "1.5"], ["baseline", "3.5"]]), sep="\\n")
    | loss | 1 | 2 |
    |---|--:|--:|
    | repe | 2.5 | 1.5 |
    | baseline | 3.5 | – |
    """
    length = max(2, *map(len, rows))
    return markdown(
        ["loss", *map(str, range(1, length))],
        "l" + "r" * (length - 1),
        [[*row, *["–"] * (length - len(row))] for row in rows],
    )


def csv_text(
    rows: Sequence[Mapping[str, Any]], head: Sequence[str] | None = None
) -> str:
    """Returns the text of a CSV file; what a row does not have is left empty.

    Args:
        rows: values by column.
        head: the columns; None for all, in the order in which they first come up.

    Example:

    >>> csv_text([{"run": "repe", "loss": 1.5}, {"run": "baseline"}])
    'run,loss\\nrepe,1.5\\nbaseline,\\n'
    """
    if head is None:
        head = list(dict.fromkeys(name for row in rows for name in row))
    text = _Lines()
    writer = csv.DictWriter(text, head, lineterminator=text.END)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


class _Lines(io.StringIO):
    """What is written to it line by line ends its lines by a line feed alone.

    The writer quotes only the signs that end its own lines. Readers take a carriage
    return for an end, too.
    """

    END = "\r\n"

    def write(self, line):
        return super().write(line.removesuffix(self.END) + "\n")


def latex(
    align: str, head: Iterable[str], groups: Iterable[Iterable[Sequence[str]]]
) -> str:
    """Returns a table for LaTeX's booktabs.

    Args:
        align: a letter a column.
        head: the lines above the rule, as LaTeX has them.
        groups: lines of cells, which are escaped; there is some space between groups.

    Example:

    >>> print(latex("lr", [r"pair & loss"], [[["az_to_en", "1.5 ± 0.1"]]]))
    \\begin{tabular}{lr}
    \\toprule
    pair & loss \\\\
    \\midrule
    az\\_to\\_en & 1.5 $\\pm$ 0.1 \\\\
    \\bottomrule
    \\end{tabular}
    <BLANKLINE>
    """
    bodies = (
        [f"{' & '.join(map(in_latex, cells))} \\\\" for cells in group]
        for group in groups
    )
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{align}}}",
            r"\toprule",
            *(f"{line} \\\\" for line in head),
            r"\midrule",
            "\n\\addlinespace\n".join("\n".join(lines) for lines in bodies),
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )
