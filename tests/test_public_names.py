"""The package uses public names of Keras and TensorFlow, but for those listed."""

import ast
import re
from pathlib import Path

import keras
import pytest

ROOT = Path(__file__).parents[1]
FILES = [
    file
    for package in ("reprt", "reprt_lab")
    for file in sorted((ROOT / package).rglob("*.py"))
    if "recipes" not in file.parts
]
# Names that objects of the package have as well, which are none of Keras'.
OWN_NAMES = {"_losses", "_name", "_path", "_variables"}
# Parts of these packages that are not for users.
PRIVATE_MODULES = re.compile(r"keras\.src|tensorflow\.python|jax\._src")


def listed_names():
    """The names that the page for contributors gives reasons for."""
    text = (ROOT / "docs" / "contributing.md").read_text()
    _, _, section = text.partition("## Private names of Keras and TensorFlow")
    section, _, _ = section.partition("\n## ")
    return set(re.findall(r"^\| `([\w.]+)` \|", section, re.MULTILINE))


def private_names():
    """Every private name of the objects that the package has to do with."""
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(), "mse", metrics=["mse"])
    model.build((1, 1))
    model.optimizer.build(model.trainable_variables)
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD())
    objects = [model, *model.layers, *model.metrics, optimizer]
    objects += [model.optimizer, keras.losses.MeanSquaredError()]
    names = {"_keras_mask", "_keras_history"}
    for item in objects:
        names |= {*dir(item)}
    return {name for name in names if re.match(r"_[^_]", name)} - OWN_NAMES


def used_names(tree, private):
    """The private names in a module: imported, read, set or overridden."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.FunctionDef):
            names = [node.name]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value]
        else:
            continue
        for name in names:
            if name in private or PRIVATE_MODULES.match(name or ""):
                yield name


def test_private_names_are_those_that_are_listed():
    private, names = private_names(), set()
    for file in FILES:
        names |= {*used_names(ast.parse(file.read_text()), private)}
    assert names == listed_names()
    assert len(names) <= 3


@pytest.mark.parametrize(
    "code",
    [
        "from keras.src import ops",
        "import tensorflow.python.eager",
        "layer._layers",
        "getattr(x, '_keras_mask', None)",
        "class A:\n    def _flatten_layers(self): pass",
    ],
)
def test_private_names_are_seen(code):
    assert list(used_names(ast.parse(code), private_names()))
