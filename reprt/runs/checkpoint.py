"""A checkpoint: one file with every variable and the state of the training."""

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

KEPT = 2
_STATE = "state"


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message says which and why."""


def save_checkpoint(folder: Path, step: int, variables: Sequence, state: Mapping):
    """Writes a checkpoint, whole or not at all, and drops all but the last two.

    Args:
        folder: where checkpoints are kept.
        step: the training step, which names the file.
        variables: Keras variables, in a fixed order: weights, seeds of the dropout,
            the optimizer's.
        state: anything that JSON can hold.
    """
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {
        f"{number:05d}": np.asarray(variable.numpy())
        for number, variable in enumerate(variables)
    }
    arrays[_STATE] = np.array(json.dumps(state))
    temporary = folder / "writing.tmp"
    with open(temporary, "wb") as file:
        np.savez(file, **arrays)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, folder / f"step-{step:08d}.npz")
    for old in _checkpoints(folder)[:-KEPT]:
        old.unlink()


def restore_checkpoint(folder: Path, variables: Sequence) -> Mapping[str, Any] | None:
    """Sets the variables from the newest checkpoint and returns its state.

    Args:
        folder: where checkpoints are kept.
        variables: the variables that were saved, in the same order.

    Returns:
        The state, or None if there is no checkpoint.

    Raises:
        CheckpointError: if the newest checkpoint is damaged or of another model. The
            variables are untouched then.
    """
    checkpoints = _checkpoints(folder)
    if not checkpoints:
        return None
    newest = checkpoints[-1]
    try:
        # Opened here, for NumPy leaves a damaged file open.
        with open(newest, "rb") as file, np.load(file) as saved:
            state = json.loads(str(saved[_STATE]))
            arrays = [saved[name] for name in sorted(set(saved.files) - {_STATE})]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        older = f"; {checkpoints[-2].name} would be used" if checkpoints[1:] else ""
        raise CheckpointError(
            f"The checkpoint {newest} is damaged ({error}). Delete it to go on "
            f"without it{older}."
        ) from error
    expected = [tuple(variable.shape) for variable in variables]
    received = [array.shape for array in arrays]
    if expected != received:
        differing = [pair for pair in zip(expected, received) if pair[0] != pair[1]]
        first = "a shape {}, received {}".format(*differing[0]) if differing else ""
        raise CheckpointError(
            f"The checkpoint {newest} is of another model. Expected "
            f"{first or f'{len(expected)} variables, received {len(received)}'}."
        )
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)
    return state


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*.npz"))
