"""Reinforced position embedding (RePE) for Transformers, in Keras 3.

Importing the package registers its classes with Keras, so that
`keras.saving.load_model` finds them. What needs more than Keras and TensorFlow (text,
training, the laboratory) is imported where it is used. Imported before Keras and
TensorFlow, it keeps TensorFlow from printing notes of itself.
"""

from reprt.imports import ask_for_quiet, lazily, load_keras, quietly

__version__ = "0.1.0"

__all__ = [
    "Translator",
    "analysis",
    "data",
    "decoding",
    "layers",
    "losses",
    "metrics",
    "models",
    "schedules",
]

_HOMES = {name: f"reprt.{name}" for name in ("analysis", "data", "decoding")}
__getattr__ = lazily(
    __name__, _HOMES | {"Translator": "reprt.decoding.translator"}
)

ask_for_quiet()
with quietly():
    load_keras()
    from reprt import layers, losses, metrics, models, schedules
