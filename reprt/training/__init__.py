"""The training loop, on TensorFlow and on JAX."""
