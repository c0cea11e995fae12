"""What a wheel brings: whoever installs it has no repository."""

import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest
from elsewhere import python
from tiny_run import REPOSITORY

NAMES = sorted(
    path.stem for path in (REPOSITORY / "experiments").glob("*.toml")
)


@pytest.fixture
def wheel_folder(tmp_path):
    """The folder of a wheel's files; it is built of a copy, which building changes."""
    source = tmp_path / "source"
    ignore = shutil.ignore_patterns("results", "benchmark", "__pycache__")
    for name in ("reprt", "reprt_lab", "experiments"):
        folder = REPOSITORY / name
        shutil.copytree(folder, source / name, symlinks=True, ignore=ignore)
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    build = "from setuptools import build_meta; build_meta.build_wheel('..')"
    python(build, cwd=source)
    [wheel] = tmp_path.glob("reprt-*.whl")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(tmp_path / "installed")
    return tmp_path / "installed"


def test_recipes_are_found_by_name_without_the_repository(wheel_folder):
    script = """
import sys
from pathlib import Path
from reprt_lab import recipe
recipes = [recipe.load_recipe(Path(name)) for name in sys.argv[1:]]
print(recipe.__file__, *(item.name for item in recipes))
"""
    environment = {
        **os.environ,
        "PYTHONPATH": str(wheel_folder),
        "KERAS_BACKEND": "jax",
    }
    output = python(script, *NAMES, cwd=wheel_folder.parent, env=environment)
    location, *names = output.split()
    assert location.startswith(str(wheel_folder))
    assert names == NAMES and "pt_to_en" in NAMES
    files = sorted(
        path.name for path in (wheel_folder / "reprt_lab/recipes").iterdir()
    )
    assert files == [f"{name}.toml" for name in NAMES]


def test_the_package_is_found_beside_a_clone_of_its_name(tmp_path):
    (tmp_path / "reprt" / "reprt").mkdir(parents=True)
    script = (
        "from importlib.util import find_spec; print(find_spec('reprt').origin)"
    )
    environment = {**os.environ}
    environment.pop("PYTHONPATH", None)
    command = [sys.executable, "-c", script]
    options = {"cwd": tmp_path, "env": environment, "text": True}
    path = subprocess.check_output(command, **options)
    assert pathlib.Path(path.strip()).name == "__init__.py"
