"""What layers tell of themselves, and of layers that several others hold."""

import inspect

import keras
from keras.src.backend.common.masking import get_keras_mask
from keras.src.utils.python_utils import default


class ConfiguredLayer(keras.layers.Layer):
    """A layer whose configuration is its arguments, kept under their own names.

    Those of its base classes count too. `parts` names those that are layers or None.
    """

    parts: tuple[str, ...] = ()

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def _dropout(self, rate, name="dropout"):
        return keras.layers.Dropout(rate, dtype=self.dtype_policy, name=name)

    def _check_tokens(self, shape):
        if len(shape) != 3 or shape[-1] is None:
            raise ValueError(
                f"{type(self).__name__} expects an input of shape (batch, tokens, "
                f"features) with known features. Received: shape={tuple(shape)}."
            )

    @classmethod
    def arguments(cls):
        """The names of the constructor's arguments, its base classes' too."""
        return {
            name: None
            for kind in cls.__mro__
            if issubclass(kind, ConfiguredLayer)
            for name, each in inspect.signature(kind.__init__).parameters.items()
            if name != "self" and each.kind is not each.VAR_KEYWORD
        }

    @classmethod
    def of_model(cls, config, side, **kwargs):
        """Returns a model's layer, with the settings that it has arguments for."""
        known = {
            **dict(config),
            "max_length": config.longest_sequence,
            "dim": config.position_dim,
            "both_directions": side == "encoder",
            "statistics": getattr(config, f"{side}_statistics"),
        }
        own = {name: known[name] for name in cls.arguments() if name in known}
        return cls(**own, **kwargs)

    @default  # which symbolic calls do not ask
    def compute_output_shape(self, *shapes, **by_name):
        return tuple([*shapes, *by_name.values()][0])

    def compute_mask(self, x, mask=None):
        # What Keras attached to the input stays; what is given as an argument does not.
        return get_keras_mask(x)

    def get_config(self):
        names = self.arguments()
        # Keras notes plain arguments; a user's layer may keep them under other names.
        noted = self._auto_config.config if self._auto_config else {}
        own = {name: noted[name] for name in names if name in noted}
        for name in names:
            kept = getattr(self, name, None)
            # A layer made from the argument, such as a Dropout, is not the argument.
            made = isinstance(kept, keras.layers.Layer) and name not in self.parts
            if hasattr(self, name) and not (made and name in noted):
                own[name] = kept
        parts = {name: serialized(own[name]) for name in self.parts if name in own}
        return {**own, **super().get_config(), **parts}

    @classmethod
    def from_config(cls, config):
        made = keras.saving.deserialize_keras_object
        return cls(**{**config, **{name: made(config.get(name)) for name in cls.parts}})


def held(layer, kind=keras.layers.Layer):
    """Counts one more holder of a layer and returns it, a `kind` or None."""
    if layer is not None:
        if not isinstance(layer, kind):
            raise ValueError(
                f"Expected a {kind.__name__}, an object and no name, or None. Received:"
                f" {layer!r}."
            )
        layer.holders = getattr(layer, "holders", 0) + 1
    return layer


def serialized(layer):
    """Returns what `keras.saving.deserialize_keras_object` makes the layer of."""
    config = keras.saving.serialize_keras_object(layer)
    embeds = isinstance(layer, keras.layers.Embedding)  # perhaps the output as well
    if layer is not None and (embeds or layer.holders > 1):
        # Keras' own mark of a shared layer, which it sets too late on the first holder.
        config["shared_object_id"] = id(layer)
    return config
