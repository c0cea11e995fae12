"""How many cores of the processor this process may use, and work that they share.

By hand, for `os.process_cpu_count` of Python 3.13 knows no cgroups, and `joblib` only
the topmost.
"""

import collections
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MEMBERSHIPS = Path("/proc/self/cgroup")
CGROUPS = Path("/sys/fs/cgroup")


def usable_cores() -> float:
    """Returns the cores that `taskset`, batch systems and containers leave."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return min([cores, *_quotas()])


def in_threads(function: Callable, items: Iterable) -> Iterator:
    """Yields what a function returns of each item, in their order.

    A thread of each core calls it, a few items ahead. This helps where the function
    leaves Python's lock to others, as TensorFlow and sentencepiece do.
    """
    threads = max(1, int(usable_cores()))
    with ThreadPoolExecutor(threads) as pool:
        calls: collections.deque = collections.deque()
        for item in items:
            calls.append(pool.submit(function, item))
            if len(calls) > 2 * threads:
                yield calls.popleft().result()
        while calls:
            yield calls.popleft().result()


def _quotas() -> Iterator[float]:
    """Yields the limits of this process's cgroups, and of those that hold them."""
    if not MEMBERSHIPS.exists():
        return
    for line in MEMBERSHIPS.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        # Version 2 has one tree for all controllers.
        if not controllers:
            mount = CGROUPS
        elif "cpu" in controllers.split(","):
            mount = CGROUPS / "cpu"
        else:
            continue
        # A container sees only its own part of the path, perhaps only the mount.
        cgroup = mount / path.strip("/")
        for folder in (cgroup, *cgroup.parents):
            if folder.is_relative_to(mount):
                yield from _quota(folder)


def _quota(folder: Path) -> Iterator[float]:
    """Yields one cgroup's limit in cores, if it has one."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text()
    except OSError:
        return
    if quota not in ("max", "-1"):
        yield int(quota) / int(period)
