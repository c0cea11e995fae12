"""The audit of a model in a file or a run folder."""

import runpy
from collections.abc import Sequence
from pathlib import Path

from reprt.analysis.lookahead import Audit, audit
from reprt.models.saving import load_model


def audit_file(path: Path, modules: Sequence[Path], **options) -> Audit:
    """Audits a model, whose own classes the modules register with Keras."""
    for module in modules:
        try:
            runpy.run_path(str(module))
        except (Exception, SystemExit) as error:  # whose status would be a verdict
            message = " ".join(str(error).split())
            raise ValueError(
                f"The module {module} failed: {type(error).__name__}: {message}"
            ) from error
    return audit(load_model(path / "model.keras" if path.is_dir() else path), **options)
