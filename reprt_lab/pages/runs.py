"""Runs, live or frozen, as pages read them.

A folder's runs are its run folders, those of its `runs.jsonl`, and those that its
`selection.toml` takes from other folders:

    "../ablation/az_to_en" = ["baseline.text", "repe.text.0"]

names a folder and the beginnings of its runs' names, up to a dot. `page.toml` says how
a page shows the models; for those that it leaves out, the other folder's does.
"""

import collections
from collections.abc import Iterable, Sequence
from pathlib import Path

from reprt.files import is_unfinished, read_text, read_toml
from reprt.models.presets import PRESETS
from reprt_lab.folder import RunFolder
from reprt_lab.recipe import Look, PageSettings, named
from reprt_lab.records import Run, read_records

RUNS, SELECTION, NOTES = "runs.jsonl", "selection.toml", "notes.md"
SETTINGS = "page.toml"  # of the page in a folder: its name, and how it shows the models


def page_settings(
    folder: Path, texts: Sequence[Sequence[Run]], name: str | None = None
) -> PageSettings:
    """Returns what a folder's `page.toml` says, with a page's name in any case."""
    settings = _said(folder)
    name = name or settings.name
    if name is None:
        runs, *others = texts
        trials = any("." in run.name for run in runs)
        name = "families" if others else "comparison" if trials else "report"
    return settings.changed(name=name)


def read_texts(folder: Path) -> list[list[Run]]:
    """Returns the runs in a folder, those on one text together."""
    runs = _own_runs(folder)
    path = folder / SELECTION
    selection = read_toml(path) if path.exists() else {}
    for other, beginnings in selection.items():
        there = _own_runs(folder / other, _said(folder))
        runs += named(there, beginnings, f"Of {path}, {folder / other}")
    if not runs:
        raise ValueError(
            f"Expected a folder with run folders in it. Received: {folder}, without "
            f"any, and without the {RUNS} of a frozen experiment."
        )
    places = {name: place for place, name in enumerate(PRESETS)}
    texts: dict[tuple, dict[tuple, Run]] = {}
    for run in runs:  # one that is frozen and selected, or linked to, is one
        unofficial = (
            not run.manifest.official_text
        )  # the paper's own text is first
        text = unofficial, run.text.lower(), run.text, run.manifest.hashes
        preset = run.settings.preset
        identity = str(run.settings.identity)
        place = -places.get(preset, -1)
        order = place, run.name != preset, run.name, identity
        texts.setdefault(text, {}).setdefault(
            order, run
        )  # the folder's own first
    return [
        [found[order] for order in sorted(found)]
        for _, found in sorted(texts.items())
    ]


def _own_runs(folder: Path, first: PageSettings = PageSettings()) -> list[Run]:
    """The runs that a folder itself holds, or its folders of texts."""
    runs = [
        RunFolder(path.parent).record()
        for pattern in ("*/config.toml", "*/*/config.toml")
        for path in sorted(folder.glob(pattern))
        if not is_unfinished(path.parent)
    ]
    if (folder / RUNS).exists():
        runs += read_records(folder / RUNS)
    looks = _said(folder).models | first.models
    return [run.changed(look=looks.get(run.model, Look())) for run in runs]


def _said(folder: Path) -> PageSettings:
    path = folder / SETTINGS
    return PageSettings.read(
        read_toml(path) if path.exists() else {}, str(path)
    )


def notes(folder: Path) -> str:
    """Returns the folder's `notes.md`, or nothing."""
    path = folder / NOTES
    return read_text(path).strip() if path.exists() else ""


def ways(runs: Iterable[Run]) -> str:
    """Returns the ways in which runs were started, below what they were made with."""
    counts: dict[str, collections.Counter[str]] = {}
    for start in (start for run in runs for start in run.manifest.starts):
        versions = [f"{name} {n}" for name, n in start.versions.items() if n]
        environment = (
            f"{start.hardware}, {len(start.devices)} replica(s), Python {start.python},"
            f" backend {', '.join([start.backend, *versions])}"
        )
        own = counts.setdefault(environment, collections.Counter())
        own[f"`{start.command}`, commit `{start.commit or 'unknown'}`"] += 1
    lines = []
    for environment, called in sorted(counts.items()):
        lines.append(f"- {environment}")
        lines += [
            f"  - {count} × {way}" for way, count in sorted(called.items())
        ]
    return "\n".join(lines)


def out_of_time(runs: Iterable[Run]) -> str:
    """Names the runs that `training.hours` ended early, which pages count as well."""
    early = [run for run in runs if run.metrics and run.metrics.out_of_time]
    return left_out("Out of time before the last epoch, and counted", early)


def left_out(why: str, runs: Iterable[Run]) -> str:
    """Names the runs that a page leaves out; nothing if there are none."""
    names = sorted(run.name for run in runs)
    return f"{why}: {', '.join(names)}." if names else ""
