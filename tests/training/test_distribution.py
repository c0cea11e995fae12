"""One batch shared by two replicas; on logical CPUs, which have to be asked for before
TensorFlow starts: hence a process of their own. The tests' process has one.

Most steps are taken eagerly, for a few of them take less time than compiling. Those of
RePE's two replicas are compiled, and those of two that take their shares in parts.
"""

import json
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny import VOCABULARY, make_trainer, settings
from variants import COMPARED

from reprt.data.encoding import encode
from reprt.data.packing import packed
from reprt.losses import MaskedCrossentropy
from reprt.models import Transformer
from reprt.training.checkpoint import restore_checkpoint
from reprt.training.objective import Objective
from reprt.training.tensorflow_backend import mirrored_strategy
from reprt.training.trainer import State

pytestmark = pytest.mark.long
TWO_REPLICAS = """
import pathlib, sys

folder = pathlib.Path(sys.argv[1])
sys.path[:0] = sys.argv[2:]

import tensorflow as tf

(cpu,) = tf.config.list_physical_devices("CPU")
devices = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, devices)

import test_distribution as test
import tiny
from variants import COMPARED
from reprt.data.encoding import encode

corpus = tiny.corpus(train=33, dev=10, test=4)
text = encode(corpus, tiny.VOCABULARY, 24, folder / "cache")
test.train(folder, "repe", text)
test.train(folder, "clipped", text, parts=2)
test.fit(folder)
tf.config.run_functions_eagerly(True)
for name in COMPARED.keys() - {"repe", "clipped"}:
    test.train(folder, name, text)
test.drop_and_resume(folder, text)
test.overflow(folder, text)
"""
# Of 33 pairs, this leaves 17 and 16, of the first of which a second replica has 8.
# Batches of 16 leave 16, 16 and 1, which leaves nothing for it.
BATCH = 17
SIZE_16_NAMES = {"repe", "clipped"}


def write(folder, name, model, results):
    np.savez(folder / f"{name}.npz", *model.get_weights())
    (folder / f"{name}.json").write_text(json.dumps(results))


def train(folder, name, text, parts=1):
    preset, model, changes = COMPARED[name]
    size = 16 if name in SIZE_16_NAMES else BATCH
    run = settings(
        preset,
        {"dropout": 0.0, **model},
        batching={"size": size // parts},
        accumulate=parts,
        **changes,
    )
    # None is beside it on other vocabularies.
    trainer = make_trainer(folder / name / "run", run, text)
    # The value of test_trainer.py, which says why.
    trainer._optimizer.epsilon = 1e-2
    trainer.train_epoch()
    devices = trainer.folder.manifest().starts[0].devices
    row = {**trainer.folder.log()[0], "devices": devices}
    write(folder, name, trainer.model, row)


def drop_and_resume(folder, text):
    """Two epochs, and the second of them again from the checkpoint of the first."""
    run = settings("baseline", batching={"size": BATCH})
    trainer = make_trainer(folder / "runs" / "dropout", run, text)
    trainer.train_epoch()
    trainer.train_epoch()
    write(folder, "whole", trainer.model, {})
    max(trainer.folder.checkpoints.iterdir()).unlink()
    state = restore_checkpoint(trainer.folder.checkpoints, trainer._variables)
    trainer.state = State.read(state)
    trainer.train_epoch()
    write(folder, "resumed", trainer.model, {})


class OverflowingObjective(Objective):
    """Gradients of one replica that are not finite, though its loss is."""

    def loss(self, inputs, labels, step, counts):
        loss, sums = super().loss(inputs, labels, step, counts)
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        return loss * tf.where(replica == 1, 3e38, 1.0), sums


def overflow(folder, text):
    """A step in float16, of which the second replica has no finite gradients."""
    size = {"size": BATCH}
    float16 = {
        "precision": "mixed_float16",
        "optimizer": {"loss_scaling": "dynamic"},
    }
    run = settings("baseline", batching=size, **float16)
    trainer = make_trainer(folder / "runs" / "half", run, text)
    trainer._backend.train(next(iter(trainer._training_batches())))
    write(folder, "finite", trainer.model, {})
    trainer._backend._objective = OverflowingObjective(trainer.model)
    trainer._backend.train(next(iter(trainer._training_batches())))
    scale = float(trainer._optimizer.dynamic_scale.numpy())
    write(folder, "overflown", trainer.model, {"scale": scale})


class UsersModel(Transformer):
    """A user's own, with inputs of its own."""

    def call(self, inputs, training=None):
        source, target, _ = inputs
        return super().call((source, target), training=training)


def fit(folder):
    """Keras' own loop, where every row has the same number of tokens."""
    rng = np.random.default_rng(0)
    source, target = rng.integers(4, 20, (16, 5)), rng.integers(4, 20, (16, 7))
    source[:, 3:] *= rng.integers(0, 2, (16, 1))
    data = ((source, target[:, :-1]), target[:, 1:])
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(8)
    keras.utils.set_random_seed(0)
    config = settings("repe", {"dropout": 0.0}).model
    with mirrored_strategy().scope():
        model = Transformer(20, 20, config)
        model.build()
        adam = keras.optimizers.Adam(0.01, epsilon=1e-2)
        model.compile(adam, MaskedCrossentropy())
    history = model.fit(dataset, epochs=2, shuffle=False, verbose=0).history
    results = {
        "fit": history["loss"],
        "evaluate": model.evaluate(dataset, verbose=0),
    }
    shared_dataset = packed(dataset, strategy=mirrored_strategy())
    results["packed"] = model.evaluate(shared_dataset, verbose=0)
    # The same weights, without a strategy.
    reference = Transformer(20, 20, config)
    reference.build()
    reference.set_weights(model.get_weights())
    results["right"] = float(MaskedCrossentropy()(data[1], reference(data[0])))
    model.fit(shared_dataset, epochs=2, shuffle=False, verbose=0)
    write(folder, "fit", model, results)
    # Another loss takes other labels.
    with mirrored_strategy().scope():
        model.compile(
            "sgd", keras.losses.CategoricalCrossentropy(from_logits=True)
        )
        users_model = UsersModel(20, 20, config)
        users_model.compile("sgd", MaskedCrossentropy())
    model.fit(data[0], keras.ops.one_hot(data[1], 20), verbose=0)
    users_model.fit((*data[0], data[1]), data[1], verbose=0)


@pytest.fixture(scope="module")
def runs(tmp_path_factory, text):
    """What one and two replicas make of the same work."""
    folder_of_one, folder_of_two = (
        tmp_path_factory.mktemp(f"replicas{number}") for number in (1, 2)
    )
    # The other process reads the vocabularies from this cache.
    encode(text.corpus, VOCABULARY, 24, folder_of_two / "cache")
    tests_folder = pathlib.Path(__file__).parent
    paths = folder_of_two, tests_folder, tests_folder.parent
    arguments = [str(path) for path in paths]
    process = subprocess.Popen([sys.executable, "-c", TWO_REPLICAS, *arguments])
    tf.config.run_functions_eagerly(True)
    try:
        for name in COMPARED:
            train(folder_of_one, name, text)
        fit(folder_of_one)
    finally:
        tf.config.run_functions_eagerly(False)
        assert process.wait() == 0
    return {1: folder_of_one, 2: folder_of_two}


def results(folder, name):
    return json.loads((folder / f"{name}.json").read_text())


def assert_same(path, other_path, tolerance=0.0):
    with np.load(path) as arrays, np.load(other_path) as other_arrays:
        assert arrays.files == other_arrays.files and len(arrays.files) > 10
        for name in arrays.files:
            np.testing.assert_allclose(
                arrays[name], other_arrays[name], rtol=0, atol=tolerance
            )


@pytest.mark.parametrize("name", COMPARED)
def test_two_replicas_give_the_weights_and_losses_of_one(runs, name):
    assert_same(runs[1] / f"{name}.npz", runs[2] / f"{name}.npz", 1e-5)
    single_row, mirrored_row = (
        results(runs[number], name) for number in (1, 2)
    )
    assert (len(single_row["devices"]), len(mirrored_row["devices"])) == (1, 2)
    # Where training takes its batches in parts, those of the validation are smaller.
    exceptions = {"devices"} | ({"val_loss"} if name == "clipped" else set())
    for column in single_row.keys() - exceptions:
        if "seconds" not in column:
            assert mirrored_row[column] == pytest.approx(
                single_row[column], abs=1e-5
            ), column


def test_two_replicas_resume_their_dropout_exactly(runs):
    assert_same(runs[2] / "whole.npz", runs[2] / "resumed.npz")


def test_no_replica_makes_an_update_where_one_has_no_finite_gradients(runs):
    assert_same(runs[2] / "finite.npz", runs[2] / "overflown.npz")
    assert results(runs[2], "overflown") == {"scale": 2.0**14}


def test_fit_under_a_strategy_gives_the_weights_and_the_loss_of_one(runs):
    assert_same(runs[1] / "fit.npz", runs[2] / "fit.npz", 1e-5)
    single_results, mirrored_results = (
        results(runs[number], "fit") for number in (1, 2)
    )
    assert mirrored_results["fit"] == pytest.approx(
        single_results["fit"], abs=1e-5
    )
    for numbers in (single_results, mirrored_results):
        assert numbers["evaluate"] == pytest.approx(numbers["right"], abs=1e-5)
        assert numbers["packed"] == pytest.approx(numbers["right"], abs=1e-5)
