"""Layers that several others hold, as configurations tell them."""

import keras


def held(layer):
    """Returns a layer after one more has taken it."""
    if layer is not None:
        layer.holders = getattr(layer, "holders", 0) + 1
    return layer


def serialized(layer):
    """Returns what `keras.saving.deserialize_keras_object` makes the layer of."""
    config = keras.saving.serialize_keras_object(layer)
    if layer is not None and layer.holders > 1:
        # As Keras itself marks what is shared; it marks the first of them too late.
        config["shared_object_id"] = id(layer)
    return config
