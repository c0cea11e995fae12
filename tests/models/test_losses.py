import keras
import numpy as np
import pytest
import tensorflow as tf
from formula import array_by_formula

from reprt.losses import MaskedCrossentropy
from reprt.metrics import TokenAccuracy
from reprt.schedules import WarmupSchedule

LOGITS = array_by_formula((2, 4, 6), scale=3.0)
LABELS = np.array([[1, 5, 0, 0], [2, 2, 4, 0]])


def reference_results(labels, logits):
    losses, hits = [], []
    for row, row_logits in zip(labels, logits.astype("float64")):
        for label, scores in zip(row, row_logits):
            if label:
                losses.append(np.log(np.exp(scores).sum()) - scores[label])
                hits.append(scores.argmax() == label)
    return losses, hits


def test_loss_is_the_mean_over_real_tokens():
    losses, _ = reference_results(LABELS, LOGITS)
    loss = MaskedCrossentropy()
    forbidding_logits = np.where(
        np.arange(6) == 0, -np.inf, LOGITS
    )  # a padding that is forbidden
    for padding, logits in (
        (0, LOGITS),
        (-1, LOGITS),
        (-100, LOGITS),
        (0, forbidding_logits),
    ):
        mean = float(loss(np.where(LABELS, LABELS, padding), logits))
        losses, _ = reference_results(LABELS, logits)
        assert mean == pytest.approx(np.mean(losses), rel=1e-6)
    losses, _ = reference_results(LABELS, LOGITS)
    total, count = loss.sum_and_count(LABELS, LOGITS)
    assert float(total) == pytest.approx(np.sum(losses), rel=1e-6)
    assert float(count) == len(losses)


def test_gradient_agrees_with_keras_own():
    def gradient(loss):
        logits = tf.constant(LOGITS)
        with tf.GradientTape() as tape:
            tape.watch(logits)
            total = tf.reduce_sum(loss(logits) * LABELS)
        return tape.gradient(total, logits).numpy()

    gradients = gradient(
        lambda logits: MaskedCrossentropy().call(LABELS, logits)
    )
    expected = gradient(
        lambda logits: keras.losses.sparse_categorical_crossentropy(
            LABELS, logits, from_logits=True
        )
    )
    np.testing.assert_allclose(gradients, expected, atol=1e-6)


def test_second_derivatives_in_a_graph_are_those_outside():
    weights = tf.Variable(array_by_formula((3, 6)), dtype="float32")
    x = tf.constant(array_by_formula((2, 4, 3)), "float32")

    def penalty_gradient():
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                loss = MaskedCrossentropy()(LABELS, x @ weights)
            penalty = tf.reduce_sum(inner.gradient(loss, weights) ** 2)
        return outer.gradient(penalty, weights)

    expected = penalty_gradient()
    np.testing.assert_allclose(
        tf.function(penalty_gradient)(), expected, rtol=1e-5, atol=1e-7
    )


def test_weights_of_sentences_count_for_all_their_tokens():
    weights = np.array([0.5, 0.0])
    token_weights = np.broadcast_to(weights[:, None], LABELS.shape)
    for sample_weight in (weights, token_weights):
        losses, hits = reference_results(LABELS[:1], LOGITS[:1])
        loss = MaskedCrossentropy()(LABELS, LOGITS, sample_weight=sample_weight)
        assert float(loss) == pytest.approx(np.mean(losses), rel=1e-6)
        metric = TokenAccuracy()
        metric.update_state(LABELS, LOGITS, sample_weight=sample_weight)
        assert float(metric.result()) == pytest.approx(np.mean(hits))


def test_labels_are_exact_whatever_keras_own_dtype():
    logits = 20 * np.eye(5000, dtype="float32")[None, [4001]]
    keras.config.set_floatx("bfloat16")
    try:
        loss = MaskedCrossentropy()
    finally:
        keras.config.set_floatx("float32")
    assert float(loss(np.array([[4001]]), logits)) < 0.01


def test_padding_alone_has_loss_zero():
    assert float(MaskedCrossentropy()(0 * LABELS, LOGITS)) == 0
    assert float(MaskedCrossentropy()(LABELS[:0], LOGITS[:0])) == 0


def test_shapes_that_do_not_match_are_named():
    with pytest.raises(ValueError, match=r"\(2, 4\) and \(2, 6\)"):
        MaskedCrossentropy()(LABELS, LOGITS[:, 0])
    with pytest.raises(ValueError, match="its inputs shifted by one"):
        MaskedCrossentropy()(LABELS[:, :1], LOGITS)


def test_accuracy_counts_real_tokens_over_all_batches():
    _, hits = reference_results(LABELS, LOGITS)
    metric = TokenAccuracy()
    assert float(metric.result()) == 0
    metric.update_state(LABELS[:1], LOGITS[:1])
    metric.update_state(LABELS[1:], LOGITS[1:])
    assert float(metric.result()) == pytest.approx(np.mean(hits))
    metric.reset_state()
    metric.update_state(LABELS, LOGITS, sample_weight=0 * LABELS)
    assert float(metric.result()) == 0


@pytest.mark.parametrize("dim, arguments", [(64, ()), (128, ()), (64, (200,))])
def test_schedule_is_equation_15(dim, arguments):
    schedule = WarmupSchedule.from_config(
        WarmupSchedule(dim, *arguments).get_config()
    )
    warmup = arguments[0] if arguments else 4000
    for step in (1, 100, warmup, warmup + 1, 50_000):
        expected = dim**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert float(schedule(step)) == pytest.approx(expected, rel=1e-5)
    assert float(schedule(0)) == 0


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"embedding_dim": 64, "peak": 1e-3}, "one of embedding_dim and peak"),
        ({"embedding_dim": -64}, "to be positive.* embedding_dim=-64"),
        ({"peak": 0.0}, "to be positive.* peak=0.0"),
    ],
)
def test_a_schedule_without_a_rate_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        WarmupSchedule(**arguments)
