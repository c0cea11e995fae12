"""Pages are written whole, and keep what a person has added to them."""

import os
from pathlib import Path

NOTES = "notes.md"


def write_text(path: Path, text: str):
    """Writes a file, whole or not at all."""
    # Several processes may write at the same time.
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def save_figure(figure, path: Path):
    """Writes a picture, whole or not at all, and frees it."""
    import matplotlib.pyplot as plt

    temporary = path.with_name(f"{path.stem}.{os.getpid()}{path.suffix}")
    figure.savefig(temporary, dpi=120)
    plt.close(figure)
    os.replace(temporary, path)


def new_figure(rows: int, columns: int, **options):
    """Returns a figure and its axes, drawn without a screen."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, layout="constrained", **options)


def notes(folder: Path) -> list[str]:
    """Returns the lines of the folder's `notes.md`, which its page takes in."""
    path = folder / NOTES
    text = path.read_text(encoding="utf-8").strip() if path.exists() else ""
    return [text, ""] if text else []
