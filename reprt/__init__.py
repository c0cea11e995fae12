"""Reinforced position embedding (RePE) for Transformers, in Keras 3.

Importing the package registers its classes with Keras, so that
`keras.saving.load_model` finds them. What needs more than Keras and TensorFlow (text,
training, reports) is imported where it is used.
"""

from reprt import data, decoding, layers, losses, metrics, models, schedules
from reprt.translator import Translator

__version__ = "0.1.0"

__all__ = [
    "Translator",
    "data",
    "decoding",
    "layers",
    "losses",
    "metrics",
    "models",
    "schedules",
]
