"""The audit of a model in a file or a run folder."""

import runpy
from collections.abc import Sequence
from pathlib import Path

from reprt.analysis.lookahead import Audit, audit
from reprt.decoding.run_folder import read_config
from reprt.models.registry import load_model


def audit_file(path: Path, modules: Sequence[Path], **options) -> Audit:
    """Audits a model, whose own classes the modules register with Keras."""
    for module in modules:
        try:
            runpy.run_path(str(module))
        except (Exception, SystemExit) as error:
            message = " ".join(str(error).split())
            raise ValueError(
                f"The module {module} failed: {type(error).__name__}: {message}"
            ) from error
    return audit(load_model(_model_file(path)), **options)


def _model_file(path: Path) -> Path:
    if path.is_file() or path.suffix == ".keras":
        return path
    model = path / "model.keras"
    if not model.exists():
        # Unless it is a run folder, an error says what is there.
        read_config(path)
    return model
