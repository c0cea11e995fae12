"""Training without traces and packing, which take long where models are tiny."""

import contextlib

import pytest


def unpack(patch):
    """Lets trainers of every family leave batches padded, until the patch is undone."""
    from reprt.models import FAMILIES

    for family in FAMILIES.values():
        patch.setattr(family, "packed_layout", None)


@contextlib.contextmanager
def training():
    """Within it trainers neither trace nor pack; searches are traced."""
    import tensorflow as tf

    from reprt.training.trainer import Trainer

    def run_eagerly(method):
        def call(*arguments, **keywords):
            tf.config.run_functions_eagerly(True)
            try:
                return method(*arguments, **keywords)
            finally:
                tf.config.run_functions_eagerly(False)

        return call

    with pytest.MonkeyPatch.context() as patch:
        unpack(patch)
        for name in ("calibrate", "train_epoch", "evaluate"):
            patch.setattr(Trainer, name, run_eagerly(getattr(Trainer, name)))
        yield
