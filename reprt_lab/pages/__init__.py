"""The pages on runs, by name. A module and a template of that name make each.

The module's `page_values(runs, settings, out)` returns what stands in the template's
places, and writes the page's pictures and other files.
"""

import importlib
from pathlib import Path
from typing import get_args

from reprt.files import write_text
from reprt_lab.pages.runs import (
    RUNS,
    SELECTION,
    SETTINGS,
    left_out,
    notes,
    out_of_time,
    page_settings,
    read_texts,
    ways,
)
from reprt_lab.pages.tables import fill, plain
from reprt_lab.recipe import ON_SEVERAL_TEXTS, Page

PAGES = get_args(Page)


def write_page(
    folder: Path, name: str | None = None, out: Path | None = None
) -> Path:
    """Writes a page on the runs in a folder and returns its path.

    A file `notes.md` in the folder becomes part of the page; a heading in its first
    line takes the place of the page's own.

    Args:
        name: one of `PAGES`; by default what the folder's `page.toml` says, else the
            report, for trials their comparison, and for several texts the families.
        out: where the files go; the same folder by default.
    """
    texts = read_texts(folder)
    settings, said = page_settings(folder, texts, name), notes(folder)
    own = page_settings(folder, texts).name
    frozen = any((folder / each).exists() for each in (RUNS, SELECTION))
    if frozen and out in (None, folder) and settings.name != own:
        raise ValueError(
            f"{folder} is a frozen experiment, whose page is {own!r}. Received: "
            f"--name {settings.name}. `name` in its {SETTINGS} chooses another."
        )
    one = settings.name not in ON_SEVERAL_TEXTS
    if one and texts[1:]:
        raise ValueError(
            f"Expected the runs in {folder} to be on the same text, with the same "
            f"vocabularies. Those of {texts[0][0].name} and {texts[1][0].name} differ."
        )
    module = importlib.import_module(f"{__name__}.{settings.name}")
    runs = [run for text in texts for run in text]
    text = plain(runs[0].text)
    values = {
        "text": text,
        "foreign": "" if runs[0].manifest.official_text else text,
        "ways": ways(runs),
        "out_of_time": out_of_time(runs),
        "unfinished": left_out(
            "Not finished", (r for r in runs if not r.finished)
        ),
        **module.page_values(runs if one else texts, settings, out or folder),
    }
    title, _, rest = said.partition("\n\n")
    headed = title.startswith("# ")
    text = fill(str(settings.name), notes=rest if headed else said, **values)
    if headed:
        text = title + text[text.index("\n") :]
    path = (out or folder) / f"{settings.name}.md"
    write_text(path, text + "\n")
    return path
