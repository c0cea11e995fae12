"""Layers and models on the oldest and the newest Keras that setup.cfg allows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RANGE = re.search(
    r"keras >=([\d.]+),<([\d.]+)", (ROOT / "setup.cfg").read_text()
)


@pytest.mark.long
@pytest.mark.parametrize(
    "version", [f"=={RANGE[1]}.0", f">={RANGE[1]},<{RANGE[2]}"]
)
def test_layers_and_models_work_on_allowed_versions_of_keras(version, tmp_path):
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--quiet"]
    installation = subprocess.run(
        [*pip, "--target", tmp_path / "keras", f"keras{version}"],
        capture_output=True,
        text=True,
    )
    if re.search("NewConnection|ConnectTimeout|Proxy", installation.stderr):
        pytest.skip("there is no network")
    assert installation.returncode == 0, installation.stderr[-2000:]
    tests = ["tests/layers", "tests/models", "-m", "not long"]
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *tests],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "keras")},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, (
        process.stdout[-5000:] + process.stderr[-2000:]
    )
