"""The mean of several models of one run, often a better one than the last."""

from pathlib import Path

import numpy as np

from reprt.runs.run_folder import RunFolder, RunFolderError


def average_last(folder: RunFolder, last: int, steps: int) -> list[str]:
    """Makes the mean of a run's last models its `model.keras`.

        w = (w_1 + ... + w_n) / n    for each weight, added up in float64

    It depends on the kept models alone, so that it may be made again after a kill.

    Args:
        folder: the run's folder.
        last: how many models, if so many were kept.
        steps: those of the finished epochs; later models do not count.

    Returns:
        The names of the models. If there are none, `model.keras` stays as it is.

    Raises:
        RunFolderError: if a model is damaged, or of another run.
    """
    paths = folder.kept_until(steps, last)
    if paths:
        folder.save_model(_mean(folder, paths))
    return [path.name for path in paths]


def _mean(folder: RunFolder, paths: list[Path]):
    model = folder.load_model(paths[0])
    shapes = [weight.shape for weight in model.weights]
    totals = [np.asarray(weight, "float64") for weight in model.get_weights()]
    for path in paths[1:]:
        other = folder.load_model(path)
        if [weight.shape for weight in other.weights] != shapes:
            raise RunFolderError(
                f"Expected {path} to be of one run with {paths[0]}. Received: a model "
                "whose weights have other shapes."
            )
        for total, weight in zip(totals, other.get_weights(), strict=True):
            total += weight
    model.set_weights([total / len(paths) for total in totals])
    return model
