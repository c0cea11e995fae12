"""The pages on runs, by name. A module of that name writes each."""

import importlib
from pathlib import Path

SETTINGS = "page.toml"  # of the page in a folder: its name, and how it shows the models
# The folder of these holds the folders of several texts.
ON_TEXTS = ("families", "readings", "table1")
PAGES = ("report", "comparison", "figure3", "language_model", *ON_TEXTS)


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
    module = importlib.import_module(f"{__name__}.{settings.name}")
    return getattr(module, f"write_{settings.name}")(folder, settings, out or folder)
