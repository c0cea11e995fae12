"""Every example in a docstring and in the README does what it shows."""

import dataclasses
import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
from elsewhere import python

import reprt

README = Path(__file__).parent.parent / "README.md"


def modules():
    packages = pkgutil.walk_packages(reprt.__path__, "reprt.")
    return [
        package.name for package in packages if package.name != "reprt.__main__"
    ]


@pytest.mark.parametrize("name", modules())
# Keras wonders at attention over a single token.
@pytest.mark.filterwarnings("ignore:(?s).*You are using a softmax over axis")
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize(
    "name",
    "layers models losses metrics schedules optimizers decoding analysis.lookahead "
    "linear_crossentropy training.objective".split(),
)
def test_what_is_used_from_python_has_an_example(name):
    module = importlib.import_module(f"reprt.{name}")
    members = [
        value
        for attribute, value in vars(module).items()
        if getattr(value, "__module__", "").startswith(module.__name__)
        and attribute[0] != "_"
        and not dataclasses.is_dataclass(value)
        and not issubclass(value if isinstance(value, type) else object, tuple)
    ]
    assert members
    assert [
        member for member in members if ">>>" not in (member.__doc__ or "")
    ] == []


@pytest.mark.long
def test_the_readmes_own_script(tmp_path):
    [script] = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len([line for line in script.splitlines() if line.strip()]) <= 12
    # Any warning would be ours, but for what Keras says of every dataset.
    warnings = [
        "-W",
        "error::UserWarning",
        "-W",
        "ignore:`shuffle=True`:UserWarning",
    ]
    process = subprocess.run(
        [sys.executable, *warnings, "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert process.returncode == 0, process.stderr
    # AutoGraph tells of code that it cannot read.
    assert "AutoGraph" not in process.stderr


def test_layers_import_without_the_extras():
    """A plain `pip install` has no tensorflow-text, pandas, matplotlib or sacrebleu."""
    script = """
import sys
extras = "tensorflow_text tensorflow_datasets matplotlib sacrebleu tomli_w pooch tqdm"
sys.modules.update({name: None for name in [*extras.split(), "pandas"]})
import reprt
from keras.saving import get_registered_object as found
assert all(map(found, ["reprt>Transformer", "reprt>MaskedCrossentropy"]))
from reprt import layers, losses, metrics, models, schedules
models.build("repe", 9, 9)
assert "reprt_lab" not in sys.modules
import reprt_lab.translate
"""
    python(script)
