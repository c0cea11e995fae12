"""What pages share: their pictures, and the notes that a person has added."""

from collections.abc import Sequence
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


def label_points(axis, points: Sequence[tuple[float, float, str, str]]):
    """Writes a label beside the right edge for each point, and a line that leads to it.

    Labels keep their order and a distance from each other, so that all can be read.

    Args:
        axis: with its points drawn and its scales set.
        points: x, y, the label and its colour.
    """
    distance = 0.065  # of the axis' height
    axis.autoscale_view()
    inside = axis.transData.transform
    down = axis.transAxes.inverted().transform
    placed = sorted((down(inside((x, y)))[1], x, y, *rest) for x, y, *rest in points)
    heights = [each[0] for each in placed]
    for index in range(1, len(heights)):
        heights[index] = max(heights[index], heights[index - 1] + distance)
    highest = 0.98
    for index in reversed(range(len(heights))):
        heights[index] = min(heights[index], highest)
        highest = heights[index] - distance
    for height, (_, x, y, label, colour) in zip(heights, placed):
        axis.annotate(
            label,
            (x, y),
            xytext=(1.04, height),
            textcoords="axes fraction",
            color=colour,
            fontsize=8,
            va="center",
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "alpha": 0.4,
                "lw": 0.8,
                "relpos": (0, 0.5),
            },
        )


def notes(folder: Path) -> list[str]:
    """Returns the lines of the folder's `notes.md`, which its page takes in."""
    path = folder / NOTES
    text = read_text(path).strip() if path.exists() else ""
    return [text, ""] if text else []
