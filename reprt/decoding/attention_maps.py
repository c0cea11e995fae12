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
from typing import Any

import numpy as np
from keras import ops

from reprt.constants import END
from reprt.files import whole_file, write_text
from reprt.layers.dtypes import indices

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
        pairs = zip(self.target, self.written)
        return [f"{read} ⇒ {wrote}" for read, wrote in pairs] or self.target

    def __repr__(self):
        shapes = {kind: getattr(self, kind).shape for kind in self.kinds}
        found = f"{self.sentence!r} → {self.translation!r}"
        return f"AttentionMaps({self.model}, {found}, {shapes})"

    def tokens(self, kind: str) -> tuple[Sequence[str], Sequence[str]]:
        """The queries and the keys of one of the kinds."""
        both = (*self.source, *self.target)
        return {
            "encoder": (self.source, self.source),
            "decoder": (self.target, self.target),
            "cross": (self.steps, self.source),
            "sequence": (both, both),
        }[kind]

    def shares(self) -> list[dict[str, Any]]:
        """Returns what each head does, as the mean share of its queries' weight.

        `before`, `after` and `itself` are the key one place before its query, one after
        it, and at its place; cross attention has none of them. `same` are all keys with
        the query's piece, `end` those that are `[END]`.
        """
        rows = []
        for kind in self.kinds:
            queries, keys = map(np.array, self.tokens(kind))
            chosen = {}
            if kind == "cross":
                queries = np.array(self.target)  # without what was written next
            else:
                places = {"before": -1, "itself": 0, "after": 1}
                chosen = {
                    n: np.eye(len(queries), k=k) for n, k in places.items()
                }
            chosen["same"] = queries[:, None] == keys
            chosen["end"] = np.broadcast_to(keys == END, chosen["same"].shape)
            weights = np.asarray(getattr(self, kind))
            for layer, head in np.ndindex(weights.shape[:2]):
                row = {"kind": kind, "layer": layer + 1, "head": head + 1}
                for name, mask in chosen.items():
                    share = (weights[layer, head] * mask).sum(-1).mean()
                    row[name] = round(float(share), 4)
                rows.append(row)
        return rows


def write_page(maps: AttentionMaps, path: str | os.PathLike) -> Path:
    """Writes an interactive page that needs nothing but itself; returns its path.

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
    write_text(Path(path), page)
    return Path(path)


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
    weights, (queries, keys) = getattr(maps, kind)[layer], maps.tokens(kind)
    cell = min(0.2, 8 / max(len(queries), len(keys)))  # inches of a token
    text = {
        "fontsize": min(8, 45 * cell),
        "parse_math": False,
    }  # dollars are dollars
    width, height = (2 + cell * len(side) for side in (keys, queries))
    columns = min(
        len(weights), max(1, int(9 / width))
    )  # read at a page's width
    rows = math.ceil(len(weights) / columns)
    figure = Figure((columns * width, 1 + rows * height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for head, axes in enumerate(grid.flat):
        axes.set_yticks([])
        if head >= len(weights):
            axes.set_axis_off()
            continue
        image = axes.imshow(weights[head], cmap="magma_r", vmin=0, vmax=1)
        axes.set_title(f"head {head + 1}", fontsize=8)
        axes.set_xticks(range(len(keys)), keys, rotation=90, **text)
    for axes in grid[:, 0]:
        axes.set_yticks(range(len(queries)), queries, **text)
    figure.colorbar(image, ax=grid, label="weight")
    search = f" ({maps.search})" if maps.search else ""
    found = f"{maps.sentence} → {maps.translation}{search}"
    title = f"{TITLES[kind]}, {maps.model}: {found}"
    title = textwrap.fill(title, int(13 * figure.get_figwidth()))
    figure.suptitle(title, fontsize=10, parse_math=False)
    with whole_file(Path(path)) as file, warnings.catch_warnings():
        # The font has not every script; the page shows them all.
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure.savefig(file, format="png", dpi=100)
    return Path(path)


def draw_positions(
    model, path: str | os.PathLike, length: int = 64
) -> Path | None:
    """Draws a model's positions P and how they meet, P Pᵀ, in a PNG.

    Positions within attention have no P, and a query and a key of ones stand for it. A
    bias of scores is added to their product, the mean of all heads. Untied positions
    are drawn without their learnt projections. Returns the path, or None for a
    recurrent model.
    """
    from matplotlib.figure import Figure

    embedding = getattr(model, "embedding", None) or model.source_embedding
    if embedding.positional is None:
        return None
    positional, length = embedding.positional, min(length, model.longest_source)
    places, bias = indices(length)[None], 0.0
    if hasattr(positional, "encoding"):
        table = ops.convert_to_numpy(positional.encoding)[:length]
    else:
        ones = ops.ones((1, length, 1, model.config.key_dim))
        table = ops.convert_to_numpy(positional.turn(ones, places))[0, :, 0]
        if (added := positional.bias(places, places)) is not None:
            bias = ops.convert_to_numpy(added)[0].mean(0)
    figure = Figure((10, 4), layout="constrained")
    images = {"P": table, "P Pᵀ": table @ table.T + bias}
    for axes, (title, image) in zip(figure.subplots(1, 2), images.items()):
        shown = axes.imshow(
            image, cmap="RdBu_r", aspect="auto", interpolation="none"
        )
        figure.colorbar(shown, ax=axes)
        axes.set_title(f"{title} of {type(positional).__name__}", fontsize=9)
    with whole_file(Path(path)) as file:
        figure.savefig(file, format="png", dpi=100)
    return Path(path)
