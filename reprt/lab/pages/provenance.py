"""How runs were made, as pages tell it, and the runs that are left out."""

import collections
from collections.abc import Iterable

from reprt.lab.pages.runs import Run


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
        lines += [f"  - {count} × {way}" for way, count in sorted(called.items())]
    return "\n".join(lines)


def out_of_time(runs: Iterable[Run]) -> str:
    """Names the runs that `training.hours` ended early, which pages count as well."""
    early = [run for run in runs if run.metrics and run.metrics.out_of_time]
    return left_out("Out of time before the last epoch, and counted", early)


def left_out(why: str, runs: Iterable[Run]) -> str:
    """Names the runs that a page leaves out; nothing if there are none."""
    names = sorted(run.name for run in runs)
    return f"{why}: {', '.join(names)}." if names else ""
