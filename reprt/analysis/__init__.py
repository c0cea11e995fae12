"""What a trained model knows: losses, scores, and whether it looks ahead."""

import importlib

# Where each name comes from. Counting what a training costs needs no Keras.
_HOMES = {
    "Audit": "lookahead",
    "Evaluation": "evaluation",
    "audit": "lookahead",
    "evaluate": "evaluation",
    "log_probabilities": "evaluation",
    "prefix_loss": "evaluation",
    "teacher_forced_loss": "evaluation",
    "translation_scores": "evaluation",
}
__all__ = [*_HOMES]


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
