"""A training that is killed before any one of its file events, and started again."""

import io
import json
import os
import sys
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest
import tiny

from reprt.files import is_unfinished
from reprt.training import trainer
from reprt.training.backend import Backend
from reprt_lab.folder import RunFolder
from reprt_lab.records import Metrics

FILE_EVENTS = {"os.fsync", "os.rename", "os.mkdir", "os.remove", "os.rmdir"}


class Watch:
    """Calls a function before each event that changes a file."""

    def __init__(self):
        self.call = None
        # An audit hook stays for as long as the process.
        sys.addaudithook(self._hear)

    def _hear(self, event, arguments):
        opening = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        call = self.call
        if call and (opening or event in FILE_EVENTS):
            # What the call itself does is not watched.
            self.call = None
            call()
            self.call = call


@pytest.fixture(scope="module")
def watch():
    return Watch()


class Arithmetic(Backend):
    """Steps in no time; what they make depends on each batch and on the order."""

    devices, accelerators = ["CPU:0"], []

    def __init__(self, deterministic):
        pass

    def compile(self, objective, optimizer, split, parts):
        self._variables = [*objective.model.variables, *optimizer.variables]

    def batches(self, split, plan, epoch=None, skip=0):
        return plan.batches(epoch, skip)

    def train(self, rows):
        for variable in self._variables:
            variable.assign(variable.numpy() / 2 + rows[0])
        return self.evaluate(rows)

    def evaluate(self, rows):
        return len(rows), float(rows.sum()), len(rows), 0


def make_small_model(*sizes, **keywords):
    dense, dropout = keras.layers.Dense(1), keras.layers.Dropout(0.1)
    model = keras.Sequential(
        [keras.layers.Input((2,)), dense, dropout], name="small"
    )
    model.looks_ahead, model.packed_layout = False, None
    return model


def train(folder, settings, text):
    """Trains as the command does, from where the folder says the training stands."""
    # Names begin anew, as in a process of its own.
    keras.backend.clear_session()
    run = RunFolder(folder / "repe")
    with run.claim() as claim:
        assert claim
        run.open(settings, text)
        training = trainer.Trainer(settings, text, run, tiny.Lines())
        training.write_start()
        tiny.train_to_end(training)
        metrics = {"parameters": 3, "epochs": 1, "finished": "now"}
        run.write_metrics(Metrics.read(metrics, "metrics"))


def write_contents(contents, folder):
    for path, content in sorted(contents.items()):
        if content is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)


def timeless_contents(folder):
    """What a training leaves, without times and how often it was started."""

    def without_seconds(table):
        return {
            name: value
            for name, value in table.items()
            if "seconds" not in name
        }

    contents = {
        path: content
        for path, content in tiny.contents(folder).items()
        if not any(is_unfinished(Path(part)) for part in path.parts)
    }
    for path, content in contents.items():
        if path.suffix == ".npz":
            with np.load(io.BytesIO(content)) as archive:
                contents[path] = {
                    name: archive[name].tolist() for name in archive.files
                }
            state = without_seconds(json.loads(contents[path]["state"]))
            contents[path]["state"] = {
                **state,
                "rows": list(map(without_seconds, state["rows"])),
            }
        elif path.suffix == ".keras":
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                contents[path] = archive.read("model.weights.h5")
        elif path.suffix == ".csv":
            run = RunFolder(folder / path.parent)
            contents[path] = list(map(without_seconds, run.log(path.name)))
        elif path.name == "manifest.json":
            contents[path] = {**json.loads(content), "starts": None}
    return contents


@pytest.mark.long
def test_a_kill_changes_nothing(text, tmp_path, watch, monkeypatch):
    original_fsync = os.fsync

    def fsync(file):
        # Python itself reports no fsync.
        sys.audit("os.fsync", file)
        original_fsync(file)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(trainer, "backend", Arithmetic)
    monkeypatch.setattr(trainer, "make", make_small_model)
    # An epoch has two steps.
    # It ends at the third of four steps, for no loss is lower than the first.
    stopping = {"validate_every": 1, "patience": 2}
    settings = tiny.settings(
        checkpoint_minutes=0, batching={"size": 32}, **stopping
    )
    reference, states = tmp_path / "alone", []
    reference.mkdir()

    def record_state():
        """A kill leaves what is on the disk; nothing that would clean up runs."""
        contents = tiny.contents(reference)
        if contents not in states:
            states.append(contents)

    watch.call = record_state
    train(reference, settings, text)
    watch.call = None
    expected = timeless_contents(reference)
    assert len(states) > 40 and len(tiny.contents(reference)) == len(expected)
    for number, state in enumerate(states):
        folder = tmp_path / f"killed-{number}"
        folder.mkdir()
        write_contents(state, folder)
        train(folder, settings, text)
        assert timeless_contents(folder) == expected, sorted(map(str, state))
