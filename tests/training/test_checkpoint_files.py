"""Checkpoints that were damaged or exchanged: named, and nothing of them is used."""

import io
import json
import zipfile

import numpy as np
import pytest

from reprt.training.checkpoint import (
    CheckpointError,
    restore_checkpoint,
    save_checkpoint,
)

WEIGHTS = {"kernel": np.arange(6, dtype="float32").reshape(2, 3), "seed": np.int64(7)}
STATE = {"epoch": 1, "rows": [{"val_loss": 1.5}]}


class Variable:
    """Of Keras' variables what a checkpoint asks for."""

    def __init__(self, value):
        self.value = np.array(value)
        self.shape, self.dtype = self.value.shape, self.value.dtype.name

    def numpy(self):
        return self.value

    def assign(self, value):
        self.value = value


def variables(scale=1):
    return {name: Variable(value * scale) for name, value in WEIGHTS.items()}


@pytest.fixture
def folder(tmp_path):
    for step in (1, 2):
        save_checkpoint(tmp_path, step, variables(), STATE)
    return tmp_path


@pytest.fixture
def newest(folder):
    return folder / "step-00000002.npz"


def npy(array):
    """The bytes of a `.npy` file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), allow_pickle=True)
    return file.getvalue()


def archive(path, compression=zipfile.ZIP_STORED, **members):
    """Writes the members of a good checkpoint, some of them changed or left out."""
    usual = {**WEIGHTS, "state": np.array(json.dumps(STATE))}
    members = {**{name: npy(value) for name, value in usual.items()}, **members}
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            if content is not None:
                file.writestr(f"{name}.npy", content)


@pytest.mark.parametrize(
    "members, message",
    [
        ({"kernel": npy(np.array([print], object))}, "damaged"),
        ({"kernel": b"mine"}, "Expected 'kernel' of shape (2, 3) of float32"),
        ({"state": None}, "damaged"),
        ({"state": npy(np.array("{"))}, "damaged"),
        ({"kernel": None}, "Expected 'kernel' of shape (2, 3) of float32"),
        ({"more": npy(1.0)}, "Expected 'more' of shape none"),
        ({"kernel": npy(np.zeros((3, 2), "float32"))}, "Received: (3, 2) of float32"),
        ({"kernel": npy(np.zeros((2, 3), "float64"))}, "Received: (2, 3) of float64"),
        ({"seed": npy(np.float32(1))}, "Expected 'seed' of shape () of integers"),
    ],
)
def test_what_is_no_checkpoint_of_this_training_is_named(
    folder, newest, members, message
):
    archive(newest, **members)
    present = variables(scale=2)
    with pytest.raises(CheckpointError) as error:
        restore_checkpoint(folder, present)
    assert message in str(error.value) and str(newest) in str(error.value)
    for name, variable in variables(scale=2).items():
        np.testing.assert_array_equal(present[name].value, variable.value)


@pytest.mark.parametrize(
    "content",
    [npy(1.0), npy(np.array([print], object)), b"PK\5\6" + bytes(18), b""],
)
def test_another_file_in_its_place_is_named(folder, newest, content):
    newest.write_bytes(content)
    with pytest.raises(CheckpointError, match="step-00000001.npz would be used"):
        restore_checkpoint(folder, variables())


def test_integers_of_another_backend_are_taken(folder, newest):
    archive(newest, seed=npy(np.uint32(7)))
    present = variables(scale=0)
    assert restore_checkpoint(folder, present) == STATE
    assert present["seed"].value == 7
