"""What a command loads, and what it leaves as it was."""

import os
import shutil
import subprocess
import sys

import pytest
import tiny_run

PAGE = """
import sys
sys.argv[0] = "reprt"
from reprt.cli import main
assert main(sys.argv[1:]) == 0
assert not {"keras", "tensorflow"} & sys.modules.keys()
"""


def test_a_page_needs_neither_keras_nor_its_backend(tmp_path):
    frozen = tiny_run.REPOSITORY / "experiments" / "results" / "embedded_corpus"
    shutil.copytree(frozen, tmp_path / "frozen")
    command = sys.executable, "-c", PAGE, "report", str(tmp_path / "frozen")
    environment = {**os.environ, "KERAS_BACKEND": "theano"}
    subprocess.run(command, check=True, env=environment)


@pytest.mark.parametrize(
    "arguments, registered",
    [
        (["-c", "import sys; sys.argv = []; import reprt, tool"], True),
        (["-m", "package.tool"], True),
        (["-m", "reprt", "--version"], False),
        (["-mreprt", "--version"], False),
    ],
)
def test_all_but_the_command_find_the_classes_registered(
    tmp_path, arguments, registered
):
    said = """
import atexit, sys
atexit.register(lambda: print("reprt.models" in sys.modules))
"""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("import reprt")
    for path in (tmp_path / "sitecustomize.py", tmp_path / "tool.py"):
        path.write_text(said if path.stem == "sitecustomize" else "")
    (tmp_path / "package" / "tool.py").write_text("")
    path = os.pathsep.join([str(tmp_path), str(tiny_run.REPOSITORY)])
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, check=True, env=environment, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == str(registered)
