"""The audit of a model in a file or a run folder."""

import runpy
from collections.abc import Sequence
from pathlib import Path

from reprt.analysis.lookahead import Audit, audit
from reprt.models.saving import load_model


def audit_file(
    path: Path, modules: Sequence[Path], *arguments, **options
) -> Audit:
    """Audits a model.

    Args:
        path: a run folder, or a `.keras` file.
        modules: Python files that register the model's own classes with Keras.
        *arguments, **options: of `reprt.analysis.audit`.

    Raises:
        ValueError: if a module or the model cannot be loaded or called.
    """
    for module in modules:
        try:
            runpy.run_path(str(module))
        except (Exception, SystemExit) as error:  # it is someone else's code
            message = " ".join(str(error).split())
            raise ValueError(
                f"The module {module} failed: {type(error).__name__}: {message}"
            ) from error
    model = load_model(path / "model.keras" if path.is_dir() else path)
    return audit(model, *arguments, **options)
