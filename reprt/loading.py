"""Loading Keras, which takes long, and packages that only an extra has."""

import contextlib
import gc
import importlib
import sys
from collections.abc import Iterator

# Keras imports them if it finds them, for pictures and notebooks.
UNUSED = ("IPython", "matplotlib")


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Turns garbage collection off while it lasts: what is loaded stays.

    Example:

    >>> import gc
    >>> with uncollected():
    ...     gc.isenabled()
    False
    """
    usual = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if usual:
            gc.enable()


def load_keras():
    """Imports Keras into the process of a command, in less time than `import keras`.

    Keras is loaded without what draws its own pictures, which no command shows. The
    process can still import that. What has been loaded is never looked at again for
    garbage. It does nothing if Keras is there already.
    """
    if "keras" in sys.modules:
        return
    hidden = [name for name in UNUSED if name not in sys.modules]
    # Python's own sign of a module that cannot be imported.
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        with uncollected():
            import keras  # noqa: F401

            gc.freeze()
    finally:
        for name in hidden:
            del sys.modules[name]


def load_extra(package: str, need: str):
    """Returns a package that `pip install reprt` alone does not bring.

    Args:
        package: its name.
        need: what needs it and how to get it, a sentence.

    Raises:
        ImportError: without it, with that sentence.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(f"{need} Importing it failed with: {error}") from error
