"""What README, site and notebooks tell a reader to type exists, and their code runs."""

import re
import shlex
import warnings

import pytest
from tiny_run import REPOSITORY, lively

import reprt
from reprt.cli import _parser, main

DOCS = sorted((REPOSITORY / "docs").glob("**/*.md"))
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.md"))
RESULTS = sorted((REPOSITORY / "experiments").glob("**/*.md"))
PAGES = [REPOSITORY / "README.md", *DOCS]
MAKEFILE = (REPOSITORY / "Makefile").read_text()


def blocks(page, language):
    text = page.read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def name(path):
    return str(path.relative_to(REPOSITORY))


def commands(page):
    """Every simple command of a page's shell snippets, as words."""
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            shell = shlex.shlex(line, posix=True, punctuation_chars="|>;")
            shell.whitespace_split = True
            words, command = list(shell), []
            for word in [*words, ";"]:
                if word in ("|", ">", ";", "&&"):
                    if command:
                        yield command
                    command = []
                else:
                    command.append(word)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_exist(page):
    for words in commands(page):
        if words[0].startswith("KERAS_BACKEND="):
            words = words[1:]
        if words[0] == "reprt":
            _, rest = _parser().parse_known_args(words[1:])
            assert not [word for word in rest if word.startswith("-")], words
            for word in words:
                if word.startswith("experiments/") and word.endswith(".toml"):
                    assert (REPOSITORY / word).is_file(), word
        elif words[0] == "make":
            for target in words[1:]:
                if "=" not in target:
                    assert re.search(rf"^{target}:", MAKEFILE, re.M), target


@pytest.mark.parametrize("page", [PAGES[0], *RESULTS], ids=name)
def test_links_to_files(page):
    """Of the site Sphinx checks them."""
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize(
    "page",
    [page for page in DOCS if blocks(page, "python") and page.stem != "mistakes"],
    ids=name,
)
def test_code_runs(page, tmp_path, tmp_path_factory, monkeypatch):
    run = lively(tmp_path_factory.getbasetemp(), "baseline")
    if page.stem == "export":
        main(["export", str(run)])
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*`shuffle=True` was passed")
        warnings.filterwarnings("ignore", "(?s).*You are using a softmax over axis")
        exec("\n".join(blocks(page, "python")), {"run": str(run)})


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=name)
def test_notebooks_are_rendered_as_they_are(notebook):
    """`make rendered` writes a page of each, with its outputs."""
    page = notebook.parent / "rendered" / notebook.name
    code = [block.strip() for block in blocks(notebook, "python")]
    assert code == [block.strip() for block in blocks(page, "python")]


def test_the_citation_names_the_version():
    citation = (REPOSITORY / "CITATION.cff").read_text("utf-8")
    assert f"version: {reprt.__version__}\n" in citation
