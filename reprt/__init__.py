"""Reinforced position embedding (RePE) for Transformers, in Keras 3.

Keras and its backend are imported where they are needed: the audit of another
framework's model needs neither. Once the package is imported, Keras knows its classes,
so that `keras.saving.load_model` finds them. Imported before Keras and TensorFlow, it
keeps TensorFlow from printing notes of itself.
"""

import sys

from reprt.imports import Followers, import_lazily, request_silence

__version__ = "0.1.0"

_REGISTERED = (
    "layers",
    "losses",
    "metrics",
    "models",
    "optimizers",
    "schedules",
)
_HOMES = {
    name: f"reprt.{name}"
    for name in ("analysis", "data", "decoding", *_REGISTERED)
}
_HOMES["Translator"] = "reprt.decoding.translator"

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
__getattr__ = import_lazily(__name__, _HOMES)

request_silence()
_followers = Followers(f"reprt.{name}" for name in _REGISTERED)
if "keras" in sys.modules:
    _followers.follow()
else:
    sys.meta_path.insert(0, _followers)
