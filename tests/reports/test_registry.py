"""Pages register themselves; recipes, commands and jobs ask the registry."""

import subprocess
import sys

import pytest
from fake_runs import row

from reprt_command import main
from reprt.lab import job
from reprt.lab.pages import registry
from reprt.lab.pages.registry import page_named, page_on, pages, register

PAGES = {"comparison", "families", "figure3", "readings", "report", "table1"}


@pytest.fixture
def toy(monkeypatch):
    """A page of two lines, which no list names."""
    monkeypatch.setattr(registry, "_REGISTERED", dict(pages()))

    @register("toy", help="a toy", files="toy.md", folder="any", several_texts=True)
    def write_toy(folder, out=None):
        (out or folder).joinpath("toy.md").write_text("a toy\n")
        return (out or folder) / "toy.md"


def test_every_page_is_there_with_its_command(capsys):
    assert set(pages()) == PAGES
    with pytest.raises(SystemExit):
        main(["--help"])
    told = capsys.readouterr().out
    for page in pages().values():
        assert (f"    {page.name} " in told) == (page.instead_of is None)


def test_a_new_page_is_a_command_and_a_value_of_a_recipe(toy, tmp_path, capsys):
    assert main(["toy", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "toy.md")
    assert page_named("toy", "a recipe").name == "toy"


def test_a_job_writes_the_page_where_its_folder_is(toy, add):
    folder = add("repe", [row(1, 4.0, 3.0)], under="text")
    assert job.write_page("toy", folder / "text") == folder / "toy.md"
    job.write_page("table1", folder / "text")
    assert (folder / "table1.md").exists() and (folder / "text" / "report.md").exists()


def test_an_unknown_page_is_named_before_any_work(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_text('page = "table2"\n[models.repe]\npreset = "repe"\n')
    assert main(["train", str(path), "--text", str(tmp_path / "absent")]) == 2
    told = capsys.readouterr().err
    assert "Expected 'page' in the recipe 'mine' to be one of ('comparison'" in told
    assert told.rstrip().endswith("Received: 'table2'.")


def test_trials_are_compared_and_other_runs_reported_on(add, tmp_path):
    assert page_on("report", add("repe", under="a") / "a").name == "report"
    assert page_on("report", add("repe.0", under="b") / "b").name == "comparison"
    assert page_on("table1", tmp_path / "b").name == "table1"


def test_pages_load_without_what_draws_and_computes():
    """So that the command explains itself at once."""
    script = """
import sys
sys.argv = ["reprt"]
from reprt.lab.pages.registry import pages
assert len(pages()) > 4
heavy = {"keras", "tensorflow", "matplotlib", "jax"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", script], check=True)
