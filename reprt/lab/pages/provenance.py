"""How runs were made, as pages tell it: starts, and runs that are left out."""

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reprt.lab.pages.escaping import code
from reprt.lab.pages.runs import Run


def provenance_lines(run: Run) -> list[str]:
    """Says of each start of a run when, how, with what and on what it was made."""
    return [
        f"{start['time']}: {_called(start)}, {_environment(start)}"
        for start in run.manifest["starts"]
    ]


def starts_lines(runs: Sequence[Run]) -> list[str]:
    """Returns the ways in which runs were started, below what they were made with."""
    found: dict[str, collections.Counter[str]] = {}
    for run in runs:
        for start in run.manifest["starts"]:
            ways = found.setdefault(_environment(start), collections.Counter())
            ways[_called(start)] += 1
    lines = []
    for environment, ways in sorted(found.items()):
        lines.append(f"- {environment}")
        lines += [f"  - {count} × {way}" for way, count in sorted(ways.items())]
    return [*lines, ""]


def _called(start: Mapping[str, Any]) -> str:
    return f"{code(start['command'])}, commit `{start['commit'] or 'unknown'}`"


def _environment(start: Mapping[str, Any]) -> str:
    versions = ", ".join(
        f"{package} {version}"
        for package, version in start["versions"].items()
        if version
    )
    if "backend" in start:
        versions = f"backend {start['backend']}, {versions}"
    return (
        f"{start['hardware']}, {len(start['devices'])} replica(s), "
        f"Python {start['python']}, {versions}"
    )


def out_of_time_lines(runs: Iterable[Run]) -> list[str]:
    """Names the runs that `training.hours` ended early, which pages count as well."""
    early = [run for run in runs if run.results.get("out_of_time")]
    return left_out_lines("Out of time before the last epoch, and counted", early)


def left_out_lines(why: str, runs: Iterable[Run]) -> list[str]:
    """Names the runs that a page leaves out; no lines if there are none."""
    names = sorted(run.name for run in runs)
    return [f"{why}: {', '.join(names)}.", ""] if names else []
