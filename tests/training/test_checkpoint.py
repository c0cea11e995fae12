import io
import json
import zipfile

import keras
import numpy as np
import pytest
from tiny import TINY

from reprt.layers.positions import POSITIONS
from reprt.models import build
from reprt.training.checkpoint import (
    restore_checkpoint,
    save_checkpoint,
    variables_by_path,
)

WEIGHTS = {
    "kernel": np.arange(6, dtype="float32").reshape(2, 3),
    "seed": np.int64(7),
}
STATE = {"epoch": 1, "rows": [{"val_loss": 1.5}]}


def variables(scale=1):
    return {
        name: keras.Variable(value * scale, dtype=value.dtype.name)
        for name, value in WEIGHTS.items()
    }


def contents(variables):
    return {
        name: variable.numpy().tolist() for name, variable in variables.items()
    }


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def folder(tmp_path):
    for step in (1, 2):
        save_checkpoint(tmp_path, step, variables(), STATE)
    return tmp_path


@pytest.mark.parametrize("position", POSITIONS)
def test_variables_of_both_sides_have_names_of_their_own(position):
    model = build("repe-causal", 9, 9, position=position, **TINY)
    adam = keras.optimizers.Adam()
    adam.build(model.trainable_variables)
    paths = variables_by_path(model, adam)
    assert len(paths) == len(model.variables) + len(adam.variables)


def test_what_was_saved_is_restored_bit_for_bit(tmp_path):
    seed = np.array([7, 2**40])
    variables = {"kernel": keras.Variable(np.array([0.1, 1e-38], "float32"))}
    variables["seed"] = keras.Variable(seed, dtype="int64")
    assert restore_checkpoint(tmp_path / "none", variables) is None
    save_checkpoint(tmp_path, 3, variables, {"epoch": 1, "é": None})
    # In another order, as after a change of the code that makes them.
    other_variables = {"seed": keras.Variable(0 * seed, dtype="int64")}
    other_variables["kernel"] = keras.Variable(np.zeros(2, "float32"))
    assert restore_checkpoint(tmp_path, other_variables) == {
        "epoch": 1,
        "é": None,
    }
    assert contents(other_variables) == contents(variables)


def test_the_last_two_are_kept_and_the_newest_is_used(folder):
    save_checkpoint(folder, 11, variables(3), {"step": 11})
    # The same step again does not cost the one before.
    save_checkpoint(folder, 11, variables(3), {"step": 11})
    assert names(folder) == ["step-00000002.npz", "step-00000011.npz"]
    targets = variables()
    assert restore_checkpoint(folder, targets) == {"step": 11}
    assert contents(targets) == contents(variables(3))


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, OSError(28, "No space left")]
)
def test_what_cannot_be_written_leaves_the_last_checkpoint(
    folder, monkeypatch, error
):
    def fail_midway(file, **arrays):
        file.write(b"half of it")
        raise error

    monkeypatch.setattr("numpy.savez", fail_midway)
    with pytest.raises(error if isinstance(error, type) else type(error)):
        save_checkpoint(folder, 3, variables(), {"step": 3})
    monkeypatch.undo()
    assert names(folder) == ["step-00000002.npz"]
    assert restore_checkpoint(folder, variables()) == STATE
    save_checkpoint(folder, 3, variables(), {"step": 3})
    assert names(folder) == ["step-00000002.npz", "step-00000003.npz"]


@pytest.fixture
def newest_checkpoint(folder):
    return folder / "step-00000002.npz"


def npy(array):
    """The bytes of a `.npy` file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), allow_pickle=True)
    return file.getvalue()


def archive(path, compression=zipfile.ZIP_STORED, **members):
    """Writes the members of a good checkpoint, some of them changed or left out."""
    arrays = {**WEIGHTS, "state": np.array(json.dumps(STATE))}
    members = {
        **{name: npy(value) for name, value in arrays.items()},
        **members,
    }
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            if content is not None:
                file.writestr(f"{name}.npy", content)


@pytest.mark.parametrize(
    "members, message",
    [
        ({"kernel": npy(np.array([print], object))}, "damaged"),
        ({"state": None}, "damaged"),
        ({"kernel": None}, "Expected 'kernel' of shape (2, 3) of float32"),
        ({"more": npy(1.0)}, "Expected 'more' of shape none"),
        (
            {"kernel": npy(np.zeros((3, 2), "float32"))},
            "Received: (3, 2) of float32",
        ),
        (
            {"seed": npy(np.float32(1))},
            "Expected 'seed' of shape () of integers",
        ),
    ],
)
def test_what_is_no_checkpoint_is_named(
    folder, newest_checkpoint, members, message
):
    archive(newest_checkpoint, **members)
    targets = variables(scale=2)
    with pytest.raises(ValueError) as error:
        restore_checkpoint(folder, targets)
    assert message in str(error.value)
    assert str(newest_checkpoint) in str(error.value)
    assert contents(targets) == contents(variables(scale=2))


def flip_bit(content):
    return content[:200] + bytes([content[200] ^ 1]) + content[201:]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        flip_bit,
        lambda content: b"",
    ],
)
def test_a_damaged_checkpoint_is_named_and_stays(
    folder, newest_checkpoint, damage
):
    newest_checkpoint.write_bytes(damage(newest_checkpoint.read_bytes()))
    content = newest_checkpoint.read_bytes()
    with pytest.raises(
        ValueError, match="damaged.*step-00000001.npz would be u"
    ):
        restore_checkpoint(folder, variables())
    assert newest_checkpoint.read_bytes() == content
    # The message advises to delete it.
    newest_checkpoint.unlink()
    assert restore_checkpoint(folder, variables()) == STATE


def test_integers_of_another_backend_are_taken(folder, newest_checkpoint):
    archive(newest_checkpoint, seed=npy(np.uint32(7)))
    targets = variables(scale=0)
    assert restore_checkpoint(folder, targets) == STATE
    assert targets["seed"].numpy() == 7
