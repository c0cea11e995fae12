"""The mean of the last models of a run, often a better one than the last."""

from pathlib import Path

import numpy as np

from reprt.files import whole_file
from reprt.models.registry import load_model


def keep_model(folder: Path, model, step: int, most: int, of_epochs: int):
    """Saves a step's model, and drops all but the newest and any of later steps.

    The newest up to the last finished epoch, at step `of_epochs`, stay too: the present
    epoch may not count.
    """
    with whole_file(_kept(folder, step)) as file:
        model.save(file.name)
    kept = {*_newest(folder, step, most), *_newest(folder, of_epochs, most)}
    for path in {*folder.glob("step-*.keras")} - kept:
        path.unlink()


def average_last(folder: Path, model, step: int, most: int) -> list[str]:
    """Gives a model the mean of the models kept up to a step; returns their names.

        w = (w_1 + ... + w_n) / n    for each weight, added up in float64

    It depends on these only, so that it may be made again after a kill. If there are
    none, the model stays as it is.
    """
    paths = _newest(folder, step, most)
    total: list[np.ndarray] = []
    for path in paths:  # one in memory at a time
        kept = [
            each.astype("float64") for each in load_model(path).get_weights()
        ]
        total = [a + b for a, b in zip(total, kept)] if total else kept
    if total:
        model.set_weights([weight / len(paths) for weight in total])
    return [path.name for path in paths]


def _newest(folder: Path, step: int, most: int) -> list[Path]:
    kept = sorted(folder.glob("step-*.keras"))
    return [path for path in kept if path <= _kept(folder, step)][-most:]


def _kept(folder: Path, step: int) -> Path:
    return folder / f"step-{step:08d}.keras"
