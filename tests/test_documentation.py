"""What README, site and notebooks tell a reader to type exists, and their code runs."""

import json
import re
import shlex

import click
import pytest
from bs4 import BeautifulSoup
from tiny_run import REPOSITORY, randomized_run

import reprt
from reprt.data import find
from reprt_lab.command import command as reprt_command
from reprt_lab.command import main
from reprt_lab.recipe import shipped_recipes

DOCS = sorted((REPOSITORY / "docs").glob("**/*.md"))
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
RESULTS = sorted((REPOSITORY / "experiments").glob("**/*.md"))
PAGES = [REPOSITORY / "README.md", *DOCS]
MACHINES = r"/(?:home|root|tmp)/"  # paths of one machine
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
            for command in re.split(r" (?:[|>]|&&) |; ", line):
                words = shlex.split(command, comments=True)
                if words and not re.match("[A-Z]+=", words[-1]):  # a variable
                    yield words


def assert_reprt_takes(words):
    if words[0].startswith("-"):
        return
    subcommand = reprt_command.commands[words[0]]
    parser = subcommand.make_parser(click.Context(subcommand))
    _, rest, _ = parser.parse_args(words[1:])  # which refuses an unknown option
    assert not rest, words
    if words[0] == "train" and "." not in words[1]:
        assert words[1] in shipped_recipes(), words
    for word in words:
        if word.startswith("experiments/"):
            assert (REPOSITORY / word).exists(), word


def assert_make_takes(words):
    for word in words:
        name, equals, _ = word.partition("=")
        pattern = f"^# {name}=|^{name} \\?=" if equals else f"^{name}:"
        assert re.search(pattern, MAKEFILE, re.M), word


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_exist_and_nothing_is_left_to_fill_in(page):
    checks = {"reprt": assert_reprt_takes, "make": assert_make_takes}
    for words in commands(page):
        if words[0].startswith("KERAS_BACKEND="):
            words = words[1:]
        assert "RUN" not in words, (
            "a snippet says which run, so that it can be copied"
        )
        if words[0] in checks:
            checks[words[0]](words[1:])
    text = page.read_text("utf-8")
    # Within a line they may be cut short; what they begin with exists.
    for first in re.findall(r"`make ([a-z0-9-]+)", text):
        assert_make_takes([first])
    for first in re.findall(r"`reprt ([a-z0-9-]+)", text):
        assert first in reprt_command.commands, first
    assert not re.search(rf"TODO|FIXME|XXX|{MACHINES}", text)


# The paper's sections, and the first and last equation of each on arXiv.
EQUATIONS = {
    "section 2": (1, 14),
    "section 2.1": (4, 9),
    "section 2.2": (10, 11),
    "section 2.3": (12, 14),
    "section 3.1": (15, 15),
    "appendix A": (16, 34),
    "appendix A.1": (16, 27),
    "appendix A.2": (28, 34),
}


def test_the_papers_equations_are_numbered_as_on_arxiv():
    code = "".join(
        path.read_text() for path in (REPOSITORY / "reprt").rglob("*.py")
    )
    references = re.findall(r"Reference: ([^\"]*?) of the paper\b", code)
    rows = re.findall(r"^\| (.* eq\. .*?) \| `", code, re.M)
    assert len(references) >= 10 and len(rows) == 10
    for reference in [*references, *rows]:
        assert re.search("section|appendix", reference), reference
        pattern = (
            r"(section|appendix) ([A\d.]*[A\d]),\s+eq\. ([-\d,\s]+(?:and \d+)?)"
        )
        for kind, number, equations in re.findall(pattern, reference):
            first, last = EQUATIONS[f"{kind} {number}"]
            for equation in re.findall(r"\d+", equations):
                assert first <= int(equation) <= last, reference


@pytest.mark.parametrize("page", [*PAGES, *RESULTS], ids=name)
def test_links_to_files(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8")):
        match = re.match(r"(\.\./)+(experiments|notebooks)/", target)
        if "://" not in target and (page not in DOCS or match):
            assert (page.parent / target).exists(), (
                f"{page.name} links to {target}"
            )


def examples(pages):
    """Every Python snippet, with its page and its place there as its name."""
    return [
        pytest.param(code, id=f"{name(page)}-{number}")
        for page in pages
        for number, code in enumerate(blocks(page, "python"), 1)
    ]


# Packages whose models are audited.
FOREIGN_PACKAGES = {"torch", "transformers", "st_moe_pytorch"}


# test_examples.py runs that of the README.
@pytest.mark.parametrize("code", examples(DOCS))
@pytest.mark.filterwarnings("ignore:(?s).*`shuffle=True` was passed")
@pytest.mark.filterwarnings("ignore:(?s).*You are using a softmax over axis")
def test_an_example_runs_alone_as_it_is_copied(code, runs_folder, monkeypatch):
    monkeypatch.chdir(runs_folder)
    try:
        exec(code, {})
    except ModuleNotFoundError as error:
        if error.name not in FOREIGN_PACKAGES:
            raise
        pytest.skip(f"{error.name} is in an environment of the gallery only")


@pytest.fixture(scope="module")
def runs_folder(tmp_path_factory):
    """A folder in which the runs of `make reproduce-pt-en` stand where it puts them."""
    folder = tmp_path_factory.mktemp("repository")
    run = folder / "runs/pt_to_en_embedded/embedded-corpus/baseline"
    run.parent.mkdir(parents=True)
    run.symlink_to(randomized_run(tmp_path_factory.getbasetemp(), "baseline"))
    main(["export", str(run)])
    train = find("embedded", "pt_to_en").train
    for ending, sentences in (("de", train.source), ("en", train.target)):
        lines = "\n".join(sentences[:500]) + "\n"
        (folder / f"corpus.{ending}").write_text(lines)
    return folder


@pytest.mark.parametrize("code", examples(PAGES))
def test_an_example_imports_reprt_first_so_that_tensorflow_is_quiet(code):
    imports = re.findall(
        r"^(?:import|from) (reprt|keras|tensorflow)\b", code, re.M
    )
    assert imports[:1] == ["reprt"] or "reprt" not in code


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=name)
def test_a_notebook_imports_only_what_is_public_and_its_lines_are_short(
    notebook,
):
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    lines = [line.rstrip() for cell in code for line in cell["source"]]
    not_public = re.compile(r"reprt_lab|reprt\.\w+\._|colab|OWNER")
    assert not [line for line in lines if not_public.search(line)]
    assert not [line for line in lines if len(line) > 88]
    assert "colab" not in json.dumps(cells).lower()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=name)
def test_notebooks_are_kept_as_they_ran(notebook):
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [
        *range(1, len(code) + 1)
    ]
    outputs = [output for cell in code for output in cell["outputs"]]
    assert not {"error", "stderr"} & {
        output.get("name", output["output_type"]) for output in outputs
    }
    for output in outputs:  # base64 has any letters
        assert len(output.get("data", {}).pop("image/png", "")) < 300_000
    assert not re.search(
        rf"WARNING|0x[0-9a-f]{{8}}|{MACHINES}", json.dumps(cells)
    )


def test_a_table_too_wide_for_a_phone_is_a_list_there(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "docs")
    from page_layout import lay_out_table

    def make_table(columns):
        head = "<th>validation loss</th>" * columns
        row = "<td>4.48 ± 0.01</td>" * columns
        rows = f"<thead><tr>{head}</tr></thead><tbody><tr>{row}</tr></tbody>"
        soup = BeautifulSoup(f"<table>{rows}</table>", "html.parser")
        table = soup.table
        lay_out_table(table)
        return table

    classes = [make_table(columns).get("class") for columns in (2, 4, 8)]
    assert classes == [None, ["list-on-phones"], ["list-on-phones", "wide"]]
    cell = make_table(2).td
    assert cell["data-head"] == "validation loss"
    assert cell.text == "4.48\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.01"


def test_the_citation_names_the_version():
    citation = (REPOSITORY / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {reprt.__version__}\n" in citation
