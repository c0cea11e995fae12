"""The pages on runs, by name. A module and a template of that name make each.

The module's `page_values(runs, settings, out)` returns what stands in the template's
places, and writes the page's pictures.
"""

import importlib
import itertools
from pathlib import Path

from reprt.files import write_text
from reprt_lab.pages.runs import (
    PAGE_SETTINGS,
    RUNS,
    SELECTION,
    left_out,
    notes,
    out_of_time,
    page_settings,
    read_texts,
    ways,
)
from reprt_lab.pages.tables import fill, plain
from reprt_lab.recipe import ON_SEVERAL_TEXTS


def write_page(folder: Path, name: str | None = None) -> Path:
    """Writes a page on the runs in a folder and returns its path.

    A file `notes.md` in the folder becomes part of the page; a heading in its first
    line takes the place of the page's own.

    Args:
        folder: what holds the runs; the page goes there.
        name: a `reprt_lab.recipe.Page`; by default what the folder's `page.toml` says,
            else the report, for trials their comparison, and for several texts the
            families.
    """
    texts = read_texts(folder)
    settings = page_settings(folder, texts, name)
    frozen = (folder / RUNS).exists() or (folder / SELECTION).exists()
    if frozen:
        page_name = page_settings(folder, texts).name
        if settings.name != page_name:
            raise ValueError(
                f"{folder} is a frozen experiment, whose page is {page_name!r}. "
                f"Received: --name {settings.name}. `name` in its {PAGE_SETTINGS} "
                "chooses another."
            )
    takes_texts = settings.name in ON_SEVERAL_TEXTS
    if not takes_texts and len(texts) > 1:
        raise ValueError(
            f"Expected the runs in {folder} to be on the same text, with the same "
            f"vocabularies. Those of {texts[0][0].name} and {texts[1][0].name} differ."
        )
    module = importlib.import_module(f"{__name__}.{settings.name}")
    runs = list(itertools.chain.from_iterable(texts))
    text = plain(runs[0].text)
    official = runs[0].manifest.official_text
    unfinished = [run for run in runs if not run.finished]
    values = {
        "text": text,
        "official": text if official else "",
        "foreign": "" if official else text,
        "ways": ways(runs),
        "out_of_time": out_of_time(runs),
        "unfinished": left_out("Not finished", unfinished),
        **module.page_values(texts if takes_texts else runs, settings, folder),
    }
    page_notes = notes(folder)
    title, _, rest = page_notes.partition("\n\n")
    has_title = title.startswith("# ")
    values["notes"] = rest if has_title else page_notes
    page = fill(str(settings.name), **values)
    if has_title:
        page = title + page[page.index("\n") :]
    path = folder / f"{settings.name}.md"
    write_text(path, page + "\n")
    return path
