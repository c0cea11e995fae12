"""One batch shared by two replicas; on logical CPUs, which have to be asked for before
TensorFlow starts: hence a process for each number of them."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

SCRIPT = '''
import json, pathlib, sys

folder, replicas = pathlib.Path(sys.argv[1]), int(sys.argv[2])
sys.path[:0] = sys.argv[3:]

import keras
import numpy as np
import tensorflow as tf

(cpu,) = tf.config.list_physical_devices("CPU")
logical = [tf.config.LogicalDeviceConfiguration()] * replicas
tf.config.set_logical_device_configuration(cpu, logical)

import conftest
from reprt.data import pack
from reprt.data.corpora import embedded
from reprt.data.encoding import encode
from reprt.losses import MaskedCrossentropy
from reprt.models import Transformer
from reprt.runs.run_folder import RunFolder
from reprt.runs.checkpoint import restore_checkpoint
from reprt.training.tensorflow_backend import mirrored_strategy
from reprt.training.trainer import State, Trainer

text = encode(embedded.load(train=33, dev=9, test=4), 150, 24, folder)
settings = conftest.settings.__wrapped__()


def trainer(name, *arguments, **keywords):
    run, files = settings(*arguments, **keywords), RunFolder(folder / name)
    files.open(run, text)
    return Trainer(run, text, files, conftest.Lines())


results = {}
# Batches of 16, 16 and 1: the last leaves nothing for a second replica.
for name in ("baseline", "repe"):
    one = trainer(name, name, {"dropout": 0.0})
    one._optimizer.epsilon = 1e-2  # as in test_trainer.py
    one.train_epoch()
    results[name] = one.folder.log()[0]
    results["devices"] = one.folder.manifest()["starts"][0]["devices"]
    np.savez(folder / f"{name}.npz", *one.model.get_weights())

# Dropout: two epochs, and the second of them again from the checkpoint of the first.
# Replicas have 9 and 8 rows of a batch of 17.
if replicas == 2:
    one = trainer("dropout", "baseline", batching={"size": 17})
    one.train_epoch()
    one.train_epoch()
    np.savez(folder / "whole.npz", *one.model.get_weights())
    max(one.folder.checkpoints.iterdir()).unlink()
    saved = restore_checkpoint(one.folder.checkpoints, one._variables)
    one.state = State.from_json(saved)
    one.train_epoch()
    np.savez(folder / "resumed.npz", *one.model.get_weights())

# Keras' own loop, where every row has the same number of tokens.
rng = np.random.default_rng(0)
source, target = rng.integers(4, 20, (16, 5)), rng.integers(4, 20, (16, 7))
source[:, 3:] *= rng.integers(0, 2, (16, 1))
data = ((source, target[:, :-1]), target[:, 1:])
dataset = tf.data.Dataset.from_tensor_slices(data).batch(8)
keras.utils.set_random_seed(0)
with mirrored_strategy().scope():
    run = settings("repe", {"dropout": 0.0})
    model = Transformer(20, 20, run.model)
    model.build()
    model.compile(keras.optimizers.Adam(0.01, epsilon=1e-2), MaskedCrossentropy())
history = model.fit(dataset, epochs=2, shuffle=False, verbose=0).history
results["fit"] = history["loss"]
results["evaluate"] = model.evaluate(dataset, verbose=0)
np.savez(folder / "fit.npz", *model.get_weights())
# The same weights, without a strategy.
plain = Transformer(20, 20, run.model)
plain.build()
plain.set_weights(model.get_weights())
loss = MaskedCrossentropy()(data[1], plain(data[0]))
results["right"] = float(loss)
# Last, for it moves the weights where it succeeds.
try:
    model.fit(dataset.map(pack), verbose=0)
except tf.errors.InvalidArgumentError as error:
    results["packed"] = str(error)
(folder / "results.json").write_text(json.dumps(results))
'''


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What one and two replicas make of the same work."""
    folders = {}
    for replicas in (1, 2):
        folders[replicas] = tmp_path_factory.mktemp(f"replicas{replicas}")
        here = pathlib.Path(__file__).parent
        places = [str(here), str(here.parent)]
        arguments = [str(folders[replicas]), str(replicas), *places]
        subprocess.run([sys.executable, "-c", SCRIPT, *arguments], check=True)
    return folders


def results(folder):
    return json.loads((folder / "results.json").read_text())


def assert_same(this, that, tolerance=0.0):
    with np.load(this) as one, np.load(that) as other:
        assert one.files == other.files and len(one.files) > 20
        for name in one.files:
            np.testing.assert_allclose(one[name], other[name], rtol=0, atol=tolerance)


@pytest.mark.slow
def test_each_logical_cpu_is_a_replica(runs):
    assert [len(results(runs[number])["devices"]) for number in (1, 2)] == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["baseline", "repe"])
def test_two_replicas_give_the_weights_and_losses_of_one(runs, name):
    assert_same(runs[1] / f"{name}.npz", runs[2] / f"{name}.npz", 1e-5)
    one, two = (results(runs[number])[name] for number in (1, 2))
    for column in one:
        if "seconds" not in column:
            assert two[column] == pytest.approx(one[column], abs=1e-5), column


@pytest.mark.slow
def test_two_replicas_resume_their_dropout_exactly(runs):
    assert_same(runs[2] / "whole.npz", runs[2] / "resumed.npz")


@pytest.mark.slow
def test_fit_under_a_strategy_gives_the_weights_and_the_loss_of_one(runs):
    assert_same(runs[1] / "fit.npz", runs[2] / "fit.npz", 1e-5)
    one, two = (results(runs[number]) for number in (1, 2))
    assert two["fit"] == pytest.approx(one["fit"], abs=1e-5)
    for each in (one, two):
        assert each["evaluate"] == pytest.approx(each["right"], abs=1e-5)


@pytest.mark.slow
def test_fit_with_several_replicas_stops_at_packed_batches(runs):
    """Keras would average the tensors of its replicas, and cannot."""
    assert "packed" not in results(runs[1])
    assert "AddN" in results(runs[2])["packed"]
