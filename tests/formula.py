"""Weights set by a formula instead of a seed, so that no generator can change them."""

import numpy as np


def array_by_formula(shape, offset=0.0, scale=0.3):
    """Smooth values of both signs, no two neighbours alike."""
    numbers = np.arange(np.prod(shape), dtype="float64")
    return (
        (scale * np.sin(1.7 * numbers + offset))
        .reshape(shape)
        .astype("float32")
    )


def perturb_weights(model):
    """Moves weights so far that each token leaves its mark on all that come after."""
    generator = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(weight + 0.5 * generator.normal(size=weight.shape))
    return model


def set_weights_by_formula(layer):
    for number, weight in enumerate(layer.weights):
        values = array_by_formula(tuple(weight.shape), offset=number)
        # A single number is attention's scale, without which all scores are alike. The
        # empty shape of TensorFlow is true, that of JAX is not.
        weight.assign(values if len(weight.shape) else 2.0 + values)
    return layer
