"""Packages that only an extra has."""

import importlib


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
