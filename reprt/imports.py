"""Packages that only an extra has, and the quiet loading of Keras and TensorFlow."""

import contextlib
import functools
import importlib
import importlib.abc
import importlib.machinery
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

# What Linux names the devices of GPUs.
GPUS = "nvidia*", "nvhost*", "dxg", "kfd"
BACKENDS = "tensorflow", "jax", "torch", "openvino"
EXTRAS = "pip install '.[tensorflow]', '.[jax]' or '.[torch]'"


def load_extra(package: str, need: str):
    """Imports a package of an extra, or raises an error that begins with `need`."""
    try:
        with silence_imports():
            return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(
            f"{need} Importing it failed with: {error}"
        ) from error


def load_pyarrow(module: str = "pyarrow"):
    """Imports pyarrow or a module of it, or says how to get it."""
    need = "Texts on disk and .parquet need pyarrow: pip install '.[train]'."
    return load_extra(module, need)


class Followers(importlib.abc.MetaPathFinder):
    """Lets the library's classes follow Keras, so that they are registered with it.

    The library imports Keras only where it needs it. Whoever loads Keras first, a user
    or a module of ours, then finds all our classes in Keras' registry. Until then
    this finds Keras, TensorFlow and our modules as Python does, and their loading is
    quiet.

    Attributes:
        modules: those that register classes.
        depth: how many of the imports that it looks after have begun and not ended. A
            module of ours may be half loaded when it imports Keras.
    """

    def __init__(self, modules: Iterable[str]):
        self.modules = tuple(modules)
        self.depth = 0

    def find_spec(self, name, path=None, target=None):
        package, _, _ = name.partition(".")
        if name not in ("keras", "tensorflow") and package != "reprt":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module
            run = functools.partial(self._execute, execute)
            setattr(spec.loader, "exec_module", run)
        return spec

    def _execute(self, execute, module):
        self.depth += 1
        try:
            if module.__name__ == "keras":
                with silence_imports(), explain_missing_backend():
                    execute(module)
            elif module.__name__ == "tensorflow":
                with silence_imports():
                    execute(module)
            else:
                execute(module)
        finally:
            self.depth -= 1
        if self.depth == 0 and "keras" in sys.modules:
            self.follow()

    def follow(self):
        """Loads what registers classes.

        Beside a Keras that they were not written for, only the audit works. Whoever
        uses the classes all the same gets their error.
        """
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        with contextlib.suppress(ImportError, AttributeError):
            for module in self.modules:
                importlib.import_module(module)


@contextlib.contextmanager
def explain_missing_backend():
    """Names a backend that Keras cannot load, and how to get it, in one line."""
    try:
        yield
    except (ImportError, ValueError) as error:
        backend = os.environ.get("KERAS_BACKEND")
        choice = f"KERAS_BACKEND={backend}" if backend else "its keras.json"
        missing = (getattr(error, "name", None) or "").partition(".")[0]
        if missing == "tensorflow" and backend is None:
            raise ImportError(
                "Keras has no backend: install TensorFlow, JAX or PyTorch by "
                f"{EXTRAS}, and for the last two set KERAS_BACKEND=jax or torch"
            ) from error
        if missing in BACKENDS:
            raise ImportError(
                f"Keras needs the package {missing} for {choice}: "
                f"{EXTRAS}, or set KERAS_BACKEND to one that is installed"
            ) from error
        if "Unable to import backend" in str(error):
            raise ValueError(
                "Expected KERAS_BACKEND to be tensorflow, jax or torch. Received: "
                f"{choice}."
            ) from error
        raise


def import_lazily(
    module: str, homes: Mapping[str, str]
) -> Callable[[str], Any]:
    """Returns a module's `__getattr__`: names are imported when they are asked for."""

    def get(name):
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home = importlib.import_module(homes[name])
        # A name may also be that of the module itself.
        return getattr(home, name, home)

    return get


def request_silence():
    """Asks TensorFlow to print no notes, unless the user chose what it prints.

    Level 2 keeps its errors. Level 3 hides these too, for without a GPU TensorFlow
    reports the missing GPU as an error.
    """
    devices = Path("/dev")
    gpu = any(any(devices.glob(pattern)) for pattern in GPUS)
    level = "2" if gpu or sys.platform != "linux" else "3"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", level)


@contextlib.contextmanager
def silence_imports():
    """Keeps off standard error what TensorFlow prints of itself while it is loaded.

    It does so where `TF_CPP_MIN_LOG_LEVEL` asks for no notes, which TensorFlow begins
    to heed only later. What was printed is shown if the loading fails.
    """
    quiet = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "0") != "0"
    # It has no version before it is loaded whole.
    loaded = hasattr(sys.modules.get("tensorflow"), "__version__")
    if not quiet or loaded:
        yield
        return
    standard_error = os.dup(2)
    with tempfile.TemporaryFile() as notes:
        os.dup2(notes.fileno(), 2)
        try:
            yield
        except BaseException:
            notes.seek(0)
            os.write(standard_error, notes.read())
            raise
        finally:
            os.dup2(standard_error, 2)
            os.close(standard_error)
