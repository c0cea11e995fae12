"""The pages that can be written on runs.

A recipe's `page`, the commands that write pages and what a job writes all come from
`PAGES`. A page's module is loaded when it writes, and needs no Keras.
"""

import dataclasses
import importlib
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Page:
    """What can be written on the runs in a folder.

    Attributes:
        writer: `"module:function"`, of this package. The function takes the folder and
            perhaps `out`, the folder of its files, and returns the path of the page.
        help: what it is, in a line.
        several_texts: whether its folder holds the folders of several texts.
        each_text: the page that is written in the folder of each text besides.
    """

    writer: str
    help: str
    several_texts: bool = False
    each_text: str | None = None

    def write(self, folder: Path, out: Path | None = None) -> Path:
        """Writes the page and returns its path."""
        module, function = self.writer.split(":")
        module = f"{__package__}.{module}"
        return getattr(importlib.import_module(module), function)(folder, out)


PAGES = {
    # `reprt report` writes it on trials.
    "comparison": Page("comparison:write_comparison", "trials of many models"),
    "families": Page(
        "families:write_families",
        "several systems at equal size: loss and BLEU beside what they cost",
        several_texts=True,
    ),
    "figure3": Page(
        "figure3:write_figure3", "the paper's Figure 3 with ours beside it"
    ),
    "readings": Page(
        "readings:write_readings",
        "which reading of the paper comes nearest to its numbers",
        several_texts=True,
    ),
    "report": Page("report:write_report", "models side by side"),
    "table1": Page(
        "table1:write_table1",
        "the paper's Table 1 with ours beside it",
        several_texts=True,
        each_text="report",
    ),
}


def page_named(name: str, where: str) -> Page:
    """Returns a page.

    Args:
        name: its name.
        where: where the name stands, for the message.

    Raises:
        ValueError: if there is no such page.
    """
    if name not in PAGES:
        raise ValueError(
            f"Expected 'page' in {where} to be one of {tuple(PAGES)}. "
            f"Received: {name!r}."
        )
    return PAGES[name]


def page_on(name: str, folder: Path) -> Page:
    """Returns a page; of trials, their comparison in place of a report."""
    if name == "report":
        from reprt.reports.comparison import is_comparison

        name = "comparison" if is_comparison(folder) else name
    return PAGES[name]
