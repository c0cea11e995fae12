"""What Keras' models can do, ours can: a place in others, an export, `fit`."""

import types

import keras
import numpy as np
import pytest
from elsewhere import python
from tiny import LABELS, TINY

from reprt.data import pack
from reprt.losses import MaskedCrossentropy
from reprt.metrics import TokenAccuracy
from reprt.models import Transformer, build
from reprt.models.presets import PRESETS, preset

# Others differ from these in sizes alone.
SIZES = ("tiny", "small", "big")
KINDS = [name for name in PRESETS if not name.endswith(SIZES)]


@keras.saving.register_keras_serializable(package="tests")
class UsersModel(keras.Model):
    """A user's own model around one of ours."""

    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.inner, self.dense = inner, keras.layers.Dense(3)

    def call(self, inputs):
        return self.dense(self.inner(inputs))

    def get_config(self):
        inner = keras.saving.serialize_keras_object(self.inner)
        return {**super().get_config(), "inner": inner}

    @classmethod
    def from_config(cls, config):
        inner = keras.saving.deserialize_keras_object(config.pop("inner"))
        return cls(inner, **config)


@pytest.mark.parametrize("name", KINDS)
def test_dropout_acts_in_training_only(name, make_model, ids):
    make_model(name).summary(expand_nested=True, print_fn=lambda *_, **__: None)
    for place in getattr(preset(name), "dropout_places", [None]):
        places = {"dropout_places": [place]} if place else {}
        model = make_model(name, dropout=0.5, **places)
        for inputs in (ids, pack(ids, ids[1], layout=model.packed_layout)[0]):
            states = model.states(inputs)
            dropped_states = model.states(inputs, training=True)
            np.testing.assert_array_equal(model.states(inputs), states)
            assert np.abs(dropped_states - states).max() > 1e-3


@pytest.mark.parametrize("name", ["repe", "decoder-only", "recurrent"])
def test_users_models_around_ours_come_back(name, make_model, ids, tmp_path):
    inner = make_model(name)
    arguments = [keras.Input((None,), dtype="int32") for _ in ids]
    for model in (
        UsersModel(inner),
        keras.Model(arguments, keras.layers.Dense(3)(inner(arguments))),
    ):
        expected = model(ids)
        model.save(tmp_path / "model.keras")
        loaded_model = keras.saving.load_model(tmp_path / "model.keras")
        np.testing.assert_allclose(loaded_model(ids), expected, atol=1e-6)


# In a process that cannot import the package.
LOAD = """
import sys
sys.modules["reprt"] = None
import keras, numpy as np, tensorflow as tf
arrays = np.load("arrays.npz")
for name in sys.argv[1:]:
    source, target, logits = (arrays[f"{name} {index}"] for index in range(3))
    layer = keras.layers.TFSMLayer(name, call_endpoint="serve")
    np.testing.assert_allclose(layer((source, target)), logits, atol=1e-5)
    signature = tf.saved_model.load(name).signatures["serving_default"]
    (outputs,) = signature(source_ids=source, target_ids=target).values()
    np.testing.assert_allclose(outputs, logits, atol=1e-5)
"""


@pytest.mark.long
def test_exports_serve_any_batch_without_the_package(make_model, ids, tmp_path):
    arrays = {}
    for name in KINDS:
        model = make_model(name)
        if name == "repe":
            model.compile("sgd", MaskedCrossentropy(), run_eagerly=True)
            model.fit(ids, ids[1], verbose=0)
        model.export(tmp_path / name, verbose=False)
        # Of other sizes than any batch before.
        source = np.tile(ids[0], (2, 2))[:3]
        target = ids[1][:1].repeat(3, axis=0)
        logits = model((source, target))
        for index, array in enumerate((source, target, logits)):
            arrays[f"{name} {index}"] = array
    np.savez(tmp_path / "arrays.npz", **arrays)
    python(LOAD, *KINDS, cwd=tmp_path)


class CappedTransformer(Transformer):
    def logits(self, states):
        return keras.ops.tanh(super().logits(states))


def test_the_loss_is_of_the_logits_that_a_subclass_makes(make_model, ids):
    model = make_model("repe-causal", dropout=0.0)
    model = CappedTransformer(
        model.source_vocab_size, model.target_vocab_size, model.config
    )
    model.compile("sgd", MaskedCrossentropy())
    expected = MaskedCrossentropy()(ids[1], model(ids))
    assert model.evaluate(ids, ids[1], verbose=0) == pytest.approx(
        float(expected)
    )


@pytest.mark.parametrize("weights", [None, "tokens", "sentences"])
def test_fit_and_evaluate_report_the_same_in_a_graph_and_step_by_step(
    weights, make_model, ids
):
    sample_weights = {"tokens": LABELS / 4, "sentences": np.array([0.5, 2.0])}
    weight = None
    if weights is not None:
        weight = sample_weights[weights].astype("float32")
    results = []
    for eagerly in (False, True):
        model = make_model("repe-causal", dropout=0.0)
        model.compile(
            keras.optimizers.SGD(0.1),
            MaskedCrossentropy(),
            metrics=[TokenAccuracy(), "sparse_categorical_accuracy"],
            weighted_metrics=[TokenAccuracy(name="weighted")],
            run_eagerly=eagerly,
        )
        results.append(
            [
                *model.train_on_batch(ids, LABELS, weight),
                *model.evaluate(ids, LABELS, sample_weight=weight, verbose=0),
                *(float(abs(array).sum()) for array in model.get_weights()),
            ]
        )
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("floatx", ["bfloat16", "float64"])
@pytest.mark.parametrize("position", ["concat", "rotary", "relative"])
def test_fit_in_keras_own_dtype(floatx, position, ids):
    keras.config.set_floatx(floatx)
    keras.config.set_dtype_policy(floatx)
    try:
        model = build("repe-causal", 11, 10, position=position, **TINY)
        optimizer = keras.optimizers.SGD(1.0)
        model.compile(optimizer, MaskedCrossentropy(), run_eagerly=True)
        old_weights = model.get_weights()
        assert np.isfinite(float(model.train_on_batch(ids, ids[1])))
    finally:
        keras.config.set_floatx("float32")
        keras.config.set_dtype_policy("float32")
    assert (old_weights[0] != model.get_weights()[0]).any()


def test_adam_adds_up_the_gradients_of_an_id_before_it_squares_them(make_model):
    """Its first step moves a weight by the rate at most, however often its id comes."""
    ids = np.array([[4, 5, 4, 4, 4, 3]], "int32")
    model = make_model("repe-causal", dropout=0.0)
    model.compile(keras.optimizers.Adam(1e-3), MaskedCrossentropy())
    old_weights = model.get_weights()
    model.train_on_batch((ids, ids), ids)
    # No method of the user's optimizer is replaced.
    assert not any(callable(value) for value in vars(model.optimizer).values())
    step_sizes = [
        abs(new - old).max()
        for new, old in zip(model.get_weights(), old_weights)
    ]
    assert 0.9e-3 < max(step_sizes) < 1.001e-3
    variables = model.trainable_variables  # by Keras' own names
    model.optimizer.apply(
        grads=[variable * 0 for variable in variables],
        trainable_variables=variables,
    )


def test_fit_in_float16_makes_no_update_of_infinite_gradients(ids):
    settings = preset("repe-causal", **TINY)
    model = Transformer(11, 10, settings, dtype="mixed_float16")
    model.compile("sgd", MaskedCrossentropy(), run_eagerly=True)
    model.train_on_batch(ids, ids[1])
    model.optimizer.dynamic_scale.assign(2.0**120)
    old_weights = model.get_weights()
    model.train_on_batch(ids, ids[1])
    for old, new in zip(old_weights, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_fit_leaves_xla_alone_on_a_gpu(make_model, monkeypatch):
    gpu = types.SimpleNamespace(device_type="GPU")
    monkeypatch.setattr(
        "tensorflow.config.list_physical_devices", lambda *_: [gpu]
    )
    model = make_model("repe")
    model.compile("adam", MaskedCrossentropy())
    assert not model.jit_compile


def test_a_file_says_whether_xla_was_left_to_the_backend(make_model):
    model = make_model("repe")
    for jit_compile in ("auto", False, True):
        model.compile("adam", MaskedCrossentropy(), jit_compile=jit_compile)
        config = model.get_compile_config()
        assert config["jit_compile"] == jit_compile
    model.compile_from_config(config)
    assert model.jit_compile


def test_what_is_frozen_stays_and_the_rest_learns(make_model, ids):
    model = make_model("repe-causal")
    model.encoder.trainable = False
    model.compile(
        keras.optimizers.AdamW(0.1), MaskedCrossentropy(), run_eagerly=True
    )
    encoder_weights = model.encoder.get_weights()
    decoder_weights = model.decoder.get_weights()
    model.train_on_batch(ids, ids[1])
    for old, new in zip(
        encoder_weights, model.encoder.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(old, new)
    assert not np.array_equal(
        model.decoder.get_weights()[0], decoder_weights[0]
    )


class AdaptedTransformer(Transformer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.adapter = keras.layers.Dense(self.config.embedding_dim)

    def states(self, inputs, training=None):
        return self.adapter(super().states(inputs, training))


def test_fit_makes_the_layers_that_a_subclass_adds(make_model, ids):
    model = make_model("baseline")
    model = AdaptedTransformer(
        model.source_vocab_size, model.target_vocab_size, model.config
    )
    model.compile("adam", MaskedCrossentropy())
    model.fit(ids, ids[1], verbose=0)
    assert model.adapter.kernel.path in {
        variable.path for variable in model.trainable_variables
    }


def test_labels_of_another_length_are_an_error_and_loss_weights_count(
    make_model, ids
):
    import tensorflow as tf

    (source, target), losses = ids, []
    for weight in (0.5, None):
        model = make_model("repe-causal", dropout=0.0)
        model.compile("sgd", MaskedCrossentropy(), loss_weights=weight)
        with pytest.raises(ValueError, match="its inputs shifted by one"):
            model.evaluate((source, target[:, :-1]), target, verbose=0)
        losses.append(model.evaluate(ids, target, verbose=0))
    assert losses[0] == pytest.approx(0.5 * losses[1])
    with pytest.raises(ValueError, match="Expected labels of shape"):
        model.fit(ids, verbose=0)
    with pytest.raises(ValueError, match="its inputs shifted by one"):
        TokenAccuracy().update_state(np.ones((2, 3)), np.ones((2, 4, 5)))
    pairs = tf.data.Dataset.from_tensors(((source, target[:, :-1]), target))
    shapes = ([None], [None]), [None]
    with pytest.raises(tf.errors.InvalidArgumentError, match="BroadcastTo"):
        model.evaluate(pairs.unbatch().padded_batch(2, shapes), verbose=0)
