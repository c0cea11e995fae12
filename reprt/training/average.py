"""The mean of the last models of a run, often a better one than the last."""

from pathlib import Path

import numpy as np

from reprt.files import whole_file
from reprt.models.registry import load_model


def keep_model(folder: Path, model, step: int, most: int, steps_of_epochs: int):
    """Saves a step's model, and drops all but the newest and any of later steps.

    The newest up to the last finished epoch, at step `steps_of_epochs`, stay too: the
    present epoch may not count.
    """
    with whole_file(_path(folder, step)) as file:
        model.save(file.name)
    needed = _newest(folder, step, most)
    needed += _newest(folder, steps_of_epochs, most)
    for path in folder.glob("step-*.keras"):
        if path not in needed:
            path.unlink()


def average_last(folder: Path, model, step: int, most: int) -> list[str]:
    """Gives a model the mean of the models kept up to a step; returns their names.

        w = (w_1 + ... + w_n) / n    for each weight, added up in float64

    It depends on these only, so that it may be made again after a kill. If there are
    none, the model stays as it is.
    """
    paths = _newest(folder, step, most)
    if not paths:
        return []
    sums = [np.zeros(weight.shape) for weight in model.weights]
    # One model is in memory at a time.
    for path in paths:
        weights = load_model(path).get_weights()
        for total, weight in zip(sums, weights, strict=True):
            total += weight
    model.set_weights([total / len(paths) for total in sums])
    return [path.name for path in paths]


def _newest(folder: Path, step: int, most: int) -> list[Path]:
    last = _path(folder, step)
    paths = sorted(folder.glob("step-*.keras"))
    return [path for path in paths if path <= last][-most:]


def _path(folder: Path, step: int) -> Path:
    return folder / f"step-{step:08d}.keras"
