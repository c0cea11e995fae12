"""Settings of every test process."""

import os

import pytest

# Before TensorFlow loads: no greeting, and no look for a GPU that tests do not use.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")


@pytest.fixture(autouse=True, scope="module")
def no_determinism_is_left():
    """What one file's trainings have asked of TensorFlow, XLA refuses in the next."""
    from tensorflow.python.framework import config

    config.disable_op_determinism()
