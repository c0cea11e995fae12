"""Recipes, commands and jobs ask the dictionary of pages."""

import importlib
import subprocess
import sys

import pytest
from fake_runs import row

from reprt.cli import main
from reprt.jobs import job
from reprt.reports.registry import PAGES, page_on


def test_every_page_is_there_with_its_command(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    told = capsys.readouterr().out
    for name, page in PAGES.items():
        assert (f"    {name} " in told) == (name != "comparison")
        module, function = page.writer.split(":")
        assert hasattr(importlib.import_module(f"reprt.reports.{module}"), function)


def test_a_job_writes_the_page_where_its_folder_is(add):
    folder = add("repe", [row(1, 4.0, 3.0)], under="text")
    assert job.write_page("table1", folder / "text") == folder / "table1.md"
    assert (folder / "text" / "report.md").exists()


def test_an_unknown_page_is_named_before_any_work(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_text('page = "table2"\n[models.repe]\npreset = "repe"\n')
    assert main(["train", str(path), "--text", str(tmp_path / "absent")]) == 2
    told = capsys.readouterr().err
    assert "Expected 'page' in the recipe 'mine' to be one of ('comparison'" in told
    assert told.rstrip().endswith("Received: 'table2'.")


def test_trials_are_compared_and_other_runs_reported_on(add, tmp_path):
    assert page_on("report", add("repe", under="a") / "a") == PAGES["report"]
    assert page_on("report", add("repe.0", under="b") / "b") == PAGES["comparison"]
    assert page_on("table1", tmp_path / "b") == PAGES["table1"]


def test_the_command_explains_itself_at_once():
    """Without NumPy, Keras or a page."""
    script = """
import sys
sys.argv = ["reprt", "--help"]
from reprt.cli import main
try:
    main()
finally:
    known = {name.partition(".")[0] for name in sys.modules}
    assert not {"numpy", "keras", "tensorflow", "matplotlib"} & known
    assert not [name for name in sys.modules if name.startswith("reprt.reports.t")]
"""
    subprocess.run([sys.executable, "-c", script], check=True)
