"""Pages are written whole, and keep what a person has added to them."""

from pathlib import Path

from reprt.files import read_text, whole_file

NOTES = "notes.md"


def save_figure(figure, path: Path):
    """Writes a picture, whole or not at all; the same one gives the same file.

    Dollars in its text are dollars, and not mathematics.
    """
    import matplotlib
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)
    kind = path.suffix[1:]
    metadata = {"Date": None} if kind == "svg" else {}
    with whole_file(path) as file, matplotlib.rc_context({"svg.hashsalt": "reprt"}):
        figure.savefig(file, format=kind, dpi=120, metadata=metadata)


def new_figure(rows: int, columns: int, figsize, **options):
    """Returns a figure and its axes, of no window or notebook."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=figsize, layout="constrained")
    return figure, figure.subplots(rows, columns, **options)


def notes(folder: Path) -> list[str]:
    """Returns the lines of the folder's `notes.md`, which its page takes in."""
    path = folder / NOTES
    text = read_text(path).strip() if path.exists() else ""
    return [text, ""] if text else []
