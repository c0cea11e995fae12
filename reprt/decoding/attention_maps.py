"""Attention weights of one translation: a page to explore, a picture of a layer."""

import dataclasses
import json
import math
import os
import textwrap
import warnings
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import numpy as np
from keras import ops

from reprt.constants import check_choice
from reprt.files import whole_file, write_text
from reprt.layers.dtypes import indices
from reprt.layers.positions import Positional

TITLES = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Cross attention, from the target (rows) to the source (columns)",
    "sequence": "Self-attention of source and target, one sequence",
}


# Arrays have no single truth value, as equality and a hash would need.
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class AttentionMaps:
    """The attention weights with which a model made one translation.

    With N layers, H heads, S source and T target tokens. A model has some of the kinds
    of attention; the others are None.

    Args:
        source: the source's tokens.
        target: the target's input tokens, the start token first.
        sentence, translation: the source and the translation as text.
        model: the model's name.
        encoder: weights of the encoder's self-attention, `(N, H, S, S)`, queries first.
        decoder: those of the decoder's self-attention, `(N, H, T, T)`.
        cross: those of the decoder's attention to the encoder, `(N, H, T, S)`.
        sequence: those within both sides as one sequence, `(N, H, S + T, S + T)`.
        written: the token that the model wrote after each of `target`, or nothing.
        search: how the translation was found, such as `"greedy"`.
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
    written: Sequence[str] = ()
    search: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of attention that the model has."""
        return tuple(kind for kind in TITLES if getattr(self, kind) is not None)

    @property
    def steps(self) -> Sequence[str]:
        """What was read and the token that this led to, such as `"the ⇒ tall"`."""
        if not self.written:
            return self.target
        pairs = zip(self.target, self.written)
        return [f"{read} ⇒ {wrote}" for read, wrote in pairs]

    def __repr__(self):
        shapes = {kind: getattr(self, kind).shape for kind in self.kinds}
        texts = f"{self.sentence!r} → {self.translation!r}"
        return f"AttentionMaps({self.model}, {texts}, {shapes})"

    def tokens(self, kind: str) -> tuple[Sequence[str], Sequence[str]]:
        """The queries and the keys of one of the kinds."""
        match kind:
            case "encoder":
                return self.source, self.source
            case "decoder":
                return self.target, self.target
            case "cross":
                return self.steps, self.source
        sequence = [*self.source, *self.target]
        return sequence, sequence


def write_page(maps: AttentionMaps, path: str | os.PathLike) -> Path:
    """Writes a self-contained interactive page; returns its path.

    What it shows is in its address, so that a view can be kept and shared:
    `attention.html#kind=cross&layer=2&head=3&mode=heat&threshold=0.2`. Layers and heads
    count from 1; `head` may also be `all`, side by side, or `mean`. Weights are rounded
    to four decimals. It begins with all heads of the first layer, in the last of the
    model's kinds.

    >>> import tempfile, numpy as np
    >>> one = np.ones((1, 1, 1, 1))
    >>> maps = AttentionMaps(["olá"], ["[START]"], "olá", "hello", "repe", cross=one)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(maps, f"{folder}/attention.html").name
    'attention.html'
    """
    data = {**vars(maps), "steps": maps.steps}
    for kind in maps.kinds:
        data[kind] = np.asarray(data[kind], "float64").round(4).tolist()
    # A browser looks for an end of the script, or a comment, in strings too.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    template = resources.files("reprt.decoding").joinpath("attention_page.html")
    page = template.read_text("utf-8").replace("{{data}}", text)
    path = Path(path)
    write_text(path, page)
    return path


def draw(
    maps: AttentionMaps,
    path: str | os.PathLike,
    kind: str | None = None,
    layer=-1,
) -> Path:
    """Draws the heads of one layer as heat maps, in a PNG; returns its path.

    The kind is one of `maps.kinds`, by default the last of them; layers count from 0.
    """
    # Not pyplot: nobody's figures, styles or windows are touched.
    from matplotlib.figure import Figure

    kind = kind or maps.kinds[-1]
    check_choice(maps.kinds, kind=kind)
    heads = getattr(maps, kind)[layer]
    queries, keys = maps.tokens(kind)
    # The inches of a token.
    cell = min(0.2, 8 / max(len(queries), len(keys)))
    width, height = 2 + cell * len(keys), 2 + cell * len(queries)
    # The picture is read at a page's width.
    columns = min(len(heads), max(1, int(9 / width)))
    rows = math.ceil(len(heads) / columns)
    figure = Figure((columns * width, 1 + rows * height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    # A dollar is a dollar, and begins no formula.
    style = {"fontsize": min(8, 45 * cell), "parse_math": False}
    for head, (axes, weights) in enumerate(zip(grid.flat, heads), 1):
        image = axes.imshow(weights, cmap="magma_r", vmin=0, vmax=1)
        axes.set_title(f"head {head}", fontsize=8)
        axes.set_xticks(range(len(keys)), keys, rotation=90, **style)
        axes.set_yticks([])
    for axes in grid.flat[len(heads) :]:
        axes.set_axis_off()
    for axes in grid[:, 0]:
        axes.set_yticks(range(len(queries)), queries, **style)
    figure.colorbar(image, ax=grid, label="weight")
    title = (
        f"{TITLES[kind]}, {maps.model}: {maps.sentence} → {maps.translation}"
    )
    if maps.search:
        title += f" ({maps.search})"
    title = textwrap.fill(title, int(13 * figure.get_figwidth()))
    figure.suptitle(title, fontsize=10, parse_math=False)
    with warnings.catch_warnings():
        # The font has not every script; the page shows them all.
        warnings.filterwarnings("ignore", "Glyph .* missing")
        return _save(figure, path)


def draw_positions(
    model,
    path: str | os.PathLike,
    length: int = 64,
) -> Path | None:
    """Draws a model's positions P and how they meet, P Pᵀ, in a PNG.

    Positions within attention have no P, and a query and a key of ones stand for it. A
    bias of scores is added to their product, the mean of all heads. Untied positions
    are drawn without their learnt projections. Returns the path, or None for a model
    without positions, such as a recurrent one.
    """
    from matplotlib.figure import Figure

    embedding = getattr(model, "embedding", None) or model.source_embedding
    positional = embedding.positional
    # The base class says nothing of places.
    if positional is None or type(positional) is Positional:
        return None
    length = min(length, model.longest_source)
    if hasattr(positional, "encoding"):
        table = ops.convert_to_numpy(positional.encoding)[:length]
        bias = None
    else:
        places = indices(length)[None]
        ones = ops.ones((1, length, 1, model.config.key_dim))
        table = ops.convert_to_numpy(positional.turn(ones, places))[0, :, 0]
        bias = positional.bias(places, places)
    products = table @ table.T
    if bias is not None:
        products = products + ops.convert_to_numpy(bias)[0].mean(0)
    figure = Figure((10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    method = type(positional).__name__
    for axes, name, image in ((left, "P", table), (right, "P Pᵀ", products)):
        shown = axes.imshow(
            image,
            cmap="RdBu_r",
            aspect="auto",
            interpolation="none",
        )
        figure.colorbar(shown, ax=axes)
        axes.set_title(f"{name} of {method}", fontsize=9)
    return _save(figure, path)


def _save(figure, path: str | os.PathLike) -> Path:
    path = Path(path)
    with whole_file(path) as file:
        figure.savefig(file, format="png", dpi=100)
    return path
