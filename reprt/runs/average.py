"""The mean of several models of one run, often a better one than the last."""

from pathlib import Path

import numpy as np

from reprt.runs.provenance import provenance
from reprt.runs.run_folder import RunFolder, RunFolderError


def average_models(run: Path, last: int | None = None, out: Path | None = None) -> Path:
    """Writes a run folder whose model is the mean of those that a run has kept.

        w = (w_1 + ... + w_n) / n    for each weight, added up in float64

    The folder has the settings, vocabularies and manifest of the run; `average` in
    the manifest says of which models the mean was taken. Other commands read it like
    any run.

    Args:
        run: the run's folder, trained with `[training] keep_models` or `average`.
        last: how many of the newest models; None takes all that were kept.
        out: the folder that is made; None for `average` in the run's.

    Returns:
        The folder.

    Raises:
        RunFolderError: if the run has fewer models, one is damaged or of another run,
            or there is something in the folder already.
    """
    folder, out = RunFolder(run), out or run / "average"
    keeps, paths = folder.run().training.models_kept, folder.kept_models
    if len(paths) < (last or 1):
        raise RunFolderError(
            f"Expected {run / 'models'} to hold {last or 'some'} models. Received: "
            f"{len(paths)}. A run keeps as many as 'keep_models' or 'average' in "
            f"[training] says, which is {keeps} here; 'keep_every' says how many steps "
            "lie between them."
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunFolderError(
            f"Expected {out} to be a new folder or empty. Received one that is there, "
            "with files. Choose another --out."
        )
    paths = paths[-last:] if last else paths
    model = _mean(folder, paths)
    names = [path.name for path in paths]
    average = {"run": str(run), "models": names, **provenance()}
    folder.write_copy(out, model, average=average)
    return out


def average_last(folder: RunFolder, last: int, steps: int) -> list[str]:
    """Makes the mean of a run's last models its `model.keras`.

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
