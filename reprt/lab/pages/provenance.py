"""How runs were made, as pages tell it: starts, and runs that are left out."""

import collections
from collections.abc import Iterable

from reprt.lab.pages.runs import Run
from reprt.lab.records import Start


def started(runs: Iterable[tuple[str, Iterable[Run]]]) -> str:
    """Says when, how, with what and on what named groups of runs were started."""
    lines = []
    for name, together in runs:
        lines.append(f"- {name}")
        for start in (start for run in together for start in run.manifest.starts):
            lines.append(f"  - {start.time}: {_called(start)}, {_environment(start)}")
    return "\n".join(lines)


def ways(runs: Iterable[Run]) -> str:
    """Returns the ways in which runs were started, below what they were made with."""
    counts: dict[str, collections.Counter[str]] = {}
    for start in (start for run in runs for start in run.manifest.starts):
        own = counts.setdefault(_environment(start), collections.Counter())
        own[_called(start)] += 1
    lines = []
    for environment, called in sorted(counts.items()):
        lines.append(f"- {environment}")
        lines += [f"  - {count} × {way}" for way, count in sorted(called.items())]
    return "\n".join(lines)


def _called(start: Start) -> str:
    return f"`{start.command}`, commit `{start.commit or 'unknown'}`"


def _environment(start: Start) -> str:
    versions = [f"{name} {found}" for name, found in start.versions.items() if found]
    return (
        f"{start.hardware}, {len(start.devices)} replica(s), Python {start.python}, "
        + ", ".join([f"backend {start.backend}", *versions])
    )


def out_of_time(runs: Iterable[Run]) -> str:
    """Names the runs that `training.hours` ended early, which pages count as well."""
    early = [run for run in runs if run.metrics and run.metrics.out_of_time]
    return left_out("Out of time before the last epoch, and counted", early)


def left_out(why: str, runs: Iterable[Run]) -> str:
    """Names the runs that a page leaves out; nothing if there are none."""
    names = sorted(run.name for run in runs)
    return f"{why}: {', '.join(names)}." if names else ""
