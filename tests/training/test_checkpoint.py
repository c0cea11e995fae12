import re

import keras
import numpy as np
import pytest

from reprt.training.checkpoint import (
    CheckpointError,
    restore_checkpoint,
    save_checkpoint,
)


def made(*values):
    return {
        f"layer_{number}/kernel": keras.Variable(np.asarray(value, "float32"))
        for number, value in enumerate(values)
    }


def contents(variables):
    return [variable.numpy().tolist() for variable in variables.values()]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def cut(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


def test_nothing_is_restored_where_there_is_no_checkpoint(tmp_path):
    variables = made([1.0])
    assert restore_checkpoint(tmp_path / "none", variables) is None
    assert contents(variables) == [[1.0]]


def test_what_was_saved_is_restored_bit_for_bit(tmp_path):
    seed = keras.Variable(np.array([7, 2**40]), dtype="int64")
    saved = {**made([[0.1, 1e-38]]), "seed": seed}
    save_checkpoint(tmp_path, 3, saved, {"epoch": 1, "é": None})
    other = keras.Variable(np.array([0, 0]), dtype="int64")
    # In another order, as after a change of the code that makes them.
    restored = {"seed": other, **made([[0.0, 0.0]])}
    assert restore_checkpoint(tmp_path, restored) == {"epoch": 1, "é": None}
    assert contents({name: restored[name] for name in saved}) == contents(saved)


def test_the_last_two_are_kept_and_the_newest_is_used(tmp_path):
    for step in (9, 10, 11):
        save_checkpoint(tmp_path, step, made([step]), {"step": step})
    assert names(tmp_path) == ["step-00000010.npz", "step-00000011.npz"]
    assert restore_checkpoint(tmp_path, made([0.0])) == {"step": 11}


def test_a_kill_while_writing_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    save_checkpoint(tmp_path, 1, made([1.0]), {"step": 1})

    def killed(file, **arrays):
        file.write(b"half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr("numpy.savez", killed)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(tmp_path, 2, made([2.0]), {"step": 2})
    monkeypatch.undo()
    assert restore_checkpoint(tmp_path, made([0.0])) == {"step": 1}
    save_checkpoint(tmp_path, 2, made([2.0]), {"step": 2})
    assert names(tmp_path) == ["step-00000001.npz", "step-00000002.npz"]


@pytest.mark.parametrize("share", [0, 0.3, 0.9])
def test_a_damaged_checkpoint_is_named_and_changes_nothing(tmp_path, share):
    for step in (1, 2):
        save_checkpoint(tmp_path, step, made(np.arange(99)), {"step": step})
    newest = tmp_path / "step-00000002.npz"
    cut(newest, share)
    damaged = newest.read_bytes()
    variables = made(np.zeros(99))
    with pytest.raises(CheckpointError, match="damaged.*step-00000001.npz") as error:
        restore_checkpoint(tmp_path, variables)
    assert str(newest) in str(error.value)
    assert contents(variables) == contents(made(np.zeros(99)))
    assert newest.read_bytes() == damaged

    newest.unlink()  # as the message advises
    assert restore_checkpoint(tmp_path, variables) == {"step": 1}


def test_a_flipped_byte_is_damage(tmp_path):
    save_checkpoint(tmp_path, 1, made(np.ones(99)), {})
    path = tmp_path / "step-00000001.npz"
    content = bytearray(path.read_bytes())
    content[200] ^= 1  # within the first array
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        restore_checkpoint(tmp_path, made(np.zeros(99)))


@pytest.mark.parametrize(
    "others, message",
    [
        ([[0.0, 0.0]], "'layer_0/kernel' of shape (2,) of float32. Received: (1,)"),
        ([[0.0], [0.0]], "'layer_1/kernel' of shape (1,) of float32. Received: none"),
    ],
)
def test_a_checkpoint_of_another_model_is_refused(tmp_path, others, message):
    save_checkpoint(tmp_path, 1, made([1.0]), {})
    variables = made(*others)
    with pytest.raises(CheckpointError, match=re.escape(message)):
        restore_checkpoint(tmp_path, variables)
    assert contents(variables) == others
