"""What the pictures of pages have in common."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from reprt.files import whole_file
from reprt_lab.records import Run

# Okabe and Ito's colours, which the colour-blind can tell apart, without yellow.
PALETTE = "#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #000000".split()


def colours(runs: Sequence[Run]) -> dict[str, str]:
    """Returns the colours of the models that a picture shows, by their labels."""
    given = {run.label: run.look.colour for run in runs if run.look.colour}
    labels = dict.fromkeys(run.label for run in runs)
    return given or dict(zip(labels, itertools.cycle(PALETTE)))


def new_figure(title: str, rows: int, columns: int, figsize, **options):
    figure = Figure(figsize=figsize, layout="constrained")
    figure.suptitle(title, fontsize=10)
    return figure, figure.subplots(rows, columns, **options)


def draw_log(axis, run: Run, loss: str, style: str, **look):
    epochs, losses = zip(*((row["epoch"], row[loss]) for row in run.log))
    axis.plot(epochs, losses, style, **look)


def finish_axis(axis, title: str, below: str):
    axis.set_title(title, loc="left", fontsize=9)
    axis.set_xlabel(below)
    axis.grid(alpha=0.3, which="both")


def add_legend(figure, labels: Mapping[str, str]):
    """Says below all axes which label has which colour."""
    lines = [
        Line2D([], [], color=colour, linewidth=3) for colour in labels.values()
    ]
    figure.set_figheight(
        figure.get_figheight() + 0.11 * max(0, len(labels) - 20)
    )
    figure.legend(
        lines, labels, loc="outside lower center", ncols=2, fontsize=9
    )


def save_figure(figure, path: Path):
    """Writes a picture, whole or not at all; the same one gives the same file."""
    for text in figure.findobj(Text):
        text.set_parse_math(False)  # dollars in names are dollars
    with whole_file(path) as file:
        figure.savefig(file, format="png", dpi=120)
