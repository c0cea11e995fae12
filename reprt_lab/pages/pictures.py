"""What the pictures of pages have in common."""

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from reprt.files import whole_file
from reprt_lab.pages.frame import Group

# Okabe and Ito's colours, which the colour-blind can tell apart, without yellow.
PALETTE = "#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #000000".split()


def colours(groups: Iterable[Group]) -> dict[str, str]:
    """Returns the colours of the models that a picture shows, by their labels."""
    chosen = {}
    labels: dict[str, None] = {}
    for group in groups:
        labels[group.label] = None
        if group.run.look.colour:
            chosen[group.label] = group.run.look.colour
    return chosen or dict(zip(labels, itertools.cycle(PALETTE)))


def new_figure(title, rows, columns, figsize, **options):
    figure = Figure(figsize=figsize, layout="constrained")
    figure.suptitle(title, fontsize=10)
    return figure, figure.subplots(rows, columns, **options)


def dots(axis, name, values, colour, fillstyle="full"):
    """Draws a dot for each value, in the row of a name."""
    rows = [name] * len(values)
    axis.plot(
        values,
        rows,
        "o",
        color=colour,
        fillstyle=fillstyle,
    )


def finish_axis(axis, title: str, below: str):
    axis.set_title(title, loc="left", fontsize=9)
    axis.set_xlabel(below)
    axis.grid(alpha=0.3, which="both")


def add_legend(figure, labels: Mapping[str, str]):
    """Says below all axes which label has which colour."""
    patches = []
    for label, colour in labels.items():
        patches.append(Patch(color=colour, label=label))
    figure.legend(
        handles=patches,
        loc="outside lower center",
        ncols=2,
        fontsize=9,
    )


def save_figure(figure, path: Path):
    """Writes a picture, whole or not at all; the same one gives the same file."""
    with whole_file(path) as file:
        figure.savefig(file, format="png", dpi=120)
