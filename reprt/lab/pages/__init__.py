"""The pages on runs, by name. One module writes each, from live or frozen runs."""

import importlib
from pathlib import Path
from typing import NamedTuple

SETTINGS = "page.toml"  # of the page in a folder: its name, and how it shows the models


class Page(NamedTuple):
    """What can be written on the runs in a folder.

    Attributes:
        writer: `"module:function"`, called with the folder, the `PageSettings` and the
            folder of its files; it loads without Keras.
        several_texts: whether its folder holds the folders of several texts.
    """

    writer: str
    several_texts: bool = False


PAGES = {
    "report": Page("report:write_report"),  # models side by side, with curves
    "comparison": Page("comparison:write_comparison"),  # trials of many models
    "families": Page("families:write_families", True),  # systems at equal size
    "figure3": Page("figure3:write_figure3"),  # the paper's Figure 3
    "readings": Page("readings:write_readings", True),  # what the paper leaves open
    "table1": Page("table1:write_table1", True),  # the paper's Table 1
}


def write_page(folder: Path, name: str | None = None, out: Path | None = None) -> Path:
    """Writes a page on the runs in a folder and returns its path.

    A file `notes.md` in the folder becomes part of the page.

    Args:
        folder: the folder.
        name: one of `PAGES`; by default what the folder's `page.toml` says, else the
            report, for trials their comparison, and for several texts the families.
        out: where the files go; the same folder by default.
    """
    from reprt.lab.pages.runs import page_settings

    settings = page_settings(folder, name)
    module, function = PAGES[str(settings.name)].writer.split(":")
    write = getattr(importlib.import_module(f"{__name__}.{module}"), function)
    return write(folder, settings, out or folder)
