"""Reading models from files."""

import zipfile
from pathlib import Path

import keras


def load_model(path: Path):
    """Returns the model in a `.keras` file, or says what is wrong with the file."""
    if not path.is_file():
        raise ValueError(
            f"Expected a .keras file. There is none at {path}. A run has its "
            "model.keras after its first epoch."
        )
    if not zipfile.is_zipfile(
        path
    ):  # of which Keras says that there is no file
        raise ValueError(
            f"{path} cannot be read as a Keras model: it is no whole zip archive."
        )
    try:
        return keras.saving.load_model(path, compile=False)
    except (
        Exception
    ) as error:  # Keras, HDF5 and zip have no common base of errors.
        raise ValueError(
            f"{path} cannot be read as a Keras model: {type(error).__name__}: {error}"
        ) from error
