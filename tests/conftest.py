"""Settings of every test process."""

import os

# Before TensorFlow loads: no greeting, and no look for a GPU that tests do not use.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
