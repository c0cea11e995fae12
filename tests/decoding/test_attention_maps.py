import dataclasses
import json
import re
from html.parser import HTMLParser

import numpy as np
import oracle
import pytest
import tiny
from matplotlib.figure import Figure
from variants import POSITIONED

from reprt import models
from reprt.decoding.attention_maps import (
    AttentionMaps,
    draw,
    draw_positions,
    write_page,
)

SOURCE = "hoje o mercado ab ##re às nove .".split()
TARGET = "[START] today the market open ##s at nine .".split()
KINDS = ("encoder", "decoder", "cross")
MARKUP_TOKENS = [
    "</script><b>",
    "<!--<script>",
    "{{data}}",
    "&lt;",
    '"\\',
    "$\\nope$",
    "a\nb",
    "\u2028",
    "\u202e",
    "\ud800",
]
FOREIGN_TOKENS = ["שלום", "##עולם", "مرحبا", "你好", "こんにちは", "नमस्ते", "🙂"]


def make(source=SOURCE, target=TARGET, layers=2, heads=4, **texts):
    """Maps of random weights, as a softmax gives them."""
    random = np.random.default_rng(0)

    def weights(queries, keys):
        scores = random.normal(size=(layers, heads, len(queries), len(keys)))
        return oracle.softmax(2 * scores)

    defaults = {
        "sentence": "ele abre.",
        "translation": "it opens.",
        "model": "repe",
    }
    return AttentionMaps(
        source,
        target,
        **{**defaults, **texts},
        encoder=weights(source, source),
        decoder=weights(target, target),
        cross=weights(target, source),
    )


class Page(HTMLParser):
    """What a browser makes of a page, as far as the tests ask."""

    def __init__(self, path):
        super().__init__()
        self.text = path.read_text("utf-8")
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts: list[str] = []
        self.feed(self.text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.tags and self.tags[-1] == "script":
            self.scripts[-1] += data

    @property
    def data(self):
        return json.loads(self.scripts[0])


def test_the_page_holds_the_maps(tmp_path):
    maps = make()
    page = Page(write_page(maps, tmp_path / "page.html"))
    data = page.data
    fields = {field.name for field in dataclasses.fields(maps)}
    assert data.keys() == fields | {"steps"}
    assert "\n" not in repr(maps) and "(2, 4, 9, 8)" in repr(maps)
    for name in ("source", "target", "model", "translation", "sentence"):
        assert data[name] == getattr(maps, name)
    for kind in KINDS:
        np.testing.assert_allclose(
            data[kind], getattr(maps, kind), atol=0.5001e-4
        )
    numbers = re.findall(r"\d\.\d+", page.scripts[0])
    assert max(map(len, numbers)) == len("0.1234")


def test_no_token_is_taken_for_markup(tmp_path):
    ordinary_page = Page(write_page(make(), tmp_path / "ordinary.html"))
    target = ["[START]", *MARKUP_TOKENS]
    maps = make(MARKUP_TOKENS, target, translation="</script>", model="<b>")
    page = Page(write_page(maps, tmp_path / "page.html"))
    assert page.tags == ordinary_page.tags
    assert "<" not in page.scripts[0]
    data = page.data
    assert data["source"] == MARKUP_TOKENS
    assert data["target"] == target
    assert data["translation"] == "</script>" and data["model"] == "<b>"
    assert "innerHTML" not in page.text


def test_the_page_needs_nothing_but_itself(tmp_path):
    page = Page(write_page(make(), tmp_path / "page.html"))
    names = {name for name, _ in page.attributes}
    assert not names & {"src", "href", "srcset", "action"}
    assert "link" not in page.tags and "img" not in page.tags
    assert not re.search(
        r"@import|url\(|fetch\(|XMLHttpRequest|import ", page.text
    )
    addresses = set(re.findall(r"https?://[^\"]*", page.text))
    # This is a name, which no browser looks up.
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert any(
        "default-src 'none'" in (value or "") for _, value in page.attributes
    )


@pytest.fixture
def pictures(monkeypatch):
    """The figures that were saved."""
    figures, save = [], Figure.savefig

    def savefig(figure, *arguments, **options):
        figures.append(figure)
        save(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", savefig)
    return figures


def test_a_kind_that_a_model_lacks_is_named(tmp_path):
    with pytest.raises(ValueError, match="kind.*Received.*'crosss'"):
        draw(make(), tmp_path / "maps.png", "crosss")


@pytest.mark.parametrize("choice", [{}, {"kind": "encoder", "layer": 0}])
def test_the_picture_has_the_heads_of_one_layer(tmp_path, pictures, choice):
    maps = make()
    path = draw(maps, tmp_path / "maps.png", **choice)
    assert path.read_bytes().startswith(b"\x89PNG")
    images = [
        axes.images[0].get_array() for axes in pictures[0].axes if axes.images
    ]
    weights = getattr(maps, choice.get("kind", "cross"))
    expected = weights[choice.get("layer", -1)]
    np.testing.assert_array_equal(images, expected)


@pytest.mark.parametrize(
    "tokens", [FOREIGN_TOKENS, ["$\\nope$", "$a$"], ["um"] * 128]
)
def test_any_token_can_be_drawn(tmp_path, pictures, tokens):
    """Of a warning pytest makes an error; there are always glyphs that are missing."""
    maps = make(tokens, tokens, 1, 2, translation=" ".join(tokens))
    draw(maps, tmp_path / "maps.png")
    assert max(pictures[0].get_size_inches()) < 30


@pytest.mark.parametrize("variant", POSITIONED)
def test_positions_of_any_method_are_drawn(variant, tmp_path, pictures):
    name, settings = POSITIONED[variant]
    model = models.build(name, 9, 9, **{**tiny.TINY, **settings})
    path = draw_positions(model, tmp_path / "positions.png", 12)
    if settings["position"] == "none":
        assert path is None
        return
    assert path.is_file()
    table, products = (
        axes.images[0].get_array() for axes in pictures[0].axes[:2]
    )
    assert len(table) == 12 and products.shape == (12, 12)
    # Sinusoids, rotations and distances are the same everywhere in a sentence.
    np.testing.assert_allclose(products[1:, 1:], products[:-1, :-1], atol=1e-3)
    # A relative position's table begins at 0.
    if settings["position"] != "relative":
        assert products[0, 0] > products[0, 5]
