"""Packages that only an extra has, and the quiet loading of those that all need."""

import contextlib
import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

# What Linux names the devices of GPUs.
GPUS = "nvidia*", "nvhost*", "dxg", "kfd"
# The packages of Keras' backends.
HOW_TO_INSTALL = {
    "tensorflow": "pip install tensorflow",
    "jax": "pip install '.[jax]'",
    "torch": "pip install torch",
    "openvino": "pip install openvino",
}


def load_extra(package: str, need: str):
    """Imports a package of an extra, or raises an error that begins with `need`."""
    try:
        with quietly():
            return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(
            f"{need} Importing it failed with: {error}"
        ) from error


def load_keras():
    """Imports Keras; a backend that it cannot load is named, and how to get it."""
    try:
        importlib.import_module("keras")
    except (ImportError, ValueError) as error:
        chosen = os.environ.get("KERAS_BACKEND")
        chosen = (
            f"KERAS_BACKEND={chosen}" if chosen else "the choice in keras.json"
        )
        lacking = (getattr(error, "name", None) or "").partition(".")[0]
        if lacking in HOW_TO_INSTALL:
            raise ImportError(
                f"Keras needs the package {lacking} for {chosen}: "
                f"{HOW_TO_INSTALL[lacking]}, or set KERAS_BACKEND=tensorflow"
            ) from error
        if "Unable to import backend" in str(error):
            raise ValueError(
                "Expected KERAS_BACKEND to be tensorflow, jax or torch. Received: "
                f"{chosen}."
            ) from error
        raise


def lazily(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Returns a module's `__getattr__`: names are imported when they are asked for."""

    def get(name):
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home = importlib.import_module(homes[name])
        # A name may also be that of the module itself.
        return getattr(home, name, home)

    return get


def ask_for_quiet():
    """Asks TensorFlow to print no notes, unless the user chose what it prints.

    Level 2 keeps its errors. Level 3 hides these too, for without a GPU TensorFlow
    reports the missing GPU as an error.
    """
    devices = Path("/dev")
    gpu = any(any(devices.glob(pattern)) for pattern in GPUS)
    level = "2" if gpu or sys.platform != "linux" else "3"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", level)


@contextlib.contextmanager
def quietly():
    """Keeps off standard error what TensorFlow prints of itself while it is loaded.

    It does so where `TF_CPP_MIN_LOG_LEVEL` asks for no notes, which TensorFlow begins
    to heed only later. What was printed is shown if the loading fails.
    """
    asked = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "0") != "0"
    if not asked or "tensorflow" in sys.modules:
        yield
        return
    kept = os.dup(2)
    with tempfile.TemporaryFile() as notes:
        os.dup2(notes.fileno(), 2)
        try:
            yield
        except BaseException:
            notes.seek(0)
            os.write(kept, notes.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)
