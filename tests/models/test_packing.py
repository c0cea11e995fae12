import functools
import json
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf
import test_decoder_only
from elsewhere import python
from tiny import LABELS, SOURCE, TARGET
from variants import ALL, ONE_SEQUENCE, POSITIONED

import reprt.data
from reprt.data import pack, packed
from reprt.data.batching import BatchPlan
from reprt.data.packing import (
    GROUPS,
    deal_to_devices,
    first_fitting_shape,
    plan_shapes,
)
from reprt.losses import MaskedCrossentropy
from reprt.metrics import TokenAccuracy

NAMES = (
    "baseline",
    "repe",
    "repe, prefix",
    "repe, padding counts",
    "repe, causal",
)
VARIANTS = {
    **{name: ALL[name] for name in (*NAMES, "norms before, tied")},
    "decoder-only": ("decoder-only", {}),
    "recurrent": ("recurrent", {}),
    **POSITIONED,
    **ONE_SEQUENCE,
}


def random_batch(rows, longest, seed=0):
    """Sentences of 1 to `longest` tokens, ids from 4 to 9."""
    rng = np.random.default_rng(seed)
    source, target = rng.integers(4, 10, (2, rows, longest + 1), dtype="int32")
    for ids in (source, target):
        lengths = rng.integers(2, longest + 2, rows)
        ids[np.arange(longest + 1) >= lengths[:, None]] = 0
    labels = target[:, 1:]
    # As arrays are cut by hand: the input keeps its last token, which has no label.
    return (source, target[:, :-1]), labels


DATASET = tf.data.Dataset.from_tensors
RAGGED_TENSOR = tf.ragged.constant([[2, 3], [2]])
BATCHES = {
    "two sentences": ((SOURCE, TARGET), LABELS),
    "one sentence": ((SOURCE[:1], TARGET[:1]), LABELS[:1]),
    "as many as groups and one": random_batch(GROUPS + 1, 7),
    "many": random_batch(37, 20),
    "padding on the left and in the middle": (
        (np.array([[0, 5, 0, 7, 0]]), np.array([[4, 0, 5, 0, 6]])),
        np.array([[4, 0, 5, 6, 3]]),
    ),
    "a row of padding alone": (
        (np.array([[5, 7], [0, 0]]), np.array([[2, 4], [0, 0]])),
        np.array([[4, 3], [0, 0]]),
    ),
}


def results(model, inputs, labels):
    """Real labels, their logits, the loss and its gradients."""
    with tf.GradientTape() as tape:
        logits = model(inputs, training=True)
        loss, _ = MaskedCrossentropy().sum_and_count(labels, logits)
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients = [
        np.asarray(tf.convert_to_tensor(gradient)) for gradient in gradients
    ]
    labels, logits = np.asarray(labels), np.asarray(logits)
    is_real = labels != 0
    return labels[is_real], logits[is_real], loss, gradients


# Each way of packing with all batches; what else differs, with the most telling two.
FULLY_COMPARED = ("repe, prefix", "decoder-only", "recurrent")
TELLING_BATCHES = ("many", "a row of padding alone")


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_losses_and_gradients_are_those_of_the_padded_batch(
    variant, make_model
):
    name, overrides = VARIANTS[variant]
    blocks = 2 if variant in (*FULLY_COMPARED, "position=untied") else 1
    model = make_model(name, blocks, dropout=0.0, **overrides)
    for batch in BATCHES if variant in FULLY_COMPARED else TELLING_BATCHES:
        padded_results = results(model, *BATCHES[batch])
        packed_results = results(
            model, *pack(*BATCHES[batch], layout=model.packed_layout)
        )
        np.testing.assert_array_equal(
            packed_results[0], padded_results[0], err_msg=batch
        )
        np.testing.assert_allclose(
            packed_results[1], padded_results[1], atol=2e-5, err_msg=batch
        )
        np.testing.assert_allclose(
            packed_results[2], padded_results[2], rtol=1e-5, err_msg=batch
        )
        for gradient, expected in zip(
            packed_results[3], padded_results[3], strict=True
        ):
            tolerance = 1e-4 * (1 + np.abs(expected).max())
            np.testing.assert_allclose(
                gradient, expected, atol=tolerance, err_msg=batch
            )


# As sentences are: half of them of 10 to 30 tokens, and both sides alike.
GENERATOR = np.random.default_rng(0)
TOKENS = np.exp(GENERATOR.normal(3.1, 0.75, 6000))
SIDES = np.clip(
    TOKENS * GENERATOR.uniform(0.75, 1.3, (2, 6000)), 3, 128
).astype(int)
PLANS = {  # and at most how many positions there are to a real token
    "sentences": ({"size": 64}, 1.25),
    "by length": ({"size": 64, "by_length": True}, 1.55),
    "tokens": ({"size": 4096, "name": "tokens"}, 1.35),
}


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("layout", ["sides", "sequence"])
@pytest.mark.parametrize("name", PLANS)
def test_four_shapes_hold_every_batch_and_little_padding(name, layout, devices):
    settings, limit = PLANS[name]
    plan = BatchPlan(SIDES.max(0), **settings)
    shapes = plan_shapes(plan, SIDES, layout, devices)
    assert len(shapes) <= 4
    shape_indices, positions = [], 0
    for epoch in range(20, 25):
        for rows in plan.batches(epoch):
            _, lengths = deal_to_devices(SIDES, rows, devices)
            shape = first_fitting_shape(lengths, shapes, layout)
            shape_indices.append(shapes.index(shape))
            positions += devices * sum(shape.tokens[2:] or shape.tokens)
    assert positions < limit * 5 * SIDES.sum()
    if name == "sentences":
        assert np.mean(np.array(shape_indices) == 0) >= 0.4
        assert np.mean(np.array(shape_indices) <= 1) >= 0.85
        # Whatever sentences an epoch brings together.
        longest = np.argsort(SIDES.max(0))[-64:]
        _, lengths = deal_to_devices(SIDES, longest, devices)
        assert first_fitting_shape(lengths, shapes, layout) == shapes[-1]


def test_a_batch_that_is_packed_for_another_model_is_refused(make_model):
    inputs, _ = pack((SOURCE, TARGET), LABELS)
    with pytest.raises(
        ValueError, match="by layout='sequence'. Received: the other"
    ):
        make_model("decoder-only")(inputs)
    with pytest.raises(
        ValueError, match="'sides', 'sequence'.*Received: layout='x'"
    ):
        pack((SOURCE, TARGET), LABELS, layout="x")
    with pytest.raises(
        ValueError, match="integer tensor of shape .batch, length.* shape="
    ):
        pack((SOURCE[0], TARGET[0]), LABELS[0])
    with pytest.raises(
        ValueError, match="Expected batches .* Received: 4 inputs"
    ):
        pack(inputs, LABELS)
    with pytest.raises(
        ValueError, match="Expected batches .* Received: 1 inputs"
    ):
        pack(TARGET, LABELS)
    with pytest.raises(ValueError, match="rows of unequal lengths. Pad"):
        pack(([[2, 3], [2]], TARGET), LABELS)


@pytest.mark.parametrize(
    "batches, message",
    [
        (
            ((SOURCE, TARGET), LABELS),
            "a tf.data.Dataset.* Received: a tuple. .*pack",
        ),
        ([((SOURCE, TARGET), LABELS)], "a tf.data.Dataset.* Received: a list"),
        (iter([((SOURCE, TARGET), LABELS)]), "Received: a list_iterator"),
        (keras.utils.PyDataset(), "a tf.data.Dataset.* Received: a PyDataset"),
        (DATASET(((TARGET, LABELS))), "batches .* Received: 1 inputs"),
        (DATASET(TARGET), "batches .* Received: TensorSpec"),
        (DATASET(((SOURCE, TARGET),)), "batches .* Received: ..TensorSpec"),
        (DATASET(({"ids": TARGET}, LABELS)), "Received: 1 inputs"),
        (
            DATASET(((TARGET, RAGGED_TENSOR), LABELS)),
            "rows of unequal lengths. Pad",
        ),
        (DATASET(((TARGET, TARGET * 1.0), LABELS)), "integer .*dtype=float"),
        (DATASET(((TARGET, [["a", "b"]]), LABELS)), "integer .*dtype=string"),
        (DATASET(((TARGET, TARGET[0]), LABELS)), "of shape .batch, length"),
    ],
)
def test_batches_that_cannot_be_packed_are_told_in_a_line(batches, message):
    with pytest.raises(ValueError, match=message) as error:
        packed(batches)
    assert "\n" not in str(error.value)
    with pytest.raises(
        ValueError, match=r"by one. Received: \(2, 2\) and \(2, 5"
    ):
        pack((SOURCE, TARGET), LABELS[:, :2])


def test_groups_may_be_wider_than_a_table_of_positions(make_model):
    model = make_model("baseline", position="untied", max_length=8)
    ids = np.full((2, 8), 5)
    inputs, _ = pack((ids, ids), ids)
    expected = np.asarray(model((ids, ids))).reshape(16, -1)
    np.testing.assert_allclose(
        np.asarray(model(inputs))[0, :16], expected, atol=2e-5
    )
    ids = np.full((2, 9), 5)
    with pytest.raises(ValueError, match="at most 8 tokens.* sequence of 9"):
        model(pack((ids, ids), ids)[0])


def test_a_batch_without_a_token_on_one_side_can_be_packed(make_model):
    padding, ids = np.zeros((1, 2), int), np.array([[2, 5]])
    for sides in ((padding, ids), (ids, padding)):
        inputs, labels = pack(sides, sides[1])
        loss = float(MaskedCrossentropy()(labels, make_model("repe")(inputs)))
        assert 0 < loss < 9 if sides[1].any() else loss == 0


def test_pytorch_is_refused(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    with pytest.raises(
        ValueError, match="give padded batches.*KERAS_BACKEND=torch"
    ):
        pack((SOURCE, TARGET), LABELS)


WEIGHTS = np.array([1.0, 0.0, 0.5, 2.0, 0.0, 0.0, 0.25], dtype="float32")
TOKEN_WEIGHTS = np.arange(7 * 9, dtype="float32").reshape(7, 9) % 4
SAMPLE_WEIGHTS = {
    "rows": WEIGHTS,
    "column": WEIGHTS[:, None],
    "tokens": TOKEN_WEIGHTS,
}


def fit_results(model, batch, packed, size=10, **options):
    """What a model reports of batches, in training and after."""
    dataset = tf.data.Dataset.from_tensor_slices(batch).batch(size)
    if packed:
        dataset = reprt.data.packed(dataset, model.packed_layout)
    adam = keras.optimizers.Adam(0.01, epsilon=1e-2)
    metrics = {"metrics": [TokenAccuracy("plain")]}
    metrics["weighted_metrics"] = [TokenAccuracy("weighted")]
    model.compile(adam, MaskedCrossentropy(), **metrics, **options)
    history = model.fit(dataset, epochs=2, shuffle=False, verbose=0).history
    evaluation = model.evaluate(dataset, return_dict=True, verbose=0)
    numbers = []
    for epochs in history.values():
        numbers += [float(number) for number in epochs]
    return numbers + [float(number) for number in evaluation.values()]


@pytest.mark.parametrize(
    "name, weights",
    [
        pytest.param("repe", "rows", marks=pytest.mark.long),
        ("repe", "tokens"),
        ("decoder-only", "column"),
    ],
)
def test_sample_weights_count_where_tokens_are_packed(
    name, weights, make_model
):
    batch, weights = random_batch(7, 9), SAMPLE_WEIGHTS[weights]
    model = functools.partial(make_model, name, dropout=0.0)
    options = {"size": 4, "run_eagerly": True}
    numbers, expected, unweighted_numbers = (
        fit_results(model(), (*batch, sample_weights), packed, **options)
        for packed, sample_weights in (
            (True, weights),
            (False, weights),
            (True, 0 * weights + 1),
        )
    )
    assert numbers == pytest.approx(expected, abs=1e-4)
    assert np.abs(np.subtract(numbers, unweighted_numbers)).max() > 1e-2


@pytest.mark.parametrize(
    "weights", [np.ones(2), np.ones((2, 1)), np.ones((2, 5))]
)
def test_weights_of_a_padded_batch_do_not_stretch_packed_labels(
    weights, make_model
):
    inputs, labels = pack((SOURCE, TARGET), LABELS)
    logits = np.zeros((*labels.shape, 10), "float32")
    for count in (MaskedCrossentropy(), TokenAccuracy().update_state):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[1,64\]"):
            count(labels, logits, sample_weight=weights)
    # One sentence is packed as one row.
    inputs, labels = pack((SOURCE[:1], TARGET[:1]), LABELS[:1])
    MaskedCrossentropy()(labels, logits, sample_weight=np.ones(1))


@pytest.mark.long
def test_fit_gives_the_same_on_packed_batches_compiled_by_xla(make_model):
    batch = random_batch(10, 9)  # XLA compiles for every shape
    padded_model, packed_model = (
        make_model("repe", dropout=0.0) for _ in range(2)
    )
    expected = fit_results(padded_model, batch, packed=False, run_eagerly=True)
    numbers = fit_results(packed_model, batch, packed=True, jit_compile=True)
    assert numbers == pytest.approx(expected, abs=1e-4)


JAX_VARIANTS = {
    name: ALL[name] for name in ("baseline", "repe, prefix", "repe, causal")
}
JAX_SCRIPT = """
import json, sys
sys.path[:0] = sys.argv[1:]
import keras
from formula import set_weights_by_formula
from test_packing import *
from tiny import TINY
from reprt import models
from reprt.layers import TokenAndPositionEmbedding

assert keras.backend.backend() == "jax"
embedding = TokenAndPositionEmbedding(vocab_size=5, embedding_dim=4, positional=None)
for wrong_ids in (np.array([[9]]), np.array([[1.0]])):
    try:
        embedding(keras.ops.convert_to_tensor(wrong_ids))
    except ValueError as error:
        assert "ids" in str(error)
    else:
        raise AssertionError(f"{wrong_ids} are no ids of the vocabulary.")
results = {}
for variant, (name, overrides) in JAX_VARIANTS.items():
    sizes = {**TINY, "value_dim": 3, "dropout": 0.0}
    model = models.build(name, 11, 10, **{**sizes, **overrides})
    set_weights_by_formula(model)
    numbers = fit_results(model, random_batch(10, 5), packed=True)
    results[variant] = [float(number) for number in numbers]
results["weighted"] = fit_results(
    set_weights_by_formula(models.build("repe", 11, 10, **sizes)),
    (*random_batch(7, 9), SAMPLE_WEIGHTS["rows"]),
    packed=True,
    size=7,  # Keras weighs a batch by its rows, empty ones among them
)
decoder_only = models.build("decoder-only", 11, 11, **TINY, dropout=0.0)
set_weights_by_formula(decoder_only)
results["decoder-only"] = fit_results(decoder_only, random_batch(10, 5), packed=False)
results["decoder-only"] += test_decoder_only.numbers(decoder_only)
print(json.dumps(results))
"""


@pytest.mark.long
def test_jax_trains_to_the_losses_of_tensorflow(make_model, monkeypatch):
    folder = pathlib.Path(__file__).parent
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    results = json.loads(python(JAX_SCRIPT, folder, folder.parent))
    for variant, (name, overrides) in JAX_VARIANTS.items():
        model = make_model(name, dropout=0.0, **overrides)
        batch = random_batch(10, 5)
        expected = fit_results(model, batch, packed=False, run_eagerly=True)
        assert results[variant] == pytest.approx(expected, abs=1e-4)
    model = make_model("repe", dropout=0.0)
    weighted_batch = (*random_batch(7, 9), SAMPLE_WEIGHTS["rows"])
    expected = fit_results(
        model, weighted_batch, packed=False, size=7, run_eagerly=True
    )
    assert results["weighted"] == pytest.approx(expected, abs=1e-4)
    decoder_only = make_model("decoder-only", value_dim=4, dropout=0.0)
    expected = fit_results(decoder_only, batch, packed=False, run_eagerly=True)
    expected += test_decoder_only.numbers(decoder_only)
    assert results["decoder-only"] == pytest.approx(expected, abs=1e-4)
