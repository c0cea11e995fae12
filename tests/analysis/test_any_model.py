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
NEXT_TOKENS = ((0, 1), (1, 2), (2, 3))


def causal_model(ids):
    return np.cumsum(TABLE[ids], axis=1)


def peeking_model(ids):
    return TABLE[ids] + TABLE[np.roll(ids, -1, axis=1)]


def offences(report):
    return report.first_offending["perturbation"]


def test_a_function_of_numpy():
    assert not audit(causal_model, vocab_size=VOCAB).looks_ahead
    assert offences(audit(peeking_model, vocab_size=VOCAB)) == NEXT_TOKENS


def test_a_function_of_a_source_and_a_target():
    def translate(source, target):
        return causal_model(target) + TABLE[source].mean(1, keepdims=True)

    assert not audit(translate, vocab_size=VOCAB).looks_ahead
    with pytest.raises(ValueError, match="`source_vocab_size`"):
        audit(translate)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("looks_ahead", [True, False])
def test_a_function_of_jax(dtype, looks_ahead):
    table = jax.numpy.asarray(TABLE, dtype)

    @jax.jit
    def model(ids):
        states = table[ids]
        # Such a thing is true of JAX' arrays only.
        states = states.at[:, 1:].add(states[:, :-1])
        if looks_ahead:
            return states + jax.numpy.roll(states, -1, axis=1)
        return states

    assert audit(model, vocab_size=VOCAB).looks_ahead == looks_ahead


@pytest.mark.parametrize(
    "wrap",
    [
        lambda logits: (None, logits),
        lambda logits: {"states": logits[..., 0], "logits": logits},
        lambda logits: {"states": logits[..., 0], "scores": logits},
    ],
)
def test_logits_are_found(wrap):
    report = audit(lambda ids: wrap(peeking_model(ids)), vocab_size=VOCAB)
    assert offences(report) == NEXT_TOKENS
    assert str(report).startswith("the function looks ahead")


def test_of_several_outputs_the_one_of_the_vocabulary_is_audited():
    def model(ids):
        return TABLE[ids][..., :8], peeking_model(ids)

    assert audit(model, vocab_size=VOCAB).looks_ahead
    with pytest.raises(ValueError, match="Choose it by `call`"):
        audit(model)
    with pytest.raises(ValueError, match="Choose it by `call`"):
        audit(lambda ids: (TABLE[ids], TABLE[ids]), vocab_size=VOCAB)


def test_probabilities_are_no_constants_of_a_mask():
    def copy(ids):
        # Most tokens' probability is next to nothing.
        weights = 0.5 + np.roll(ids, -1, axis=1)[..., np.newaxis] / 100
        return 1e-6 + np.eye(VOCAB)[ids] * weights

    assert offences(audit(copy, vocab_size=VOCAB)) == NEXT_TOKENS


def test_targets_too_short_for_a_model_are_counted():
    def model(ids):
        if ids.shape[1] < 8:
            raise ValueError("too short")
        return causal_model(ids)

    report = audit(model, vocab_size=VOCAB)
    assert not report.looks_ahead
    assert "takes no target of 7 tokens or fewer" in str(report)
    np.testing.assert_array_equal(
        np.isnan(report.truncation), np.arange(12) < 7
    )


def test_within_a_prompt_no_position_sees_its_label():
    def prefix(ids):
        return causal_model(ids) + TABLE[ids[:, :4]].sum(1, keepdims=True)

    batch = ROWS[:, :-1], ROWS[:, 1:]
    assert audit(prefix, vocab_size=VOCAB, batch=batch).sees_label
    assert not audit(prefix, vocab_size=VOCAB, batch=batch, prompt=4).sees_label


class NoisyModel(keras.Model):
    """A causal language model whose attention drops weights at all times."""

    def __init__(self):
        super().__init__()
        self.embedding = layers.Embedding(VOCAB, 8)
        self.attention = layers.MultiHeadAttention(2, 4, dropout=0.3)
        self.dense = layers.Dense(VOCAB)

    def call(self, ids):
        states = self.embedding(ids)
        states += self.attention(
            states, states, use_causal_mask=True, training=True
        )
        return self.dense(states)


def test_random_numbers_of_keras_accuse_nobody():
    report = audit(NoisyModel(), vocab_size=VOCAB)
    assert not report.looks_ahead
    assert "the model is random" in report.unavailable["truncation"]


def test_a_prompt_may_see_itself():
    def prefix(ids, length=4):
        states = causal_model(ids)
        return states + TABLE[ids[:, :length]].sum(1, keepdims=True)

    assert audit(prefix, vocab_size=VOCAB).looks_ahead
    assert not audit(prefix, vocab_size=VOCAB, prompt=4).looks_ahead
    report = audit(prefix, vocab_size=VOCAB, prompt=3)
    assert offences(report) == ((0, 3), (1, 3), (2, 3))
    with pytest.raises(ValueError, match="`prompt` to be 0 to 10.* prompt=11"):
        audit(prefix, vocab_size=VOCAB, prompt=11)


def test_neighbours_are_told_from_later_tokens():
    def norm(ids, training=False):
        states = causal_model(ids)
        return states - states.mean(0) if training else states

    report = audit(norm, vocab_size=VOCAB, training=True)
    assert not report.looks_ahead and not report.depends_on_neighbours
    assert report.training.depends_on_neighbours
    assert "a sentence depends on others of its batch" in str(report)


def test_a_leak_in_training_only():
    def norm(ids, training=False):
        states = causal_model(ids)
        return states - states.mean((0, 1)) if training else states

    assert not audit(norm, vocab_size=VOCAB).looks_ahead
    report = audit(norm, vocab_size=VOCAB, training=True)
    assert report.leaking_modes == ("training",)
    assert "own position, in training.\n" in str(report)
    with pytest.raises(ValueError, match="no argument `training`"):
        audit(causal_model, vocab_size=VOCAB, training=True)


class NormalizedModel(keras.Model):
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
    model = NormalizedModel()
    model(ops.ones((2, 3), "int32"))
    values = [ops.convert_to_numpy(variable) for variable in model.variables]
    report = audit(model, vocab_size=VOCAB, training=True)
    assert report.leaking_modes == ("training",)
    for variable, value in zip(model.variables, values):
        np.testing.assert_array_equal(ops.convert_to_numpy(variable), value)
    assert model.drop.rate == 0.5
    report = audit(
        model,
        vocab_size=VOCAB,
        call=lambda model, ids: model(ids)["scores"],
    )
    assert not report.looks_ahead


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


def test_the_share_is_that_of_labels_that_have_such_an_input():
    check = check_labels([[5, 8, 6]], [[8, 6, 9]], ignored=())
    assert check.shares == {1: 1.0, 0: 0.0, -1: 0.0}


def test_wrong_labels_are_named():
    with pytest.raises(ValueError, match="`batch` to be.*Received: 3 parts"):
        audit(causal_model, vocab_size=VOCAB, batch=(ROWS, ROWS, ROWS))
    with pytest.raises(ValueError, match=r"one shape.*\(5, 9\) and \(5, 8\)"):
        check_labels(ROWS, ROWS[:, 1:])
    with pytest.raises(ValueError, match="labels other than"):
        check_labels(ROWS, 0 * ROWS)


@pytest.mark.parametrize("is_shifted", [True, False])
@pytest.mark.parametrize("model", [causal_model, peeking_model])
def test_whether_a_position_sees_its_label(model, is_shifted):
    batch = (ROWS[:, :-1], ROWS[:, 1:]) if is_shifted else (ROWS, ROWS)
    report = audit(model, vocab_size=VOCAB, batch=batch)
    sees_label = model is peeking_model or not is_shifted
    assert report.sees_label == sees_label
    verb = "sees" if sees_label else "does not see"
    assert f"A position of this model {verb} its own label." in str(report)


def test_a_failure_is_a_report():
    assert_causal(causal_model, vocab_size=VOCAB)
    with pytest.raises(AssertionError, match="position 1 depends on token 2"):
        assert_causal(peeking_model, vocab_size=VOCAB)


# A module of a user's, which needs no framework at all.
USER_MODULE = """
import numpy as np

def causal():
    return lambda ids: np.cumsum(np.eye(30)[ids], axis=1)

def peeking():
    return lambda ids: np.eye(30)[ids] + np.eye(30)[np.roll(ids, -1, axis=1)]
"""


def test_the_command_takes_a_function(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "user_module.py").write_text(USER_MODULE)
    for module in ("user_module.py", "user_module"):
        assert main(["audit", f"{module}:causal", "--vocab", "30"]) == 0
        assert main(["audit", f"{module}:peeking", "--vocab", "30"]) == 3
        assert "position 1 depends on token 2" in capsys.readouterr().out
        assert main(["audit", f"{module}:absent"]) == 2
        assert "to have a function absent" in capsys.readouterr().err


def test_a_file_may_import_its_neighbours(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "neighbour_of_models.py").write_text(USER_MODULE)
    file = tmp_path / "my_models.py"
    file.write_text("from neighbour_of_models import causal")
    assert main(["audit", f"{file}:causal", "--vocab", "30"]) == 0


USER_TESTS = """
from user_models import causal, peeking
from reprt.analysis import assert_causal

def test_causal():
    assert_causal(causal(), vocab_size=30)

def test_peeking():
    assert_causal(peeking(), vocab_size=30)
"""


def test_a_project_of_its_own_has_a_line_in_its_tests(tmp_path):
    (tmp_path / "user_models.py").write_text(USER_MODULE)
    (tmp_path / "test_user_models.py").write_text(USER_TESTS)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    process = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert "1 failed, 1 passed" in process.stdout
    assert re.search("AssertionError: the function looks ahead", process.stdout)


def test_a_function_needs_no_backend():
    script = (
        "import sys, numpy as np\n"
        "from reprt.analysis import audit\n"
        "report = audit(lambda ids: np.eye(30)[ids], vocab_size=30)\n"
        "backends = {'keras', 'tensorflow', 'torch', 'jax'} & set(sys.modules)\n"
        "print(report.looks_ahead, backends)"
    )
    assert python(script) == "False set()"


@pytest.mark.long
def test_an_environment_with_pytorch_and_without_tensorflow(tmp_path):
    source = tmp_path / "source"
    ignore = shutil.ignore_patterns("results", "benchmark", "__pycache__")
    for name in ("reprt", "reprt_lab", "experiments"):
        shutil.copytree(
            REPOSITORY / name, source / name, symlinks=True, ignore=ignore
        )
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

    process = run("python", "-m", "pip", "install", "-q", f"{source}[torch]")
    assert process.returncode == 0, process.stderr
    assert run("python", "-c", "import tensorflow").returncode == 1
    script = REPOSITORY / "tests" / "analysis" / "with_torch.py"
    process = run("python", script)
    assert process.stdout == "all verdicts are right\n", process.stderr
    (tmp_path / "user_models.py").write_text(USER_MODULE)
    process = run("reprt", "audit", "user_models:peeking", "--vocab", "30")
    assert process.returncode == 3, process.stderr
    # What needs Keras says what to install, in one line, or does its work.
    script = (
        "import reprt; print(reprt.models.build('repe-causal', 20, 20).name)"
    )
    process = run("python", "-c", script)
    message = process.stderr.strip().splitlines()[-1]
    assert message.startswith("ImportError: Keras has no backend: install")
    assert "'.[tensorflow]', '.[jax]' or '.[torch]'" in message
    process = run("python", "-c", script, KERAS_BACKEND="torch")
    assert process.stdout == "repe-causal\n", process.stderr
