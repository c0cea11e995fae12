"""What an import leaves behind."""

import os
import subprocess
import sys

import pytest
from elsewhere import python
from tiny_run import randomized_run

import reprt


def run_python(*command, **variables):
    """The status of a process and what stands on its standard error."""
    environment = {**os.environ}
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    process = subprocess.run(
        [sys.executable, *command],
        env=environment | variables,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    return process.returncode, process.stderr.decode()


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_a_command_prints_nothing_of_tensorflow(tmp_path_factory, backend):
    run = randomized_run(tmp_path_factory.getbasetemp(), "baseline")
    command = "-m", "reprt_lab.command", "translate", str(run), "o homem sabe"
    status, lines = run_python(*command, KERAS_BACKEND=backend)
    # Remarks on the sentence are ours.
    assert status == 0 and all(
        line.startswith("reprt: ") for line in lines.splitlines()
    )


def test_a_script_that_imports_reprt_first_sees_nothing_of_tensorflow():
    script = (
        "import reprt, keras, numpy as np, tensorflow as tf\n"
        "model = keras.Sequential([reprt.layers.RMSNorm(), keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\n"
        "model.fit(np.ones((2, 3, 4)), np.ones((2, 3, 1)), verbose=0)\n"
    )
    assert run_python("-c", script) == (0, "")


@pytest.mark.parametrize(
    "backend, message",
    [
        (
            "torch",
            "ImportError: Keras needs the package torch for KERAS_BACKEND=torch",
        ),
        (
            "jax",
            "ImportError: Keras needs the package jax for KERAS_BACKEND=jax: pip",
        ),
        (
            "flax",
            "ValueError: Expected KERAS_BACKEND to be tensorflow, jax or torch.",
        ),
    ],
)
def test_a_backend_that_cannot_be_loaded_is_named(backend, message):
    script = (  # as if neither package were there
        "import sys\n"
        "for name in ('torch', 'jax'): sys.modules[name] = None\n"
        "import reprt\n"
        "reprt.models"
    )
    status, text = run_python("-c", script, KERAS_BACKEND=backend)
    line = text.strip().splitlines()[-1]
    assert status == 1 and line.startswith(message)


@pytest.mark.parametrize(
    "end, notes", [("", ""), ("; raise OSError", "a note\n")]
)
def test_notes_are_shown_if_loading_fails(end, notes):
    script = (
        "import os, sys, types\n"
        "sys.modules['reprt'] = types.ModuleType('reprt')\n"  # whose import loads all
        "sys.modules['reprt'].__path__ = [sys.argv[1]]\n"
        "from reprt.imports import silence_imports\n"
        f"with silence_imports(): os.write(2, b'a note\\n'){end}\n"
    )
    folder = os.path.dirname(reprt.__file__)
    status, text = run_python("-c", script, folder, TF_CPP_MIN_LOG_LEVEL="2")
    assert text.startswith(notes) and bool(text) == bool(status) == bool(notes)


# A user's first import, then ours; the last line lists what Keras knows of us.
@pytest.mark.parametrize(
    "first",
    [
        "import reprt, keras",
        "import keras, reprt",
        "from reprt.analysis import audit; import keras",
        "from reprt.layers.attention import PMHA; import keras",
        "import reprt.losses, keras",
    ],
)
def test_keras_knows_every_class_whatever_is_imported_first(first):
    script = (
        f"{first}\n"
        "names = keras.saving.get_custom_objects()\n"
        "print({'reprt>Transformer', 'reprt>TokenNorm'} <= set(names))"
    )
    assert python(script) == "True"


def test_without_any_backend_the_library_says_what_to_install():
    script = (
        "import sys\n"
        "for name in ('tensorflow', 'torch', 'jax'): sys.modules[name] = None\n"
        "import reprt\n"
        "reprt.models"
    )
    environment = {**os.environ}
    environment.pop("KERAS_BACKEND", None)
    process = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=environment,
    )
    line = process.stderr.strip().splitlines()[-1]
    assert line.startswith("ImportError: Keras has no backend: install")
    assert all(
        f"'.[{name}]'" in line for name in ("tensorflow", "jax", "torch")
    )
