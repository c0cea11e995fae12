"""Training on JAX: the losses of TensorFlow, on one device and on two.

Backends are chosen once in a process, and so are JAX's devices: hence the processes.
"""

import json
import os
import pathlib

import eager
import numpy as np
import pytest
from elsewhere import python
from tiny import VOCABULARY, losses, make_trainer, settings
from variants import COMPARED

from reprt.data.encoding import encode

pytestmark = pytest.mark.long
TESTS = pathlib.Path(__file__).parent
# The compared models, by the number of devices.
NAMES = {1: tuple(COMPARED), 2: ("repe", "baseline", "recurrent")}
# JAX takes the batches of these in two parts.
IN_PARTS = ("clipped", "decoder-only-both-losses", "recurrent")
SCRIPT = (
    f"""
IN_PARTS = {IN_PARTS}
"""
    + """
import json, os, pathlib, sys

folder = pathlib.Path(sys.argv[1])
sys.path[:0] = sys.argv[2:]
# As where neither is installed.
sys.modules.update({"tensorflow": None, "tensorflow_text": None})
import keras
import numpy as np
import tiny
import tiny_run
from reprt_lab.command import main
from reprt.data.encoding import encode
from reprt_lab.folder import RunFolder
from tiny import make_trainer, settings
from variants import COMPARED

assert keras.backend.backend() == "jax"
corpus = tiny.corpus(train=33, dev=10, test=4)
text = encode(corpus, tiny.VOCABULARY, 24, folder / "cache")


def trainer(name, *arguments, **keywords):
    run = settings(*arguments, **keywords)
    return make_trainer(folder / name / "run", run, text)


results = {}
for name in [name for name in COMPARED if (folder / f"{name}.npz").exists()]:
    preset, model, changes = COMPARED[name]
    if name in IN_PARTS:
        changes = {**changes, "accumulate": 2, "batching": {"size": 8}}
    training = trainer(name, preset, {"dropout": 0.0, **model}, **changes)
    # The value of test_trainer.py, which says why.
    training._optimizer.epsilon = 1e-2
    with np.load(folder / f"{name}.npz") as weights:
        training.model.set_weights([weights[key] for key in weights.files])
    training._backend.load()
    # A calibration leaves no trace.
    training.calibrate()
    training.train_epoch()
    results[name] = training.folder.log()[0]
    results["start"] = training.folder.manifest().starts[0].model_dump()
    results["shapes"] = training._backend._train._cache_size()

if len(results["start"]["devices"]) == 2:
    print(json.dumps(results))
    sys.exit()

# Dropout, in float16: two epochs, and the second of them again from the checkpoint of
# the first.
float16 = {
    "precision": "mixed_float16",
    "accumulate": 2,
    "optimizer": {"name": "adamw", "loss_scaling": "dynamic"},
    "schedule": {"name": "cosine", "warmup_steps": 2, "peak": 0.01},
}
training = trainer("dropout", "repe", **float16)
# No gradient is finite at this scale.
training._optimizer.dynamic_scale.assign(2.0**120)
training._backend.load()
old_weights = training.model.get_weights()
training._backend.train(next(training._training_batches()))
training._backend.store()
results["scale"] = float(training._optimizer.dynamic_scale.numpy())
for old, new in zip(old_weights, training.model.get_weights(), strict=True):
    np.testing.assert_array_equal(old, new)
training._optimizer.dynamic_scale.assign(2.0**8)
training._backend.load()
training.train_epoch()
training.train_epoch()
final_weights = training.model.get_weights()
max(training.folder.checkpoints.iterdir()).unlink()
continuation = trainer("dropout", "repe", **float16)
assert continuation.state.epoch == 1
continuation.train_epoch()
results["resumed"] = [
    float(np.abs(old - new).max())
    for old, new in zip(final_weights, continuation.model.get_weights(), strict=True)
]
results["losses"] = [row["train_loss"] for row in training.folder.log()]

# The whole command, translations and all.
recipe = folder / "tiny.toml"
recipe.write_text("[text]\\nmax_tokens = 24\\n" + tiny_run.RECIPE)
os.environ["REPRT_CACHE"] = str(folder / "cache")
tiny_run.write_corpus(folder, train=33, dev=10, test=4)
arguments = ["train", str(recipe), "--text", str(folder / "text"), "--only", "baseline"]
arguments += ["--set", "training.epochs=1", "--out", str(folder / "out")]
assert main(arguments) == 0
results["metrics"] = RunFolder(folder / "out" / "baseline").metrics().model_dump()
results["epoch"] = RunFolder(folder / "out" / "baseline").log()[0]
print(json.dumps(results))
"""
)


@pytest.fixture(scope="module")
def expected(tmp_path_factory, text):
    """TensorFlow's logs, and the initial weights that they came from."""
    folder, logs = tmp_path_factory.mktemp("tensorflow"), {}
    for name, (preset, model, changes) in COMPARED.items():
        run = settings(preset, {"dropout": 0.0, **model}, **changes)
        with eager.training():
            trainer = make_trainer(folder / name / "run", run, text)
            trainer._optimizer.epsilon = 1e-2
            np.savez(folder / f"{name}.npz", *trainer.model.get_weights())
            trainer.train_epoch()
        (logs[name],) = losses(trainer.folder)
    return folder, logs


@pytest.fixture(scope="module", params=[1, 2])
def jax_results(request, expected, tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("jax")
    for name in NAMES[request.param]:
        (folder / f"{name}.npz").write_bytes(
            (expected[0] / f"{name}.npz").read_bytes()
        )
    # A cache that was filled where TensorFlow is serves where it is not.
    encode(text.corpus, VOCABULARY, 24, folder / "cache")
    devices = f"--xla_force_host_platform_device_count={request.param}"
    paths = folder, TESTS, TESTS.parent, TESTS.parents[1]
    flags = f"{os.environ['XLA_FLAGS']} {devices}"
    environment = {**os.environ, "KERAS_BACKEND": "jax", "XLA_FLAGS": flags}
    return request.param, json.loads(python(SCRIPT, *paths, env=environment))


def test_the_losses_are_those_of_tensorflow(jax_results, expected):
    devices, results = jax_results
    for name in NAMES[devices]:
        row = dict(expected[1][name])
        if name in IN_PARTS:
            # The batches of the validation are smaller.
            del row["val_loss"]
        for column, value in row.items():
            assert results[name][column] == pytest.approx(value, rel=1e-4), (
                column
            )
    assert len(results["start"]["devices"]) == devices
    assert results["start"]["backend"] == "jax"


def test_an_epoch_compiles_a_few_shapes(jax_results):
    # 33 pairs in batches of 16: two of up to 24 tokens, and one of a single pair, which
    # fits the shape of either.
    assert jax_results[1]["shapes"] <= 2


@pytest.mark.parametrize("jax_results", [1], indirect=True)
def test_float16_and_dropout_resume_exactly(jax_results):
    _, results = jax_results
    # No update was made, and the scale was halved.
    assert results["scale"] == 2.0**119
    assert max(results["resumed"]) == 0.0
    assert results["losses"][1] < results["losses"][0]


@pytest.mark.parametrize("jax_results", [1], indirect=True)
def test_the_whole_command_needs_no_tensorflow(jax_results):
    metrics = jax_results[1]["metrics"]
    assert metrics["epochs"] == 1 and metrics["test_bleu"] >= 0
    loss = jax_results[1]["epoch"]["val_loss_per_token"]
    assert metrics["val_prefix_loss_per_token"] == pytest.approx(loss, rel=1e-4)
