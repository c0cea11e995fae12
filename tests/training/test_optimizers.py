"""Rates and steps against NumPy; float16; what of them a resumed run goes on with."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from tiny import assert_same, losses, train_to_end, variables

from reprt.layers import PMHA, RMSNorm
from reprt.optimizers import OPTIMIZERS, make_optimizer, update
from reprt.schedules import WarmupSchedule, cosine
from reprt.training import trainer as loop
from reprt.training.settings import (
    OPTIMIZER_SETTINGS,
    AdamSettings,
    AdamWSettings,
    CosineSettings,
    InverseSqrtSettings,
)
from reprt.training.tensorflow_backend import mirrored_strategy

FLOAT16 = {
    "precision": "mixed_float16",
    "optimizer": {"name": "adamw", "loss_scaling": "dynamic"},
    "schedule": {"name": "cosine", "warmup_steps": 2},
}


def reference_rate(step, steps, warmup, peak, floor):
    if step < warmup:
        return peak * step / warmup
    share = min(1.0, (step - warmup) / (steps - warmup))
    return floor + (peak - floor) * (1 + np.cos(np.pi * share)) / 2


@pytest.mark.parametrize(
    "schedule, step, rate",
    [
        (InverseSqrtSettings(peak=0.1), 4000, 0.1),
        (InverseSqrtSettings(dim=128), 4000, (128 * 4000) ** -0.5),
        (CosineSettings(warmup_steps=2), 10, None),
        (CosineSettings(warmup_steps=2, steps=10), 10, CosineSettings().floor),
    ],
)
def test_an_optimizer_has_the_rates_of_its_schedule(schedule, step, rate):
    adam = make_optimizer(AdamSettings(), schedule, steps=99)
    # The schedule ends with the run's own steps.
    if rate is None:
        rate = reference_rate(step, 99, 2, schedule.peak, schedule.floor)
    adam.iterations.assign(step)
    assert float(adam.learning_rate) == pytest.approx(rate, rel=1e-4)


def test_the_cosine_rises_falls_and_stays():
    constants = {"steps": 90, "warmup": 20, "peak": 3e-3, "floor": 1e-4}
    schedule = cosine(90, 20, 3e-3, 1e-4)
    for step in (0, 1, 19, 20, 21, 55, 89, 90, 91, 10**6):
        expected = reference_rate(step, **constants)
        assert float(schedule(step)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: cosine(None), "more steps than a cosine.*: steps=None"),
        (lambda: cosine(9, 2, peak=1e-5), "`floor` to be at most `peak`"),
        (lambda: CosineSettings(peak=1e-5), "`floor` to be at most `peak`"),
        (lambda: WarmupSchedule(), "one of embedding_dim and peak"),
        (
            lambda: WarmupSchedule(8, 0),
            "a step or more of warm-up.*warmup_steps=0",
        ),
        (
            lambda: make_optimizer(AdamSettings(), CosineSettings()),
            "steps=None",
        ),
    ],
)
def test_what_is_no_schedule_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_adamw_decays_only_matrices_and_tables():
    settings = AdamWSettings(weight_decay=0.5, beta_1=0.8, beta_2=0.9)
    schedule = InverseSqrtSettings(warmup_steps=4, peak=0.1)
    generator, strategy = np.random.default_rng(0), mirrored_strategy()
    with strategy.scope():
        layers = [
            # The name only looks like that of a bias.
            keras.layers.Dense(3, name="bias_free"),
            keras.layers.LayerNormalization(),
            keras.layers.Embedding(5, 3),
            RMSNorm(),
            PMHA(1, 3, use_bias=False, query_key_norm=True),
        ]
        for layer in layers[:3]:
            layer.build((None, 3))
        layers[3].build((None, None, 3))
        layers[4].build(*[(None, None, 3)] * 3)
        weights = [
            weight for layer in layers for weight in layer.trainable_variables
        ]
        for weight in weights:
            weight.assign(generator.normal(size=weight.shape))
        adamw = make_optimizer(settings, schedule)
        adamw.build(weights)
    decays = [weight.name in ("kernel", "embeddings") for weight in weights]
    assert decays[:5] == [True, False, False, False, True]
    names = {weight.name for weight, decay in zip(weights, decays) if not decay}
    assert names == {"bias", "gamma", "beta", "gain", "scale"}
    expected = [np.array(weight, "float64") for weight in weights]
    first, second = ([np.zeros(w.shape) for w in expected] for _ in range(2))
    for step in range(6):
        gradients = [
            generator.normal(size=w.shape).astype("float32") for w in expected
        ]
        strategy.run(
            adamw.apply, args=(list(map(tf.constant, gradients)), weights)
        )
        rate = 0.1 * min(step / 4, max(step, 1) ** -0.5 * 2)
        for m, v, w, g, decay in zip(
            first, second, expected, gradients, decays
        ):
            m[...] = 0.8 * m + 0.2 * g
            v[...] = 0.9 * v + 0.1 * g**2
            w *= 1 - 0.5 * rate * decay
            moments = m / (1 - 0.8 ** (step + 1)), v / (1 - 0.9 ** (step + 1))
            w -= rate * moments[0] / (np.sqrt(moments[1]) + 1e-9)
    for weight, reference in zip(weights, expected):
        np.testing.assert_allclose(
            ops.convert_to_numpy(weight), reference, rtol=1e-4
        )


@pytest.mark.parametrize("kind", OPTIMIZER_SETTINGS, ids=OPTIMIZERS)
def test_every_optimizer_is_that_of_keras(kind):
    """By its name, with its arguments, a rate that stands and a clipped gradient."""
    settings = kind(
        global_clipnorm=0.5, use_ema=True, ema_overwrite_frequency=2
    )
    gradient = tf.constant([[3.0, -4.0], [0.5, 0.0]])
    weights = []
    for is_ours in (True, False):
        if is_ours:
            schedule = InverseSqrtSettings(peak=0.1, warmup_steps=1)
            optimizer = make_optimizer(settings, schedule)
        else:
            arguments = dict(settings)
            for name in ("name", "loss_scaling", "sparse_gradients"):
                arguments.pop(name, None)
            rate = WarmupSchedule(peak=0.1, warmup_steps=1)
            optimizer = OPTIMIZERS[settings.name](rate, **arguments)
        weight = keras.Variable([[1.0, 2.0], [3.0, 4.0]], name="kernel")
        optimizer.build([weight])
        for _ in range(3):
            optimizer.apply([gradient], [weight])
        weights.append(ops.convert_to_numpy(weight))
    np.testing.assert_array_equal(*weights)
    assert not np.array_equal(weights[0], [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.usefixtures("eagerly")
def test_float16_adamw_and_cosine_resume_exactly_and_keep_the_same_models(
    trainer, monkeypatch
):
    # The weight of the source's loss depends on the step, too.
    objective = {"name": "translation_and_source", "label_smoothing": 0.1}
    settings = {
        **FLOAT16,
        "average": 2,
        "keep_every": 2,
        "objective": objective,
    }
    monkeypatch.setattr(loop, "READ_SECONDS", 1e9)
    reference = trainer("whole", "decoder-only", **settings)
    # Both epochs have six steps, several of which would be read at once.
    assert reference._backend._objective.steps == 6
    train_to_end(reference)
    monkeypatch.setattr(loop, "READ_SECONDS", 0.0)
    trainer("parts", "decoder-only", **settings).train_epoch()
    continuation = train_to_end(trainer("parts", "decoder-only", **settings))
    assert_same(variables(reference), variables(continuation))
    assert losses(reference.folder) == losses(continuation.folder)
    assert all(weight.dtype == "float32" for weight in reference.model.weights)
    # The run has six steps; the rate is that of the updates, of which some are skipped.
    for row in losses(reference.folder):
        expected = reference_rate(row["step"], 6, 2, 6e-4, 6e-5)
        assert row["learning_rate"] == pytest.approx(expected, rel=1e-5)

    files, other_files = (
        sorted((training.folder.path / "models").iterdir())
        for training in (reference, continuation)
    )
    names = ["step-00000004.keras", "step-00000006.keras"]
    assert (
        names
        == [path.name for path in files]
        == [path.name for path in other_files]
    )
    for file, other_file in zip(files, other_files):
        model, other_model = map(keras.saving.load_model, (file, other_file))
        assert_same(model.get_weights(), other_model.get_weights())
    assert_same(model.get_weights(), reference.model.get_weights())


@pytest.mark.usefixtures("eagerly")
def test_kerass_own_adam_squares_the_gradient_of_each_occurrence_and_moves_all_rows():
    """What `docs/faithful.md` says of it, on TensorFlow."""
    table = keras.Variable(np.zeros((5, 2), "float32"))
    adam = keras.optimizers.Adam(0.1)
    adam.build([table])
    shape = tf.constant([5, 2])
    gradient = tf.IndexedSlices(tf.ones((2, 2)), tf.constant([1, 1]), shape)
    adam.apply([gradient], [table])
    first_values = keras.ops.convert_to_numpy(table)
    # The step is 2 / sqrt(1 + 1) times the rate, and not the rate.
    assert abs(first_values[1]).min() > 0.14
    other_gradient = tf.IndexedSlices(tf.ones((1, 2)), tf.constant([3]), shape)
    adam.apply([other_gradient], [table])
    second_values = keras.ops.convert_to_numpy(table)
    assert (second_values[1] < first_values[1]).all()


def test_an_update_is_made_only_where_gradients_are_finite(trainer):
    # A step whose update is left out counts as well.
    training = trainer("run", **FLOAT16)
    old_weights = training.model.get_weights()
    training._optimizer.dynamic_scale.assign(2.0**120)
    training.train_epoch()
    assert_same(training.model.get_weights(), old_weights)
    assert training._optimizer.dynamic_scale.numpy() == 2.0**117
    (row,) = losses(training.folder)
    assert row["step"] == 3 and 0 < row["train_loss"] < 10
    training._optimizer.dynamic_scale.assign(2.0**8)
    training.train_epoch()
    assert losses(training.folder)[1]["step"] == 6
    assert not np.array_equal(training.model.get_weights()[0], old_weights[0])


def test_a_run_shorter_than_its_warm_up_is_refused(trainer):
    with pytest.raises(ValueError, match="warm-up.*: steps=6, .*=2000"):
        trainer("run", schedule={"name": "cosine", "warmup_steps": 2000})


def test_squares_of_an_id_are_summed_apart_if_asked():
    """An id in a batch twice has two gradients; Keras' second moment squares each."""
    gradients = np.array([[1.0, -2.0], [3.0, 1.0], [4.0, 0.5]], "float32")
    sparse = tf.IndexedSlices(
        gradients, tf.constant([1, 1, 2]), tf.constant([4, 2])
    )
    gradient_sums = np.array([[0, 0], [4, -1], [4, 0.5], [0, 0]])
    square_sums = np.array([[0, 0], [10, 5], [16, 0.25], [0, 0]])
    for name, squares in (
        ("summed", gradient_sums**2),
        ("squared_apart", square_sums),
    ):
        settings = AdamSettings(sparse_gradients=name, epsilon=1e-7)
        adam = make_optimizer(
            settings, InverseSqrtSettings(peak=0.1, warmup_steps=1)
        )
        table = keras.Variable(np.zeros((4, 2), "float32"))
        adam.build([table])
        update(adam, [sparse], [table])
        velocity = ops.convert_to_numpy(adam._velocities[0])
        np.testing.assert_allclose(velocity, 0.02 * squares, rtol=1e-5)
        config = keras.saving.serialize_keras_object(adam)
        copy = keras.saving.deserialize_keras_object(config)
        assert type(copy) is type(adam)
