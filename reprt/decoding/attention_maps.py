"""Attention weights of one translation: a picture of them all, a page to explore."""

import dataclasses
import json
import os
import textwrap
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import numpy as np

from reprt.files import whole_file, write_text

# Whose tokens are the queries, and whose the keys.
SIDES = {
    "encoder": ("source", "source"),
    "decoder": ("target", "target"),
    "cross": ("target", "source"),
    "sequence": ("both", "both"),
}
TITLES = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Cross attention, from the target (rows) to the source (columns)",
    "sequence": "Self-attention of source and target, one sequence",
}
TOLERANCE = 1e-3  # by which rounding may take a weight past 1

# The picture's measures, in inches; its fonts are in points.
LEGIBLE = 40  # tokens along an axis; above these it has numbers
LONGEST = 14  # characters of a token
GAP = 0.12
CELL = 0.1  # at least, where it has a label
ROOMY = 0.15  # at most, where the maps of all heads are narrower than WIDTH
WIDTH = 4
FONT = 6.5
POINT = 1 / 72
LETTER = 0.62 * POINT  # width of one, for each point of its font


# Arrays have no single truth value, as equality and a hash would need.
@dataclasses.dataclass(frozen=True, eq=False)
class AttentionMaps:
    """The attention weights with which a model made one translation.

    With N layers, H heads, S source and T target tokens; weights are kept as float32.
    A model has some of the kinds of attention; the others are None.

    Args:
        source: the source's tokens.
        target: the target's input tokens, the start token first.
        sentence: the source as text.
        translation: the translation as text.
        model: the model's name.
        encoder: weights of the encoder's self-attention, `(N, H, S, S)`, queries
            before keys.
        decoder: those of the decoder's self-attention, `(N, H, T, T)`.
        cross: those of the decoder's attention to the encoder, `(N, H, T, S)`.
        sequence: those within source and target as one sequence, `(N, H, S + T,
            S + T)`.

    Raises:
        ValueError: if there is no token or no kind, an array does not have its shape,
            or something in it is no weight.

    Example:

    >>> import numpy as np
    >>> maps = AttentionMaps(
    ...     source=["olá", "mundo"],
    ...     target=["[START]", "hello", "world"],
    ...     sentence="olá mundo",
    ...     translation="hello world",
    ...     model="repe",
    ...     encoder=np.full((1, 4, 2, 2), 1 / 2),
    ...     decoder=np.full((1, 4, 3, 3), 1 / 3),
    ...     cross=np.full((1, 4, 3, 2), 1 / 2),
    ... )
    >>> maps.kinds
    ('encoder', 'decoder', 'cross')
    """

    source: Sequence[str]
    target: Sequence[str]
    sentence: str
    translation: str
    model: str
    encoder: np.ndarray | None = None
    decoder: np.ndarray | None = None
    cross: np.ndarray | None = None
    sequence: np.ndarray | None = None

    def __post_init__(self):
        for side in ("source", "target"):
            object.__setattr__(self, side, tuple(getattr(self, side)))
            if not getattr(self, side):
                raise ValueError(f"Expected `{side}` to have tokens. Received: none.")
        if not self.kinds:
            raise ValueError(
                f"Expected weights of some of the kinds {tuple(SIDES)}. Received: none."
            )
        for kind in self.kinds:
            weights = np.asarray(getattr(self, kind), "float32")
            object.__setattr__(self, kind, weights)
            self._check(kind, weights)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of attention that the model has."""
        return tuple(kind for kind in SIDES if getattr(self, kind) is not None)

    @property
    def both(self) -> Sequence[str]:
        """The tokens of source and target, one after the other."""
        return (*self.source, *self.target)

    def _check(self, kind, weights):
        # Layers and heads of all kinds are those of the first.
        first = getattr(self, self.kinds[0])
        leading = first.shape[:2] if first.ndim == 4 else ("N", "H")
        expected = (*leading, *(len(tokens) for tokens in self.tokens(kind)))
        if weights.shape != expected or 0 in expected:
            raise ValueError(
                f"Expected `{kind}` to have the shape (layers, heads, queries, keys), "
                f"here ({', '.join(map(str, expected))}), none of them 0. Received: "
                f"{weights.shape}."
            )
        low, high = weights.min(), weights.max()
        if not (low >= 0 and high <= 1 + TOLERANCE):  # so that NaN fails, too
            raise ValueError(
                f"Expected the weights of `{kind}` to lie between 0 and 1. Received: "
                f"weights from {low} to {high}."
            )

    def tokens(self, kind: str) -> tuple[Sequence[str], Sequence[str]]:
        """The queries and the keys of one of the kinds."""
        queries, keys = SIDES[kind]
        return getattr(self, queries), getattr(self, keys)


def write_page(maps: AttentionMaps, path: str | os.PathLike) -> Path:
    """Writes an interactive page that needs nothing but itself.

    What it shows is in its address, so that a view can be kept and shared:
    `attention.html#kind=cross&layer=2&head=3&mode=heat&threshold=0.2`. Layers and heads
    count from 1; `head` may also be `all`, side by side, or `mean`. Weights are rounded
    to four decimals. It begins with all heads of the first layer, in the last of the
    model's kinds.

    Args:
        maps: the weights to show.
        path: the file to write.

    Returns:
        The path.

    Raises:
        OSError: if the file cannot be written.

    Example:

    >>> import tempfile, numpy as np
    >>> one = np.ones((1, 1, 1, 1))
    >>> maps = AttentionMaps(["olá"], ["[START]"], "olá", "hello", "repe", cross=one)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(maps, f"{folder}/attention.html").name
    'attention.html'
    """
    data = dict(vars(maps))
    for kind in maps.kinds:
        data[kind] = data[kind].astype("float64").round(4).tolist()
    # A browser looks for an end of the script, or a comment, in strings too.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    template = resources.files("reprt.decoding").joinpath("attention_page.html")
    page = template.read_text("utf-8").replace("{{data}}", text)
    write_text(Path(path), page)
    return Path(path)


def draw(maps: AttentionMaps, path: str | os.PathLike) -> Path:
    """Draws every layer and head as a heat map, all in one PNG.

    Colours stand for the weights' square roots, so that a long sentence's small
    weights do not all look like 0. Characters that the font lacks are written as
    escapes.

    Args:
        maps: the weights to show.
        path: the file to write.

    Returns:
        The path.

    Raises:
        ImportError: if matplotlib is not installed.
        OSError: if the file cannot be written.

    Example:

    >>> import tempfile, numpy as np
    >>> one = np.ones((1, 1, 1, 1))
    >>> maps = AttentionMaps(["olá"], ["[START]"], "olá", "hello", "repe", cross=one)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     draw(maps, f"{folder}/attention.png").name
    'attention.png'
    """
    # Not pyplot: nobody's figures, styles or windows are touched.
    from matplotlib.figure import Figure

    # Places are in inches, down from 0; in the end the file is cut to what is drawn.
    figure = Figure(figsize=(1, 1), dpi=100)
    _Grid(maps, figure).draw()
    with whole_file(Path(path)) as file:
        figure.savefig(file, format="png", bbox_inches="tight", pad_inches=0.2)
    return Path(path)


class _Grid:
    """Draws heat maps, a row for each layer and a column for each head."""

    def __init__(self, maps, figure):
        from matplotlib.colors import PowerNorm
        from matplotlib.font_manager import FontProperties, findfont, get_font

        self.maps, self.figure = maps, figure
        self.norm = PowerNorm(0.5, 0, 1)
        self.glyphs = get_font(findfont(FontProperties())).get_charmap()
        longest = max(len(side) for kind in maps.kinds for side in maps.tokens(kind))
        heads = getattr(maps, maps.kinds[0]).shape[1]
        roomy = min(ROOMY, WIDTH / (heads * longest))
        self.cell = min(max(CELL, 1.2 / longest, roomy), CELL * LEGIBLE / longest)
        self.token_font = FONT * min(max(1, self.cell / CELL), 1.3)
        # Beside large maps, what is not bound to a token has room to be larger.
        self.font = FONT * max(1.2, self.cell * longest / 2)

    def draw(self):
        maps = self.maps
        heading = f"Attention of {maps.model}: {maps.sentence} → {maps.translation}"
        down = 0.0
        for kind in maps.kinds:
            down -= 3.5 * self.font * POINT
            self.figure.text(
                0, down, TITLES[kind], fontsize=1.4 * self.font, weight="bold"
            )
            down = self._section(kind, down - 2.5 * self.font * POINT)
        right = max(axes.get_position().x1 for axes in self.figure.axes)
        line = max(60, int(right / (LETTER * 1.4 * self.font)))
        self.figure.text(
            0,
            0,
            textwrap.fill(self._legible(heading), line),
            fontsize=1.4 * self.font,
            parse_math=False,
        )
        self._colour_bar(right + 2 * GAP)

    def _section(self, kind, top) -> float:
        """Draws the maps of one kind, from `top` down to what it returns."""
        weights, sides = getattr(self.maps, kind), self.maps.tokens(kind)
        queries, keys = ([self._label(token) for token in side] for side in sides)
        least = 6 * self.font * POINT  # room for the names of heads and layers
        width = max(least, len(keys) * self.cell)
        height = max(least, len(queries) * self.cell)
        layers, heads = weights.shape[:2]
        bottom = top - layers * (height + GAP)
        for layer, head in np.ndindex(layers, heads):
            corner = head * (width + GAP), top - (layer + 1) * (height + GAP)
            axes = self.figure.add_axes((*corner, width, height))
            axes.imshow(
                weights[layer, head],
                cmap="magma_r",
                norm=self.norm,
                aspect="auto",
                interpolation="nearest",
                # Tokens count from 1.
                extent=(0.5, len(keys) + 0.5, len(queries) + 0.5, 0.5),
            )
            self._ticks(axes.xaxis, keys, layer == layers - 1, rotation=90)
            self._ticks(axes.yaxis, queries, head == 0)
            if kind == "sequence":  # a border between the source and the target
                border = {"color": "grey", "linewidth": 0.7, "linestyle": ":"}
                axes.axhline(len(self.maps.source) + 0.5, **border)
                axes.axvline(len(self.maps.source) + 0.5, **border)
            if layer == 0 and heads > 1:
                axes.set_title(f"head {head + 1}", fontsize=self.font, pad=3)
            if head == 0 and layers > 1:
                axes.set_ylabel(f"layer {layer + 1}", fontsize=self.font)
        below = max(map(len, keys)) if len(keys) <= LEGIBLE else 2
        return bottom - below * LETTER * self.token_font

    def _ticks(self, axis, labels, outer, rotation=0):
        axis.set_tick_params(labelsize=self.font, length=2, pad=2)
        if not outer:
            axis.set_ticks([])
        elif len(labels) <= LEGIBLE:
            places = range(1, len(labels) + 1)
            # Dollars are dollars, not mathematics.
            axis.set_ticks(
                places,
                labels,
                rotation=rotation,
                fontsize=self.token_font,
                parse_math=False,
            )

    def _colour_bar(self, left):
        """Draws the scale beside the first kind's maps."""
        first = self.figure.axes[0]
        kind = getattr(self.maps, self.maps.kinds[0])
        last = self.figure.axes[kind[..., 0, 0].size - 1]
        top, bottom = first.get_position().y1, last.get_position().y0
        size = self.font * POINT
        height = min(20 * size, top - bottom)
        axes = self.figure.add_axes((left, top - height, 1.5 * size, height))
        bar = self.figure.colorbar(
            first.images[0], cax=axes, ticks=[0, 0.01, 0.05, 0.2, 0.5, 1]
        )
        bar.ax.set_yticklabels(["0", "0.01", "0.05", "0.2", "0.5", "1"])
        bar.set_label("weight", fontsize=self.font)
        bar.ax.tick_params(labelsize=self.font)

    def _label(self, token):
        # The sign of a word's beginning is a block that would touch its neighbours.
        text = self._legible(token.replace("▁", "_"))
        return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"

    def _legible(self, text):
        """The text, with escapes for what the font has no glyph for."""
        return "".join(
            letter
            if letter.isprintable() and ord(letter) in self.glyphs
            else letter.encode("unicode_escape").decode()
            for letter in text
        )
