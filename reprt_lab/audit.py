"""The audit of a model in a file or a run folder, or of one that a function makes."""

import contextlib
import pkgutil
import runpy
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from reprt.analysis.lookahead import Audit, audit
from reprt.analysis.lookahead.methods import error_summary


def audit_by_name(model: str, modules: Sequence[Path], **options) -> Audit:
    """Audits a model by the name that `reprt audit` takes.

    Args:
        model: a file, a run folder, or `package.module:function` or `file.py:function`,
            where the function returns the model. Its code is run.
        modules: Python files that register the model's own classes with Keras.
        options: of `reprt.analysis.audit`.
    """
    for module in modules:
        _run(module)
    place, colon, function = model.rpartition(":")
    if colon and not Path(model).exists():
        return audit(_call_factory(place, function), **options)
    # Keras, which the model of a function may do without.
    from reprt.models.registry import load_model

    return audit(load_model(_model_file(Path(model))), **options)


def _run(module: Path) -> dict:
    """Runs a file of the user's, and returns its names."""
    # It may import its neighbours, as where `python` runs it.
    sys.path.insert(0, str(module.absolute().parent))
    with _explained(f"The module {module}"):
        return runpy.run_path(str(module))


@contextlib.contextmanager
def _explained(what: str) -> Iterator[None]:
    """Makes an error of the user's code one that names where it comes from."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise ValueError(f"{what} failed: {error_summary(error)}") from error


def _call_factory(module: str, name: str):
    """Returns the model that a function makes, `name` in a file or module."""
    if module.endswith(".py"):
        function = _run(Path(module)).get(name)
    else:
        # As `python -m` does.
        sys.path.insert(0, "")
        function = getattr(pkgutil.resolve_name(module), name, None)
    if not callable(function):
        raise ValueError(
            f"Expected {module} to have a function {name} that returns a model. "
            f"Received: {function!r}."
        )
    with _explained(f"The function {name} of {module}"):
        return function()


def _model_file(path: Path) -> Path:
    if path.suffix == ".py":
        raise ValueError(
            f"Expected {path}:FUNCTION, which returns the model. Received: {path}."
        )
    if path.is_file() or path.suffix == ".keras":
        return path
    model = path / "model.keras"
    if not model.exists():
        from reprt.decoding.run_folder import read_config

        # An error, unless it is a run folder, says what is there.
        read_config(path)
    return model
