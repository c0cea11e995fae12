"""Frozen runs stay readable, whatever the settings of today no longer know."""

import json
import re
import shutil
from pathlib import Path

import pytest
from elsewhere import python
from fake_runs import row
from test_committed import COMMITTED_PAGES, RESULTS

import reprt
from reprt_lab.folder import RunFolder
from reprt_lab.pages import write_page
from reprt_lab.pages.freeze import freeze
from reprt_lab.pages.runs import read_texts
from reprt_lab.records import read_records

FIELD = r'    %s: bool = .*\n    """(.|\n)*?"""\n'
# What is taken out of the package, by its files: a setting of models, one of
# trainings, all presets of recurrent models, and their family.
REMOVED_SETTINGS = {
    "models/settings.py": [FIELD % "query_key_norm"],
    "training/settings.py": [FIELD % "tensorboard"],
    "models/presets.toml": [
        "query_key_norm = true\n",
        r"\[recurrent.*\n([^\[].*\n)*",
    ],
    "models/presets.py": ['    "recurrent": RecurrentConfig,\n'],
}
WRITE = """
import sys
from pathlib import Path
import reprt
from reprt_lab.pages import pictures, write_page
assert Path(reprt.__file__).is_relative_to(Path.cwd())
pictures.save_figure = lambda figure, path: None
for page in map(Path, sys.argv[1:]):
    page.unlink()
    assert write_page(page.parent) == page
"""


def test_every_page_is_written_without_settings_that_frozen_runs_have(tmp_path):
    package = tmp_path / "reprt"
    shutil.copytree(Path(reprt.__file__).parent, package, symlinks=True)
    for name, patterns in REMOVED_SETTINGS.items():
        path = package / name
        text = path.read_text("utf-8")
        for pattern in patterns:
            text, count = re.subn(pattern, "", text)
            assert count, pattern
        path.write_text(text, "utf-8")
    results = shutil.copytree(RESULTS, tmp_path / "results")
    pages = [results / page.relative_to(RESULTS) for page in COMMITTED_PAGES]
    python(WRITE, *pages, cwd=tmp_path)
    text = (results / "table1" / "table1.md").read_text("utf-8")
    assert "model.query_key_norm = False" in text


@pytest.fixture
def add_frozen(tmp_path):
    """A function that adds a frozen run with another value; returns their folder."""
    line = (
        (RESULTS / "embedded_corpus" / "runs.jsonl").read_text().splitlines()[0]
    )
    lines = []

    def add_frozen(table, key, value):
        run = json.loads(line)
        run["settings"].setdefault(table, {})[key] = value
        lines.append(json.dumps(run) + "\n")
        (tmp_path / "runs.jsonl").write_text("".join(lines))
        return tmp_path

    return add_frozen


@pytest.mark.parametrize(
    "table, key",
    [
        ("model", "gone"),
        ("model", "position"),
        ("training", "gone"),
        ("gone", "key"),
        *((table, "name") for table in ("optimizer", "schedule", "vocabulary")),
    ],
)
def test_what_is_gone_tells_runs_apart_and_is_shown(
    add_frozen, table, key, tmp_path_factory, figures
):
    add_frozen(table, key, "first")
    folder = add_frozen(table, key, "second")
    (runs,) = read_texts(folder)
    departures = [f"{table}.{key} = first", f"{table}.{key} = second"]
    assert [{*departures} & {*run.departures} for run in runs] == [
        {departures[0]},
        {departures[1]},
    ]
    out, _ = freeze(folder, tmp_path_factory.mktemp("frozen"))
    assert read_records(out / "runs.jsonl") == runs
    page = (out / "report.md").read_text()
    assert all(departure in page for departure in departures)


def test_a_run_of_a_preset_that_is_gone_shows_the_whole_model(
    add_frozen, figures
):
    folder = add_frozen("model", "num_blocks", 2)
    line = (folder / "runs.jsonl").read_text()
    other_line = re.sub('"preset": "[^"]*"', '"preset": "gone"', line)
    (folder / "runs.jsonl").write_text(line + other_line)
    (runs,) = read_texts(folder)
    known_run, unknown_run = sorted(
        runs, key=lambda run: run.settings.preset == "gone"
    )
    assert "model.num_blocks = 2" in unknown_run.departures
    assert "model.num_blocks = 2" not in known_run.departures


def test_a_live_run_is_read_so_for_a_page_only(add, figures):
    folder = add("repe", [row(1, 3.0, 2.0)], {})
    config = folder / "repe" / "config.toml"
    config.write_text(config.read_text() + "\n[gone]\nkey = 1\n")
    assert "gone.key = 1" in write_page(folder).read_text()
    with pytest.raises(ValueError, match="Unknown key 'gone'"):
        RunFolder(folder / "repe").settings()


@pytest.mark.parametrize(
    "table, key, value, message",
    [
        (
            "training",
            "seed",
            "three",
            "'settings.training.seed' in .* valid integer",
        ),
        (
            "batching",
            "size",
            0,
            "'settings.batching.size' in .* than or equal to 1",
        ),
        (
            "model",
            "dropout",
            "x",
            "'settings.model.dropout' in .* valid number",
        ),
        (
            "schedule",
            "peak",
            -1.0,
            "'settings.schedule.peak' in .* greater than 0",
        ),
    ],
)
def test_a_damaged_value_is_still_refused(
    add_frozen, table, key, value, message
):
    with pytest.raises(ValueError, match=message):
        read_texts(add_frozen(table, key, value))
