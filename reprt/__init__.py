"""Reinforced position embedding (RePE) for Transformers, in Keras 3.

Importing the package registers its classes with Keras, so that
`keras.saving.load_model` finds them. What needs more than Keras and TensorFlow (text,
training, reports) is imported where it is used.
"""

import importlib
import sys
from pathlib import Path

__version__ = "0.1.0"

__all__ = [
    "Translator",
    "data",
    "decoding",
    "layers",
    "losses",
    "metrics",
    "models",
    "schedules",
]


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module 'reprt' has no attribute {name!r}")
    if name == "Translator":
        return importlib.import_module("reprt.decoding.translator").Translator
    return importlib.import_module(f"reprt.{name}")


def _is_the_command() -> bool:
    """Whether `reprt`, or `python -m reprt`, is what Python runs."""
    (name, *_) = getattr(sys, "argv", None) or ["-"]
    if name != "-m":
        return Path(name).stem == "reprt"
    words = iter(sys.orig_argv)
    option = next(word for word in words if word.startswith("-m"))
    module = option.removeprefix("-m") or next(words)
    return module.partition(".")[0] == "reprt"


# The command answers questions about itself before Keras has loaded, and imports what
# it needs. Everybody else finds all classes registered.
if not _is_the_command():
    for _name in __all__:
        __getattr__(_name)
