"""The training loop, on TensorFlow and on JAX."""

EVALUATION_COST = 0.4  # of a batch, in training steps
