"""Reinforced position embedding (RePE) for Transformers, in Keras 3.

Importing the package registers its classes with Keras, so that
`keras.saving.load_model` finds them. What needs more than Keras and TensorFlow (text,
training, the laboratory) is imported where it is used.
"""

import importlib

from reprt.loading import quietly

__version__ = "0.1.0"

__all__ = [
    "Translator",
    "analysis",
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


with quietly():
    from reprt import layers, losses, metrics, models, schedules
