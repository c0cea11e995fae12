"""Packages that only an extra has, and the quiet loading of those that all need."""

import contextlib
import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import Any


def load_extra(package: str, need: str):
    """Imports a package of an extra, or raises an error that begins with `need`."""
    try:
        with quietly():
            return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(f"{need} Importing it failed with: {error}") from error


def lazily(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Returns a module's `__getattr__`: names are imported when they are asked for."""

    def get(name):
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home = importlib.import_module(homes[name])
        return getattr(home, name, home)  # a module's home is the module

    return get


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
