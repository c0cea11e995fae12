"""Models made from settings, by name, and from files."""

import zipfile
from pathlib import Path

import keras

from reprt.models.base import TranslationModel
from reprt.models.decoder_only import DecoderOnly
from reprt.models.presets import preset
from reprt.models.recurrent import Recurrent
from reprt.models.transformer import Transformer

# A family: the class of its settings, and of its model.
FAMILIES: dict[type, type[TranslationModel]] = {
    kind.config_class: kind for kind in (Transformer, DecoderOnly, Recurrent)
}


def make(
    settings,
    source_vocab_size,
    target_vocab_size,
    **kwargs,
) -> TranslationModel:
    """Returns the model that settings describe, with its weights made."""
    family = FAMILIES[type(settings)]
    model = family(source_vocab_size, target_vocab_size, settings, **kwargs)
    model.build()
    return model


def build(
    name,
    source_vocab_size,
    target_vocab_size,
    **overrides,
) -> TranslationModel:
    """Returns a model by name, or a variant of it, with its weights made.

    Args:
        name: one of `PRESETS`, such as `"repe"`, the paper's proposed model, or
            `"baseline"`.
        source_vocab_size: number of source ids, padding (0) included.
        target_vocab_size: number of target ids, padding (0) included.
        **overrides: fields of the model's settings, such as those of
            `TransformerConfig`, that differ from the named model's.

    Example: RePE whose decoder cannot look ahead.

    >>> import reprt
    >>> model = reprt.models.build("repe", 100, 90, decoder_statistics="prefix")
    """
    settings = preset(name, **overrides)
    return make(settings, source_vocab_size, target_vocab_size, name=name)


def load_model(path: Path):
    """Returns the model in a `.keras` file, or says what is wrong with the file."""
    if not path.is_file():
        raise ValueError(
            f"Expected a .keras file. There is none at {path}. A run has its "
            "model.keras after its first epoch."
        )
    # Keras would say that there is no file.
    if not zipfile.is_zipfile(path):
        raise ValueError(
            f"{path} cannot be read as a Keras model: it is no whole zip archive."
        )
    try:
        return keras.saving.load_model(path, compile=False)
    # Keras, HDF5 and zip have no common base of errors.
    except Exception as error:
        raise ValueError(
            f"{path} cannot be read as a Keras model: {type(error).__name__}: {error}"
        ) from error
