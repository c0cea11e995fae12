"""Sentences and names of folders that formats would read as something else."""

import csv
import html
import importlib
import io
import re

import numpy as np
import pytest
from fake_runs import row

from reprt.decoding.attention_maps import AttentionMaps, draw, write_page
from reprt.reports.escaping import code, in_latex, in_markdown
from reprt.reports.registry import PAGES
from reprt.reports.report import write_report
from reprt.reports.tables import csv_text

NAMES = [
    r"a$\frac$b",
    "</script><!--",
    "a|b || c",
    "one line\nand another\r\n\n# and a title",
    "_a_ *b* `c` ~~d~~ [a](javascript:b)",
    "&lt; & 5 % of #1 {x}^2 \\",
    "1. item",
]
names = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def undrawn(monkeypatch):
    """Pages without their pictures, which take most of the time."""
    for page in PAGES:
        module = importlib.import_module(f"reprt.reports.{page}")
        monkeypatch.setattr(module, "_draw", lambda *_: None, raising=False)


@pytest.fixture
def runs(add):
    """A function that returns a folder of runs on a text of that name."""

    def make(name):
        example = {"source": name, "reference": name, "translation": name}
        metrics = {
            "test_bleu": 9.0,
            "test_bleu_signature": "a|b",
            "examples": [example],
            "finished": "2026-11-21",
        }
        fields = {"name": name, "official": False}
        for model in ("baseline", "repe"):
            folder = add(model, [row(1, 3.0, 2.0)], metrics, text_fields=fields)
        return folder

    return make


def shown(text):
    """What Markdown shows of a text without markup, as far as names go."""
    return html.unescape(re.sub(r"\\([!-/:-@[-`{-~])", r"\1", text))


@names
def test_markdown_shows_a_name_as_it_is(name):
    written = in_markdown(name)
    assert shown(written) == " ".join(name.splitlines())
    for sign in "<>`*[]$~":
        assert not re.search(rf"(?<!\\)(\\\\)*{re.escape(sign)}", written)
    assert not re.match(r"[#+=-]|\d+[.)]", written)


@names
def test_code_ends_where_its_text_ends(name):
    fence = re.match("`+", code(name)).group()
    inside = code(name).removeprefix(fence).removesuffix(fence)
    assert fence not in re.findall("`+", inside)
    assert inside.strip(" ") == " ".join(name.splitlines()).strip(" ")


@names
def test_latex_has_no_sign_of_its_own_in_a_name(name):
    left = re.sub(r"\\text\w+\{\}|\\[&%$#_{}]|\{\[\}", "", in_latex(name))
    assert not re.search(r"[&%$#_{}~^\\<>|\[\n\r]", left)


@names
def test_a_cell_of_csv_comes_back(name):
    for text in (name, "a\rb", '"'):
        table = io.StringIO(csv_text([{"name": text, "loss": 1}]), newline="")
        assert list(csv.DictReader(table)) == [{"name": text, "loss": "1"}]


@names
@pytest.mark.parametrize("page", [each for each in PAGES if each != "readings"])
def test_pages_have_the_lines_and_columns_of_any_name(runs, undrawn, page, name):
    path = PAGES[page].write(runs(name))
    text, latex = path.read_text("utf-8"), path.with_suffix(".tex")
    assert "<script" not in text and in_markdown(name) in text
    cells = [re.split(r"(?<!\\)\|", line) for line in text.splitlines()]
    tables = [len(line) for line in cells if line[0] == "" and len(line) > 1]
    rules = [len(line) for line in cells if set("".join(line)) == set("-:")]
    assert set(tables) == set(rules)
    if latex.exists():
        lines = latex.read_text("utf-8").splitlines()
        assert in_latex(name) in "\n".join(lines)
        wide = {len(re.split(r"(?<!\\)&", line)) for line in lines if " & " in line}
        assert wide <= {6, 10, 12}  # of both tables, and of the head that spans


def test_a_picture_shows_dollars(runs, tmp_path):
    write_report(runs(NAMES[0]))
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")


@names
def test_a_page_of_attention_holds_a_name_as_data(tmp_path, name):
    one = np.ones((1, 1, 1, 1))
    maps = AttentionMaps([name], [name], name, name, name, one, one, one)
    page = write_page(maps, tmp_path / "page.html").read_text("utf-8")
    empty = AttentionMaps(["a"], ["a"], "a", "a", "a", one, one, one)
    usual = write_page(empty, tmp_path / "usual.html").read_text("utf-8")
    assert page.count("<") == usual.count("<")
    draw(maps, tmp_path / "page.png")
