"""A checkpoint: one file with every variable and the state of the training."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reprt.files import whole_file

_STATE = "state"


def by_path(model, optimizer) -> dict[str, Any]:
    """Returns all variables of a training, by names that any process gives them."""
    named = [
        (each.path, each) for each in (*model.weights, *optimizer.variables)
    ]
    weights = {id(weight) for weight in model.weights}
    seeds = [each for each in model.variables if id(each) not in weights]
    for number, seed in enumerate(seeds):
        named.append((f"{model.name}/seed_{number}", seed))
    found = dict(named)
    if len(found) < len(model.variables) + len(optimizer.variables):
        raise ValueError(
            "Expected every variable of the training to be a weight, the seed of a "
            "Dropout or the optimizer's, and to have a name of its own, by which a "
            f"checkpoint keeps it. Received: {sorted(name for name, _ in named)}."
        )
    return found


def save_checkpoint(
    folder: Path, step: int, variables: Mapping[str, Any], state: Mapping
):
    """Writes a checkpoint, whole or not at all, and keeps only the one before it."""
    arrays = {name: each.numpy() for name, each in variables.items()}
    arrays[_STATE] = np.array(json.dumps(state))
    for old in _checkpoints(folder)[:-1]:
        old.unlink()
    with whole_file(folder / f"step-{step:08d}.npz") as file:
        np.savez(file, **arrays)


def restore_checkpoint(
    folder: Path, variables: Mapping[str, Any]
) -> dict | None:
    """Sets variables from the newest checkpoint; returns its state, or None."""
    checkpoints = _checkpoints(folder)
    if not checkpoints:
        return None
    newest = checkpoints[-1]
    try:
        # Opened here, because NumPy leaves a damaged file open.
        with (
            open(newest, "rb") as file,
            np.load(file, allow_pickle=False) as saved,
        ):
            arrays = {name: np.asarray(array) for name, array in saved.items()}
        state = json.loads(str(arrays.pop(_STATE)))
    except (
        Exception
    ) as error:  # NumPy, zip and zlib have no common base of errors.
        older = (
            f"; {checkpoints[-2].name} would be used" if checkpoints[1:] else ""
        )
        raise ValueError(
            f"The checkpoint {newest} is damaged ({type(error).__name__}: {error}). "
            f"Delete it to go on without it{older}."
        ) from error
    expected = {name: _kind(each) for name, each in variables.items()}
    received = {name: _kind(array) for name, array in arrays.items()}
    if expected != received:
        name = min(name for name, _ in expected.items() ^ received.items())
        raise ValueError(
            f"The checkpoint {newest} is of another model, or of an earlier version. "
            f"Expected {name!r} of shape {expected.get(name, 'none')}. Received: "
            f"{received.get(name, 'none')}."
        )
    for name, variable in variables.items():
        variable.assign(arrays[name])
    return state


def _kind(values) -> str:
    """The shape and type; backends have integers of different widths."""
    dtype = str(values.dtype)
    return f"{tuple(values.shape)} of {'integers' if 'int' in dtype else dtype}"


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*.npz"))
