"""Live runs put into the few files of a frozen experiment, with their page."""

import itertools
from pathlib import Path

import tomli_w

from reprt.data.corpora import embedded
from reprt.files import write_text
from reprt_lab.pages import write_page
from reprt_lab.pages.runs import (
    NOTES,
    PAGE_SETTINGS,
    RUNS,
    notes,
    page_settings,
    read_texts,
)
from reprt_lab.records import Run, read_records


def freeze(folder: Path, out: Path | None = None) -> tuple[Path, list[str]]:
    """Writes a frozen experiment: its runs, how they are shown, notes and the page.

    Of translations, only those of the embedded corpus are kept: other sentences belong
    to their authors. A finished run that is frozen already is not lost. Returns the
    path of the experiment, and the names of the runs that have not finished.
    """
    whole = folder.resolve()
    out = out or whole.with_name(f"{whole.name}-frozen")
    texts = read_texts(folder)
    settings = page_settings(folder, texts)
    runs = list(itertools.chain.from_iterable(texts))
    if out.exists() and any(out.iterdir()) and not (out / RUNS).exists():
        raise ValueError(
            f"Expected {out} to be empty or a frozen experiment. Received a folder "
            "with other files. Choose another --out."
        )
    finished = [_identity(run) for run in runs if run.metrics]
    lost_names = []
    frozen_runs = read_records(out / RUNS) if (out / RUNS).exists() else []
    for run in frozen_runs:
        if run.metrics and _identity(run) not in finished:
            lost_names.append(run.name)
    if lost_names:
        raise ValueError(
            f"{out} holds finished runs that {folder} does not have, or not finished: "
            f"{', '.join(lost_names)}. Choose another --out."
        )
    write_text(out / RUNS, "".join(map(_line, runs)))
    settings = settings.changed(models={run.model: run.look for run in runs})
    write_text(out / PAGE_SETTINGS, tomli_w.dumps(settings.as_table()))
    if text := notes(folder):
        write_text(out / NOTES, text + "\n")
    write_page(out)
    return out, [run.name for run in runs if not run.metrics]


def _identity(run: Run):
    return run.name, run.manifest.hashes, run.settings.identity


def _line(run: Run) -> str:
    """A run and, of a text of others, none of their sentences."""
    hidden = None if run.text == embedded.NAME else {"metrics": {"examples"}}
    return run.model_dump_json(exclude_none=True, exclude=hidden) + "\n"
