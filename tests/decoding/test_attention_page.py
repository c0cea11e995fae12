"""The page in a browser, where there is one: Chromium, driven by the address."""

import dataclasses
import re
import shutil
import subprocess

import numpy as np
import pytest
from test_attention_maps import make_maps

from reprt.decoding.attention_maps import AttentionMaps, write_page

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = pytest.mark.skipif(
    BROWSER is None,
    reason=f"no browser: none of {', '.join(NAMES)} is installed",
)
SOURCE = ["olá", "</script><b>", "שלום"]
TARGET = ["[START]", "hello", "wor", "##ld"]


@pytest.fixture(scope="module")
def maps():
    texts = {
        "sentence": "olá <i>mundo</i>",
        "translation": "hello <i>world</i>",
    }
    result = make_maps(SOURCE, TARGET, layers=2, heads=3, **texts)
    return dataclasses.replace(result, decoder=np.tril(result.decoder))


@pytest.fixture(scope="module")
def visit(maps, tmp_path_factory):
    """A function that opens the page at an address, and returns what it becomes."""
    folder = tmp_path_factory.mktemp("page")
    page = write_page(maps, folder / "page.html")

    def visit(address="", script="", page=page):
        copy = page.with_name("copy.html")
        copy.write_text(
            page.read_text("utf-8") + f"<script>{script}</script>", "utf-8"
        )
        process = subprocess.run(
            [
                BROWSER,
                "--headless",
                # Root has no sandbox in a container.
                "--no-sandbox",
                "--disable-gpu",
                "--enable-logging=stderr",
                f"--user-data-dir={folder / 'profile'}",
                # Links lead somewhere within this time.
                "--virtual-time-budget=1000",
                "--dump-dom",
                f"{copy.as_uri()}#{address}",
            ],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert process.returncode == 0, process.stderr
        # Whatever the page complains of, errors and refused resources alike.
        assert "CONSOLE" not in process.stderr, process.stderr
        return process.stdout

    return visit


def opacities(dom, element):
    values = re.findall(rf'<{element} [^>]*-opacity="([^"]*)"', dom)
    return sorted(map(float, values))


def captions(dom):
    texts = re.findall("<figcaption>(.*?)</figcaption>", dom)
    return [re.sub("<.*?>", "", text) for text in texts]


def weights_above(weights, threshold):
    return np.sort(weights[(weights >= threshold) & (weights > 0)].round(4))


def test_all_heads_stand_side_by_side_and_lines_are_as_strong_as_weights(
    maps, visit
):
    dom = visit()
    assert captions(dom) == ["head 1", "head 2", "head 3"]
    assert opacities(dom, "rect") == []
    expected = weights_above(maps.cross[0], 0.1)
    np.testing.assert_allclose(opacities(dom, "line"), expected, atol=0.002)
    assert "from the target to the source, layer 1 of 2</h2>" in dom


def test_the_address_chooses_kind_layer_head_view_and_threshold(maps, visit):
    dom = visit("kind=decoder&layer=2&head=3&mode=heat&threshold=0.2")
    assert opacities(dom, "line") == []
    expected = np.sqrt(weights_above(maps.decoder[1, 2], 0.2))
    np.testing.assert_allclose(opacities(dom, "rect"), expected, atol=0.002)
    assert captions(dom) == ["head 3 of 3all heads"]
    assert "2 of 2" in dom and ">0.2</output>" in dom

    dom = visit("head=mean")
    assert captions(dom) == ["mean of 3 headsall heads"]
    expected = weights_above(maps.cross[0].mean(0), 0.1)
    np.testing.assert_allclose(opacities(dom, "line"), expected, atol=0.002)

    dom = visit("kind=none&layer=9&head=9&mode=3d&threshold=-1&length=2&%")
    assert captions(dom) == ["head 1", "head 2", "head 3"] and "2 of 2" in dom


def test_tokens_are_text_in_their_own_direction(visit):
    dom = visit()
    for token in ("שלום", "&lt;/script&gt;&lt;b&gt;"):
        assert re.search(rf'<li dir="auto"[^\n]*>{token}</li>', dom)
    assert "hello &lt;i&gt;world&lt;/i&gt;" in dom
    assert "olá &lt;i&gt;mundo&lt;/i&gt;" in dom
    markup = re.sub('(?s)<script.*?</script>|title=".*?"', "", dom)
    assert "<b>" not in markup and "<i>" not in markup


def test_one_sequence_has_all_tokens_on_both_sides(visit, tmp_path):
    tokens = [*SOURCE, *TARGET]
    weights = np.tri(len(tokens)) / np.arange(1, 1 + len(tokens))[:, None]
    sequence = weights[None, None]
    maps = AttentionMaps(
        SOURCE, TARGET, "olá", "hello", "decoder-only", sequence=sequence
    )
    page = write_page(maps, tmp_path / "page.html")
    # A kind that the model does not have is no choice.
    for address in (
        "threshold=0.2",
        "threshold=0.2&kind=cross",
        "kind=x&threshold=.2",
    ):
        dom = visit(address, page=page)
        np.testing.assert_allclose(
            opacities(dom, "line"), weights_above(weights, 0.2), atol=0.002
        )
        assert dom.count("<li ") == 2 * len(tokens)
        assert (
            re.findall('class="first"[^>]*>([^<]*)<', dom)
            == ["olá", "[START]"] * 2
        )
        assert len(re.findall("<label hidden", dom)) == 5
        assert re.search('class="border" d="M0 [^"]', dom)
