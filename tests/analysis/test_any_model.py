"""The audit of whatever is a model: functions, frameworks, modes, labels."""

import os
import re
import shutil
import subprocess
import sys

import jax
import keras
import numpy as np
import pytest
from elsewhere import python
from keras import layers, ops
from tiny_run import REPOSITORY

from reprt.analysis import assert_causal, audit, check_labels
from reprt_lab.command import main

VOCAB = 30
TABLE = np.random.default_rng(0).normal(size=(VOCAB, VOCAB))
NEXT = ((0, 1), (1, 2), (2, 3))


def causal(ids):
    return np.cumsum(TABLE[ids], axis=1)


def peeking(ids):
    return TABLE[ids] + TABLE[np.roll(ids, -1, axis=1)]


def first(report):
    return report.first_offending["perturbation"]


def test_a_function_of_numpy():
    assert not audit(causal, vocab_size=VOCAB).looks_ahead
    assert first(audit(peeking, vocab_size=VOCAB)) == NEXT


def test_a_function_of_a_source_and_a_target():
    def translate(source, target):
        return causal(target) + TABLE[source].mean(1, keepdims=True)

    assert not audit(translate, vocab_size=VOCAB).looks_ahead
    with pytest.raises(ValueError, match="`source_vocab_size`"):
        audit(translate)


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
@pytest.mark.parametrize("ahead", [True, False])
def test_a_function_of_jax(kind, ahead):
    table = jax.numpy.asarray(TABLE, kind)

    @jax.jit
    def model(ids):
        states = table[ids]
        # Such a thing is true of JAX' arrays only.
        states = states.at[:, 1:].add(states[:, :-1])
        return states + jax.numpy.roll(states, -1, axis=1) if ahead else states

    assert audit(model, vocab_size=VOCAB).looks_ahead == ahead


@pytest.mark.parametrize(
    "wrap",
    [
        lambda logits: (None, logits),
        lambda logits: {"states": logits[..., 0], "logits": logits},
        lambda logits: {"states": logits[..., 0], "scores": logits},
    ],
)
def test_logits_are_found(wrap):
    report = audit(lambda ids: wrap(peeking(ids)), vocab_size=VOCAB)
    assert first(report) == NEXT
    assert str(report).startswith("the function looks ahead")


def test_a_prompt_may_see_itself():
    def prefix(ids, seen=4):
        states = causal(ids)
        return states + TABLE[ids[:, :seen]].sum(1, keepdims=True)

    assert audit(prefix, vocab_size=VOCAB).looks_ahead
    assert not audit(prefix, vocab_size=VOCAB, prompt=4).looks_ahead
    assert first(audit(prefix, vocab_size=VOCAB, prompt=3)) == (
        (0, 3),
        (1, 3),
        (2, 3),
    )
    with pytest.raises(ValueError, match="`prompt` to be 0 to 10.* prompt=11"):
        audit(prefix, vocab_size=VOCAB, prompt=11)


def test_neighbours_are_told_from_later_tokens():
    def norm(ids, training=False):
        states = causal(ids)
        return states - states.mean(0) if training else states

    report = audit(norm, vocab_size=VOCAB, training=True)
    assert not report.looks_ahead and not report.depends_on_neighbours
    assert report.training.depends_on_neighbours
    assert "a sentence depends on others of its batch" in str(report)


def test_a_leak_in_training_only():
    def norm(ids, training=False):
        states = causal(ids)
        return states - states.mean((0, 1)) if training else states

    assert not audit(norm, vocab_size=VOCAB).looks_ahead
    report = audit(norm, vocab_size=VOCAB, training=True)
    assert report.leaking_modes == ("training",)
    assert "own position, in training.\n" in str(report)
    with pytest.raises(ValueError, match="no argument `training`"):
        audit(causal, vocab_size=VOCAB, training=True)


class Normed(keras.Model):
    """A language model with BatchNorm, dropout and a dictionary of outputs."""

    def __init__(self):
        super().__init__(name="normed")
        self.embedding = layers.Embedding(VOCAB, 8)
        self.norm = layers.BatchNormalization()
        self.drop = layers.Dropout(0.5, seed=1)
        self.dense = layers.Dense(VOCAB)

    def call(self, ids, training=False):
        states = self.drop(self.embedding(ids), training=training)
        states = self.norm(states, training=training)
        return {"ids": ids, "scores": self.dense(states)}


def test_a_keras_model_in_training_is_left_as_it_was():
    model = Normed()
    model(ops.ones((2, 3), "int32"))
    before = [ops.convert_to_numpy(each) for each in model.variables]
    report = audit(model, vocab_size=VOCAB, training=True)
    assert report.leaking_modes == ("training",)
    for variable, value in zip(model.variables, before):
        np.testing.assert_array_equal(ops.convert_to_numpy(variable), value)
    assert model.drop.rate == 0.5
    named = audit(
        model,
        vocab_size=VOCAB,
        call=lambda model, ids: model(ids)["scores"],
    )
    assert not named.looks_ahead


ROWS = np.random.default_rng(0).integers(4, VOCAB, (5, 9))


@pytest.mark.parametrize(
    "inputs, labels, offset, sentence",
    [
        (ROWS, ROWS, 0, "labels are not shifted"),
        (ROWS[:, :-1], ROWS[:, 1:], 1, "shifted as they should be"),
        (ROWS[:, 1:], ROWS[:, :-1], -1, "shifted the wrong way"),
        (ROWS, ROWS[::-1], None, "not the inputs, shifted or not"),
    ],
)
def test_labels(inputs, labels, offset, sentence):
    check = check_labels(inputs, labels)
    assert check.offset == offset and sentence in str(check)
    # Padding and what a loss leaves out do not count.
    labels = np.pad(labels, ((0, 0), (0, 3)), constant_values=-100)
    inputs = np.pad(inputs, ((0, 0), (0, 3)))
    assert check_labels(inputs, labels).offset == offset


def test_wrong_labels_are_named():
    with pytest.raises(ValueError, match=r"one shape.*\(5, 9\) and \(5, 8\)"):
        check_labels(ROWS, ROWS[:, 1:])
    with pytest.raises(ValueError, match="labels other than"):
        check_labels(ROWS, 0 * ROWS)


@pytest.mark.parametrize("shifted", [True, False])
@pytest.mark.parametrize("model", [causal, peeking])
def test_whether_a_position_sees_its_label(model, shifted):
    batch = (ROWS[:, :-1], ROWS[:, 1:]) if shifted else (ROWS, ROWS)
    report = audit(model, vocab_size=VOCAB, batch=batch)
    sees = model is peeking or not shifted
    assert report.sees_label == sees
    verb = "sees" if sees else "does not see"
    assert f"A position of this model {verb} its own label." in str(report)


def test_a_failure_is_a_report():
    assert_causal(causal, vocab_size=VOCAB)
    with pytest.raises(AssertionError, match="position 1 depends on token 2"):
        assert_causal(peeking, vocab_size=VOCAB)


# A module of a user's, which needs no framework at all.
MINE = """
import numpy as np

def causal():
    return lambda ids: np.cumsum(np.eye(30)[ids], axis=1)

def peeking():
    return lambda ids: np.eye(30)[ids] + np.eye(30)[np.roll(ids, -1, axis=1)]
"""


def test_the_command_takes_a_function(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine_of_a_user.py").write_text(MINE)
    for place in ("mine_of_a_user.py", "mine_of_a_user"):
        assert main(["audit", f"{place}:causal", "--vocab", "30"]) == 0
        assert main(["audit", f"{place}:peeking", "--vocab", "30"]) == 3
        assert "position 1 depends on token 2" in capsys.readouterr().out
        assert main(["audit", f"{place}:absent"]) == 2
        assert "to have a function absent" in capsys.readouterr().err


PROJECT = """
from mine import causal, peeking
from reprt.analysis import assert_causal

def test_causal():
    assert_causal(causal(), vocab_size=30)

def test_peeking():
    assert_causal(peeking(), vocab_size=30)
"""


def test_a_project_of_its_own_has_a_line_in_its_tests(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "test_mine.py").write_text(PROJECT)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert "1 failed, 1 passed" in done.stdout
    assert re.search("AssertionError: the function looks ahead", done.stdout)


def test_a_function_needs_no_backend():
    script = (
        "import sys, numpy as np\n"
        "from reprt.analysis import audit\n"
        "report = audit(lambda ids: np.eye(30)[ids], vocab_size=30)\n"
        "loaded = {'keras', 'tensorflow', 'torch', 'jax'} & set(sys.modules)\n"
        "print(report.looks_ahead, loaded)"
    )
    assert python(script) == "False set()"


@pytest.mark.long
def test_an_environment_with_pytorch_and_without_tensorflow(tmp_path):
    source = tmp_path / "source"
    unneeded = shutil.ignore_patterns("results", "benchmark", "__pycache__")
    for name in ("reprt", "reprt_lab", "experiments"):
        copy = source / name
        shutil.copytree(REPOSITORY / name, copy, symlinks=True, ignore=unneeded)
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    subprocess.run(
        [sys.executable, "-m", "venv", tmp_path / "venv"], check=True
    )
    binaries = tmp_path / "venv" / "bin"
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("KERAS_BACKEND", "PYTHONPATH")
    }

    def run(*command, **variables):
        return subprocess.run(
            [binaries / command[0], *command[1:]],
            cwd=tmp_path,
            env=environment | variables,
            capture_output=True,
            text=True,
        )

    installed = run("python", "-m", "pip", "install", "-q", f"{source}[torch]")
    assert installed.returncode == 0, installed.stderr
    assert run("python", "-c", "import tensorflow").returncode == 1
    script = REPOSITORY / "tests" / "analysis" / "with_torch.py"
    told = run("python", script)
    assert told.stdout == "all verdicts are right\n", told.stderr
    (tmp_path / "mine.py").write_text(MINE)
    audited = run("reprt", "audit", "mine:peeking", "--vocab", "30")
    assert audited.returncode == 3, audited.stderr
    # What needs Keras says what to install, in one line, or does its work.
    script = (
        "import reprt; print(reprt.models.build('repe-causal', 20, 20).name)"
    )
    lacking = run("python", "-c", script)
    last = lacking.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: Keras has no backend: install")
    assert "'.[tensorflow]', '.[jax]' or '.[torch]'" in last
    built = run("python", "-c", script, KERAS_BACKEND="torch")
    assert built.stdout == "repe-causal\n", built.stderr
