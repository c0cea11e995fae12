"""Reinforced position embedding (RePE) for Transformers, in Keras 3."""

import importlib

__version__ = "0.1.0"

_SUBMODULES = (
    "data",
    "decoding",
    "layers",
    "losses",
    "metrics",
    "models",
    "schedules",
    "training",
)


def __getattr__(name):
    # Submodules load on first use: `reprt --help` needs no TensorFlow.
    if name in _SUBMODULES:
        return importlib.import_module(f"reprt.{name}")
    raise AttributeError(f"module 'reprt' has no attribute {name!r}")


def __dir__():
    return [*_SUBMODULES, "__version__"]
