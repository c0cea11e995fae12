"""Pages are written whole, and keep what a person has added to them."""

from pathlib import Path

from reprt.data.whole_file import whole_file

NOTES = "notes.md"


def write_text(path: Path, text: str):
    """Writes a file, whole or not at all."""
    with whole_file(path) as file:
        file.write(text.encode())


def save_figure(figure, path: Path):
    """Writes a picture, whole or not at all, and frees it."""
    import matplotlib.pyplot as plt

    with whole_file(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=120)
    plt.close(figure)


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
