"""Training without traces and packing, which take long where models are tiny."""

import contextlib

import pytest


@contextlib.contextmanager
def training():
    """Within it trainers neither trace nor pack; searches are traced."""
    import tensorflow as tf

    from reprt.models import DecoderOnly, Recurrent, Transformer
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
        for family in (Transformer, DecoderOnly, Recurrent):
            patch.setattr(family, "packed_layout", None)
        for name in ("calibrate", "train_epoch", "evaluate"):
            patch.setattr(Trainer, name, eager(getattr(Trainer, name)))
        yield
