import os
import subprocess
import sys

import pytest
import tiny_run

from reprt import cores
from reprt_lab import provenance


@pytest.fixture
def write_cgroups(tmp_path, monkeypatch):
    """A function that lays out memberships, and files of cgroups with their text."""

    def write(memberships, limits):
        monkeypatch.setattr(
            os, "sched_getaffinity", lambda process: {*range(64)}
        )
        monkeypatch.setattr(cores, "CGROUPS", tmp_path)
        monkeypatch.setattr(cores, "MEMBERSHIPS", tmp_path / "memberships")
        (tmp_path / "memberships").write_text(memberships)
        for name, text in limits.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(f"{text}\n")

    return write


V1 = "3:cpuset:/\n2:cpu,cpuacct:/batch/job\n0::/\n"


@pytest.mark.parametrize(
    "memberships, limits, expected",
    [
        ("0::/\n", {}, 64),
        ("0::/\n", {"cpu.max": "max 100000"}, 64),
        ("0::/\n", {"cpu.max": "150000 100000"}, 1.5),
        (
            "0::/a/b\n",
            {"a/cpu.max": "200000 100000", "a/b/cpu.max": "max 1"},
            2,
        ),
        ("0::/not/mounted/here\n", {"cpu.max": "400000 100000"}, 4),
        (V1, {"cpu/batch/cpu.cfs_quota_us": "-1"}, 64),
        (
            V1,
            {
                "cpu/batch/job/cpu.cfs_quota_us": "300000",
                "cpu/batch/job/cpu.cfs_period_us": "100000",
            },
            3,
        ),
        (
            V1,
            {
                "cpu/cpu.cfs_quota_us": "50000",
                "cpu/cpu.cfs_period_us": "100000",
            },
            0.5,
        ),
    ],
)
def test_limits_of_cgroups_count(
    write_cgroups, monkeypatch, memberships, limits, expected
):
    write_cgroups(memberships, limits)
    assert cores.usable_cores() == expected
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    description = "64 cores" if expected == 64 else f"{expected:g} of 64 cores"
    assert provenance._hardware().endswith(f", {description}")


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="no affinity here"
)
def test_the_cores_of_taskset_count():
    """The module alone, for the package takes its time."""
    path = tiny_run.REPOSITORY / "reprt" / "cores.py"
    script = (
        "import os, runpy\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        f"print(runpy.run_path({str(path)!r})['usable_cores']())\n"
    )
    command = [sys.executable, "-c", script]
    assert float(subprocess.check_output(command, text=True)) <= 1
