"""Batches whose gradients add up, against the one large batch that they make."""

import pytest
from tiny import assert_same, losses, variables

NO_DROPOUT = {"dropout": 0.0}
TWO_LOSSES = {"name": "translation_and_source", "label_smoothing": 0.1}
CLIPPED = {"name": "sgd", "global_clipnorm": 0.1, "loss_scaling": "dynamic"}
TOKENS = {"batching": {"name": "tokens"}, "text": {"max_tokens": 24}}


def assert_equal(trainer, name, size, parts, **changes):
    """Compares an epoch's updates with those of batches that are not in parts."""
    batching = changes.pop("batching", {})
    for run, number in (("whole", 1), ("parts", parts)):
        ours = trainer(
            run,
            *(name, NO_DROPOUT),
            accumulate=number,
            batching={**batching, "size": size // number},
            **changes,
        )
        inner = getattr(ours._optimizer, "inner_optimizer", ours._optimizer)
        # The value of test_trainer.py, which says why.
        inner.epsilon = 1e-2
        ours.train_epoch()
        if number == 1:
            whole = ours
    for path, variable in ours._variables.items():
        # Parts draw dropout of their own.
        if "seed" not in path:
            pair = [variable.numpy()], [whole._variables[path].numpy()]
            assert_same(*pair, 1e-5)
    (ours,), (whole,) = losses(ours.folder), losses(whole.folder)
    assert ours["step"] == whole["step"]
    for column in ("train_loss", "val_loss_per_token", "train_tokens"):
        assert ours[column] == pytest.approx(whole[column], rel=1e-5)


@pytest.mark.usefixtures("eagerly")
def test_the_update_is_that_of_the_large_batch(trainer):
    # The last batch has a single sentence.
    assert_equal(trainer, "repe", 16, 4)


@pytest.mark.long
def test_packed_batches_of_tokens_with_two_losses_and_clipping_agree(trainer):
    assert_equal(
        *(trainer, "decoder-only", 96, 3),
        optimizer=CLIPPED,
        objective=TWO_LOSSES,
        **TOKENS,
    )


@pytest.mark.usefixtures("eagerly")
def test_parts_draw_their_own_dropout_and_resume_exactly(trainer):
    asked = {"accumulate": 2, "batching": {"size": 8}}
    ours = trainer("run", **asked)
    ours.train_epoch()
    again = trainer("run", **asked)
    for each in (ours, again):
        each.train_epoch()
    assert_same(variables(again), variables(ours))


def test_sparse_gradients_that_stay_apart_are_refused(trainer):
    apart = {"sparse_gradients": "squared_apart"}
    with pytest.raises(ValueError, match="'accumulate' in .training., which"):
        trainer("run", accumulate=2, optimizer=apart)
