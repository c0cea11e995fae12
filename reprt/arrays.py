"""Arrays in one file, as NumPy writes them."""

import os
import zipfile
from pathlib import Path

import numpy as np

from reprt.files import opened

MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Reads what `numpy.savez` wrote; an array of objects is never made.

    Args:
        path: the file.

    Raises:
        OSError: if it cannot be read.
        ValueError: if it is damaged or something else.
    """
    # Opened here, because NumPy leaves a damaged file open.
    with opened(path) as file:
        if not zipfile.is_zipfile(file):
            raise ValueError("it is no whole archive of arrays")
        file.seek(0)
        try:
            with np.load(file, allow_pickle=False) as saved:
                size = sum(member.file_size for member in saved.zip.infolist())
                if size > MEMORY:
                    raise ValueError(
                        f"its arrays of {size:,} bytes do not fit in memory"
                    )
                arrays = {name: saved[name] for name in saved.files}
        except Exception as error:  # NumPy, zip and zlib have no common base of errors.
            raise ValueError(f"{type(error).__name__}: {error}") from error
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{name!r} in it is no array")
    return arrays
