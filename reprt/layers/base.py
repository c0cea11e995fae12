"""The base of all layers, and layers that several others hold."""

import keras

from reprt.layers.dropout import Dropout


class Layer(keras.layers.Layer):
    """A layer whose output has the shape, and the attached mask, of its first input.

    `parts` names the constructor's arguments that are layers themselves, or None.
    """

    parts: tuple[str, ...] = ()

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def compute_output_shape(self, *shapes, **named_shapes):
        # `summary` gives the shapes the names that `build` has for them.
        first, *_ = [*shapes, *named_shapes.values()]
        return tuple(first)

    def compute_output_spec(self, *args, **kwargs):
        # Keras would ask `compute_output_shape`, which does not know of attention
        # scores. This asks the call.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        for name in cls.parts:
            config[name] = keras.saving.deserialize_keras_object(
                config.get(name)
            )
        return super().from_config(config)

    def _dropout(self, rate, name="dropout"):
        return Dropout(rate, dtype=self.dtype_policy, name=name)

    def _check_tokens(self, shape):
        if len(shape) != 3 or shape[-1] is None:
            raise ValueError(
                f"{type(self).__name__} expects an input of shape (batch, tokens, "
                f"features) with known features. Received: shape={tuple(shape)}."
            )


def count_holder(name, layer, kind=keras.layers.Layer):
    """Counts one more holder of a layer, a `kind` or None, and returns the layer.

    `name` is that of the argument, for the error.
    """
    if layer is None:
        return None
    if not isinstance(layer, kind):
        raise ValueError(
            f"Expected `{name}` to be an object of the class {kind.__name__}, or None. "
            f"Received: {layer!r}."
        )
    layer.holders = getattr(layer, "holders", 0) + 1
    return layer


def serialize(layer):
    """Returns what `keras.saving.deserialize_keras_object` makes the layer of."""
    config = keras.saving.serialize_keras_object(layer)
    # An embedding may also make the logits, outside of the layers that hold it.
    embeds = isinstance(layer, keras.layers.Embedding)
    if layer is not None and (embeds or layer.holders > 1):
        # Keras' own mark of a shared layer, which it sets too late on the first holder.
        config["shared_object_id"] = id(layer)
    return config
