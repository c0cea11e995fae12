"""A checkpoint: one file with every variable and the state of the training."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reprt.files import sha256_of, whole_file
from reprt.models.registry import load_model
from reprt.training.backend import seed_variables

_STATE = "state"


def variables_by_path(model, optimizer) -> dict[str, Any]:
    """Returns all variables of a training, by names that any process gives them."""
    variables = {}
    for variable in (*model.weights, *optimizer.variables):
        variables[variable.path] = variable
    for number, seed in enumerate(seed_variables(model)):
        variables[f"{model.name}/seed_{number}"] = seed
    if len(variables) < len(model.variables) + len(optimizer.variables):
        raise ValueError(
            "Expected every variable of the training to be a weight, the seed of a "
            "Dropout or the optimizer's, and to have a name of its own, by which a "
            f"checkpoint keeps it. Received: {sorted(variables)}."
        )
    return variables


def save_checkpoint(
    folder: Path,
    step: int,
    variables: Mapping[str, Any],
    state: Mapping,
):
    """Writes a checkpoint, whole or not at all, and keeps only the one before it."""
    arrays = {name: variable.numpy() for name, variable in variables.items()}
    arrays[_STATE] = np.array(json.dumps(state))
    new = folder / f"step-{step:08d}.npz"
    others = [path for path in _checkpoints(folder) if path != new]
    for path in others[:-1]:
        path.unlink()
    with whole_file(new) as file:
        np.savez(file, **arrays)


def restore_checkpoint(
    folder: Path,
    variables: Mapping[str, Any],
) -> dict | None:
    """Sets variables from the newest checkpoint; returns its state, or None."""
    checkpoints = _checkpoints(folder)
    if not checkpoints:
        return None
    newest = checkpoints[-1]
    try:
        # Opened here, because NumPy leaves a damaged file open.
        with open(newest, "rb") as file, np.load(file) as saved:
            arrays = dict(saved)
        state = json.loads(str(arrays.pop(_STATE)))
    # NumPy, zip and zlib have no common base of errors.
    except Exception as error:
        advice = "Delete it to go on without it"
        if checkpoints[1:]:
            advice += f"; {checkpoints[-2].name} would be used"
        raise ValueError(
            f"The checkpoint {newest} is damaged ({type(error).__name__}: {error}). "
            f"{advice}."
        ) from error
    for name in sorted(variables.keys() | arrays.keys()):
        expected, received = _kind(variables, name), _kind(arrays, name)
        if expected != received:
            raise ValueError(
                f"The checkpoint {newest} is of another model, or of an earlier "
                f"version. Expected {name!r} of shape {expected}. Received: {received}."
            )
    for name, variable in variables.items():
        variable.assign(arrays[name])
    return state


def load_weights(model, place: str) -> dict[str, str]:
    """Gives a model the weights of another, of equal sizes.

    Args:
        model: the model.
        place: a `.keras` file, or the run folder that has one.

    Returns:
        The file's path and its sha256.
    """
    path = Path(place)
    if path.suffix != ".keras":
        path /= "model.keras"
    try:
        model.set_weights(load_model(path).get_weights())
    except ValueError as error:
        raise ValueError(
            f"Expected {path} to be a model of this run's sizes. {error}"
        ) from error
    return {"path": str(path), "sha256": sha256_of(path)}


def _kind(values: Mapping[str, Any], name: str) -> str:
    """The shape and type; backends have integers of different widths."""
    if name not in values:
        return "none"
    dtype = str(values[name].dtype)
    dtype = "integers" if "int" in dtype else dtype
    return f"{tuple(values[name].shape)} of {dtype}"


def newest_step(folder: Path) -> int:
    """Returns the step of the newest checkpoint; 0 for none."""
    checkpoints = _checkpoints(folder)
    if not checkpoints:
        return 0
    return int(checkpoints[-1].stem.removeprefix("step-"))


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*.npz"))
