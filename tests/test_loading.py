"""What a command loads, and what it leaves as it was."""

import gc
import os
import shutil
import subprocess
import sys

import tiny_run

from reprt.loading import uncollected

TRANSLATION = """
import gc, sys
sys.argv[0] = "reprt"
from reprt.cli import main
assert main(sys.argv[1:]) == 0
for name in ("matplotlib", "IPython", "tensorflow_datasets", "sacrebleu"):
    assert name not in sys.modules, name
assert gc.isenabled() and gc.get_freeze_count()
import matplotlib.figure  # as the command itself may
"""


def test_a_translation_loads_no_more_than_it_needs(tmp_path_factory):
    run = tiny_run.lively(tmp_path_factory.getbasetemp(), "baseline")
    command = sys.executable, "-c", TRANSLATION
    subprocess.run([*command, "translate", str(run), "o homem sabe"], check=True)


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


def test_garbage_is_collected_again_unless_it_was_not_before():
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
