import dataclasses
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure

from reprt.decoding.attention_maps import SIDES, AttentionMaps, draw, write_page

SOURCE = "hoje o mercado ab ##re às nove .".split()
TARGET = "[START] today the market open ##s at nine .".split()
USUAL = ("encoder", "decoder", "cross")
HOSTILE = [
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
FOREIGN = ["שלום", "##עולם", "مرحبا", "你好", "こんにちは", "नमस्ते", "🙂"]


@pytest.fixture
def make():
    """A function that returns maps of random weights, as a softmax gives them."""

    def make(source=SOURCE, target=TARGET, layers=2, heads=4, kinds=USUAL, **texts):
        random = np.random.default_rng(0)

        def weights(queries, keys):
            scores = random.normal(size=(layers, heads, len(queries), len(keys)))
            exponentials = np.exp(2 * scores)
            return exponentials / exponentials.sum(-1, keepdims=True)

        sides = {"source": source, "target": target, "both": [*source, *target]}
        sides["steps"] = target
        return AttentionMaps(
            source,
            target,
            **{kind: weights(*(sides[side] for side in SIDES[kind])) for kind in kinds},
            **{
                "sentence": "hoje ele abre às nove .",
                "translation": "today it opens at nine .",
                "model": "repe",
                **texts,
            },
        )

    return make


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


def test_the_page_holds_the_maps(make, tmp_path):
    maps = make()
    page = Page(write_page(maps, tmp_path / "page.html"))
    data = page.data
    assert data.keys() == {field.name for field in dataclasses.fields(maps)} | {"steps"}
    assert "\n" not in repr(maps) and "(2, 4, 9, 8)" in repr(maps)
    for name in ("source", "target", "model", "translation", "sentence"):
        assert data[name] == getattr(maps, name)
    for kind in USUAL:
        np.testing.assert_allclose(data[kind], getattr(maps, kind), atol=0.5001e-4)
    numbers = re.findall(r"\d\.\d+", page.scripts[0])
    assert max(map(len, numbers)) == len("0.1234")


def test_a_model_may_have_only_one_kind(make, tmp_path):
    maps = make(kinds=("sequence",), layers=1)
    data = Page(write_page(maps, tmp_path / "page.html")).data
    assert [kind for kind in SIDES if data[kind] is not None] == ["sequence"]
    np.testing.assert_allclose(data["sequence"], maps.sequence, atol=0.5001e-4)
    draw(maps, tmp_path / "maps.png")


def test_no_token_is_taken_for_markup(make, tmp_path):
    plain = Page(write_page(make(), tmp_path / "plain.html"))
    maps = make(HOSTILE, ["[START]", *HOSTILE], translation="</script>", model="<b>")
    page = Page(write_page(maps, tmp_path / "page.html"))
    assert page.tags == plain.tags
    assert "<" not in page.scripts[0]
    assert page.data["source"] == HOSTILE
    assert page.data["target"] == ["[START]", *HOSTILE]
    assert page.data["translation"] == "</script>" and page.data["model"] == "<b>"
    assert "innerHTML" not in page.text


def test_the_page_needs_nothing_but_itself(make, tmp_path):
    page = Page(write_page(make(), tmp_path / "page.html"))
    names = {name for name, _ in page.attributes}
    assert not names & {"src", "href", "srcset", "action"}
    assert "link" not in page.tags and "img" not in page.tags
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|import ", page.text)
    addresses = set(re.findall(r"https?://[^\"]*", page.text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, which is not looked up
    assert any("default-src 'none'" in (value or "") for _, value in page.attributes)


def test_every_control_has_a_label(make, tmp_path):
    text = Page(write_page(make(), tmp_path / "page.html")).text
    labels = re.findall(r"<label>.*?</label>", text, re.DOTALL)
    controls = r"<(?:input|select)\b"
    assert len(re.findall(controls, text)) == len(labels)
    assert all(len(re.findall(controls, label)) == 1 for label in labels)


@pytest.fixture
def pictures(monkeypatch):
    """The figures that were saved."""
    figures, save = [], Figure.savefig

    def savefig(figure, *arguments, **options):
        figures.append(figure)
        save(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", savefig)
    return figures


@pytest.mark.parametrize("choice", [{}, {"kind": "encoder", "layer": 0}])
def test_the_picture_has_the_heads_of_one_layer(make, tmp_path, pictures, choice):
    maps = make()
    path = draw(maps, tmp_path / "maps.png", **choice)
    assert path.read_bytes().startswith(b"\x89PNG")
    shown = [axes.images[0].get_array() for axes in pictures[0].axes if axes.images]
    expected = getattr(maps, choice.get("kind", "cross"))[choice.get("layer", -1)]
    np.testing.assert_array_equal(shown, expected)


@pytest.mark.parametrize("tokens", [FOREIGN, ["$\\nope$", "$a$"], ["um"] * 128])
def test_any_token_can_be_drawn(make, tmp_path, pictures, tokens):
    """Of a warning pytest makes an error; there are always glyphs that are missing."""
    maps = make(tokens, tokens, 1, 2, translation=" ".join(tokens))
    draw(maps, tmp_path / "maps.png")
    assert max(pictures[0].get_size_inches()) < 30


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"source": ["um"]}, r"`encoder` .* \(2, 4, 1, 1\). Received: \(2, 4, 8, 8\)"),
        ({"cross": np.zeros((1, 4, 9, 8))}, r"`cross` .* Received: \(1, 4, 9, 8\)"),
        ({"encoder": np.zeros((8, 8))}, r"`encoder` .* Received: \(8, 8\)"),
    ],
)
def test_what_are_no_maps_is_refused(make, changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(make(), **changes)
