"""Training without traces, which for a tiny model take longer than a few steps."""

import contextlib

import pytest


@contextlib.contextmanager
def training():
    """Within it the steps of trainers are not traced; searches are."""
    import tensorflow as tf

    from reprt.training.trainer import Trainer

    def eager(method):
        def call(*arguments, **keywords):
            tf.config.run_functions_eagerly(True)
            try:
                return method(*arguments, **keywords)
            finally:
                tf.config.run_functions_eagerly(False)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("calibrate", "train_epoch", "evaluate"):
            patch.setattr(Trainer, name, eager(getattr(Trainer, name)))
        yield
