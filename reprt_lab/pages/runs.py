"""Runs, live or frozen, as pages read them.

A folder's runs are its run folders, those of its `runs.jsonl`, and those that its
`selection.toml` takes from other folders:

    "../ablation/az_to_en" = ["baseline.text", "repe.text.0"]

names a folder and the beginnings of its runs' names, up to a dot. `page.toml` says how
a page shows the models; for those that it leaves out, the other folder's does.
"""

import collections
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from reprt.files import is_unfinished, read_text, read_toml
from reprt_lab.folder import RunFolder
from reprt_lab.pages.tables import plain
from reprt_lab.recipe import Look, PageSettings, select_runs
from reprt_lab.records import Run, Start, read_records

RUNS, SELECTION, NOTES = "runs.jsonl", "selection.toml", "notes.md"
# Which page a folder has, and how it shows the models.
PAGE_SETTINGS = "page.toml"


def page_settings(
    folder: Path,
    texts: Sequence[Sequence[Run]],
    name: str | None = None,
) -> PageSettings:
    """Returns what a folder's `page.toml` says, with a page's name in any case."""
    settings = _read_page_settings(folder)
    name = name or settings.name
    if name is None:
        if len(texts) > 1:
            name = "families"
        elif any("." in run.name for run in texts[0]):
            name = "comparison"
        else:
            name = "report"
    return settings.changed(name=name)


def read_texts(folder: Path) -> list[list[Run]]:
    """Returns the runs in a folder, those on one text together."""
    runs = _runs_in(folder)
    path = folder / SELECTION
    selection = read_toml(path) if path.exists() else {}
    looks = _read_page_settings(folder).models
    for other_folder, prefixes in selection.items():
        other_runs = _runs_in(folder / other_folder, looks)
        runs += select_runs(
            other_runs, prefixes, f"Of {path}, {folder / other_folder}"
        )
    if not runs:
        raise ValueError(
            f"Expected a folder with run folders in it. Received: {folder}, without "
            f"any, and without the {RUNS} of a frozen experiment."
        )
    unique: dict[tuple, Run] = {}
    for run in runs:
        # A run that is frozen and selected, or linked to, is one: the folder's own.
        settings = str(run.settings.identity)
        unique.setdefault((_place_of_text(run), run.name, settings), run)
    texts: dict[tuple, list[Run]] = {}
    for place in sorted(unique):
        texts.setdefault(place[0], []).append(unique[place])
    return list(texts.values())


def _place_of_text(run: Run) -> tuple:
    """Where a run's text stands among others; the paper's own texts come first."""
    manifest = run.manifest
    unofficial = not manifest.official_text
    return unofficial, run.text.lower(), manifest.hashes


def _runs_in(folder: Path, looks: Mapping[str, Look] = {}) -> list[Run]:
    """The runs that a folder itself holds, or its folders of texts."""
    runs = []
    for pattern in ("*/config.toml", "*/*/config.toml"):
        for path in sorted(folder.glob(pattern)):
            if is_unfinished(path.parent):
                continue
            record = RunFolder(path.parent).record()
            # A run that has not begun yet has nothing to show.
            if record.manifest.starts:
                runs.append(record)
    if (folder / RUNS).exists():
        runs += read_records(folder / RUNS)
    looks = {
        **_read_page_settings(folder).models,
        **looks,
    }
    return [run.changed(look=looks.get(run.model, Look())) for run in runs]


def _read_page_settings(folder: Path) -> PageSettings:
    path = folder / PAGE_SETTINGS
    table = read_toml(path) if path.exists() else {}
    return PageSettings.read(table, str(path))


def notes(folder: Path) -> str:
    """Returns the folder's `notes.md`, or nothing."""
    path = folder / NOTES
    return read_text(path).strip() if path.exists() else ""


def ways(runs: Iterable[Run]) -> str:
    """Returns the ways in which runs were started, below what they were made with."""
    counts: dict[str, collections.Counter[str]] = {}
    for run in runs:
        for start in run.manifest.starts:
            environment = _environment(start)
            commands = counts.setdefault(environment, collections.Counter())
            commit = start.commit or "unknown"
            commands[f"`{start.command}`, commit `{commit}`"] += 1
    lines = []
    for environment, commands in sorted(counts.items()):
        lines.append(f"- {environment}")
        for command, count in sorted(commands.items()):
            lines.append(f"  - {count} × {command}")
    return "\n".join(lines)


def _environment(start: Start) -> str:
    versions = [f"{name} {n}" for name, n in start.versions.items() if n]
    backend = ", ".join([start.backend, *versions])
    return (
        f"{start.hardware}, {len(start.devices)} replica(s), Python {start.python},"
        f" backend {backend}"
    )


def out_of_time(runs: Iterable[Run]) -> str:
    """Names the runs that `training.hours` ended early, which pages count as well."""
    early = [run for run in runs if run.metrics and run.metrics.out_of_time]
    return left_out("Out of time before the last epoch, and counted", early)


def running(runs: Iterable[Run]) -> str:
    """Says of unfinished runs how far they are."""
    return "; ".join(plain(run.state) for run in runs if not run.finished)


def left_out(why: str, runs: Iterable[Run]) -> str:
    """Names the runs that a page leaves out; nothing if there are none."""
    names = sorted(run.name for run in runs)
    return f"{why}: {', '.join(names)}." if names else ""
