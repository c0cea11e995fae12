"""Batches whose gradients add up, against the one large batch that they make."""

import pytest
from tiny import assert_same, losses, variables

NO_DROPOUT = {"dropout": 0.0}
TWO_LOSSES = {"name": "translation_and_source", "label_smoothing": 0.1}
CLIPPED_OPTIMIZER = {
    "name": "sgd",
    "global_clipnorm": 0.1,
    "loss_scaling": "dynamic",
}
TOKENS = {"batching": {"name": "tokens"}, "text": {"max_tokens": 24}}


def assert_equal(trainer, name, size, parts, **changes):
    """Compares an epoch's updates with those of batches that are not in parts."""
    batching = changes.pop("batching", {})
    for run, number in (("whole", 1), ("parts", parts)):
        training = trainer(
            run,
            *(name, NO_DROPOUT),
            accumulate=number,
            batching={**batching, "size": size // number},
            **changes,
        )
        inner = getattr(
            training._optimizer, "inner_optimizer", training._optimizer
        )
        # The value of test_trainer.py, which says why.
        inner.epsilon = 1e-2
        training.train_epoch()
        if number == 1:
            reference = training
    for path, variable in training._variables.items():
        # Parts draw dropout of their own.
        if "seed" not in path:
            pair = [variable.numpy()], [reference._variables[path].numpy()]
            assert_same(*pair, 1e-5)
    (row,) = losses(training.folder)
    (expected,) = losses(reference.folder)
    assert row["step"] == expected["step"]
    for column in ("train_loss", "val_loss_per_token", "train_tokens"):
        assert row[column] == pytest.approx(expected[column], rel=1e-5)


@pytest.mark.usefixtures("eagerly")
def test_the_update_is_that_of_the_large_batch(trainer):
    # The last batch has a single sentence.
    assert_equal(trainer, "repe", 16, 4)


@pytest.mark.long
def test_packed_batches_of_tokens_with_two_losses_and_clipping_agree(trainer):
    assert_equal(
        *(trainer, "decoder-only", 96, 3),
        optimizer=CLIPPED_OPTIMIZER,
        objective=TWO_LOSSES,
        **TOKENS,
    )


@pytest.mark.usefixtures("eagerly")
def test_parts_draw_their_own_dropout_and_resume_exactly(trainer):
    settings = {"accumulate": 2, "batching": {"size": 8}}
    training = trainer("run", **settings)
    training.train_epoch()
    continuation = trainer("run", **settings)
    for run in (training, continuation):
        run.train_epoch()
    assert_same(variables(continuation), variables(training))


def test_sparse_gradients_that_stay_apart_are_refused(trainer):
    optimizer = {"sparse_gradients": "squared_apart"}
    with pytest.raises(ValueError, match="'accumulate' in .training., which"):
        trainer("run", accumulate=2, optimizer=optimizer)
    with pytest.raises(ValueError, match="table also makes the logits"):
        trainer("run", model={"output_tying": "projected"}, optimizer=optimizer)
