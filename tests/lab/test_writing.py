"""What lies where files are written: links, pipes, leftovers, what is the user's."""

import errno
import os
import pathlib
from unittest import mock

import keras
import pytest
import tensorflow as tf
from tiny import settings

from reprt import files
from reprt.decoding import export as exporting
from reprt.training.checkpoint import save_checkpoint
from reprt_lab.folder import RunFolder
from reprt_lab.records import Metrics

TEMPORARY = ".reprt-0123456789ab"


@pytest.fixture
def users_file(tmp_path):
    """A file of the user's, elsewhere."""
    path = tmp_path / "thesis.txt"
    path.write_text("years of work")
    return path


def test_links_are_not_followed(tmp_path, users_file):
    run, model = RunFolder(tmp_path), mock.Mock()
    model.save = lambda path: pathlib.Path(path).write_text("a model")
    run.checkpoints.mkdir()
    for name in ("checkpoints/step-00000001.npz", "model.keras", "log.csv"):
        (tmp_path / name).symlink_to(users_file)
    save_checkpoint(run.checkpoints, 1, {"a": keras.Variable([1.0])}, {})
    run.save_model(model)
    run.write_log([{"epoch": 1}])
    assert users_file.read_text() == "years of work"
    assert run.log() == [{"epoch": 1}] and run.model.read_text() == "a model"


def test_only_leftovers_of_the_runs_own_training_go_when_it_goes_on(
    tmp_path, text
):
    """Others may be at work on all else, whatever the clock says."""
    folder = RunFolder(tmp_path / "repe")
    folder.open(settings(), text)
    folder.add_start([], [], False)
    (folder.path / "models").mkdir()
    folder.checkpoints.mkdir()
    leftovers = [
        f"{TEMPORARY}.keras",
        f"checkpoints/{TEMPORARY}.npz",
        f"models/{TEMPORARY}.npz",
    ]
    other_files = [
        f"../{TEMPORARY}",
        f"../{TEMPORARY}.md",
        f"{TEMPORARY}.json",
        "checkpoints/a.npz",
    ]
    for name in (*leftovers, *other_files):
        (folder.path / name).touch()
        os.utime(folder.path / name, (0, 0))
    files.write_text(tmp_path / "report.md", "a page")
    assert all(
        (folder.path / name).exists() for name in (*leftovers, *other_files)
    )
    folder.open(settings(), text)
    assert not any((folder.path / name).exists() for name in leftovers)
    assert all((folder.path / name).exists() for name in other_files)


DISK_FULL = OSError(errno.ENOSPC, "No space left on device")


def test_a_disk_that_is_full_midway_is_told_with_the_file(tmp_path):
    run = RunFolder(tmp_path)
    metrics = Metrics(parameters=1, epochs=0, finished="now")
    run.write_metrics(metrics)
    path = run.path / "metrics.json"
    with pytest.raises(
        OSError, match="No space left on device: '.*/metrics.json'"
    ):
        with files.whole_file(path) as file:
            file.write(b"half")
            raise DISK_FULL
    assert run.metrics() == metrics
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize(
    "function, error",
    [
        (
            "tensorflow.saved_model.save",
            tf.errors.OpError(None, None, "full", 8),
        ),
        ("keras.saving.save_model", RuntimeError("full\nof HDF5")),
        ("os.fsync", DISK_FULL),
    ],
)
def test_an_export_to_a_full_disk_leaves_nothing(
    tmp_path, users_file, function, error, monkeypatch
):
    def save(model, path):
        pathlib.Path(path).joinpath("half").touch()

    monkeypatch.setattr(
        exporting, "ExportedTranslator", lambda translator: None
    )
    monkeypatch.setattr("tensorflow.saved_model.save", save)
    monkeypatch.setattr("keras.saving.save_model", lambda model, path: None)
    monkeypatch.setattr(function, mock.Mock(side_effect=error))
    folder = tmp_path / "new" / "deeper"
    with pytest.raises(OSError, match=f"written to {folder}: .*") as failure:
        exporting.export(mock.MagicMock(), folder)
    assert "\n" not in str(failure.value) and not any(folder.iterdir())
    assert sorted(tmp_path.iterdir()) == [folder.parent, users_file]


def test_a_cache_that_cannot_be_written_says_how_to_move_it(
    users_file, monkeypatch
):
    monkeypatch.setenv("REPRT_CACHE", str(users_file))
    with pytest.raises(
        OSError, match="set REPRT_CACHE to a folder .*/thesis.txt"
    ):
        files.write_text(files.cache() / "ids" / "a", "text")
