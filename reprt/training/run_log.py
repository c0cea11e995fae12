"""What a `Trainer` asks of the place that keeps its work."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol


class RunLog(Protocol):
    """The folder of one run, such as the laboratory's `RunFolder`.

    Only one of several workers writes. Where `writable` is False, the methods write
    nothing.
    """

    @property
    def path(self) -> Path:
        """The folder itself."""

    @property
    def checkpoints(self) -> Path:
        """The folder of the last states of the training."""

    @property
    def writable(self) -> bool:
        """Whether this process writes."""

    def add_start(
        self,
        devices: Sequence[str],
        accelerators: Sequence[str],
        looks_ahead: bool,
        weights_from: Mapping[str, str] | None,
    ) -> None:
        """Notes that the run begins, or goes on, here and now.

        The last argument has the path and the sha256 of the model that it starts from.
        """

    def write_log(
        self,
        rows: Sequence[Mapping[str, Any]],
        name: str = "log.csv",
    ) -> None:
        """Writes a table in the place of the one that is there."""

    def save_model(self, model: Any, name: str = "model.keras") -> None:
        """Saves a model in the place of the one that is there."""
