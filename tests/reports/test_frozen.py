"""Frozen experiments: runs come back as they were, and with them every page."""

import csv
import dataclasses
import importlib
import json
import pathlib

import pytest
from fake_runs import row

from reprt.cli import main
from reprt.reports.freeze import freeze
from reprt.reports.frozen import is_frozen, write_frozen
from reprt.reports.registry import PAGES, page_on
from reprt.reports.runs import read_runs, read_texts
from reprt.runs.recipe import load_recipe
from reprt.runs.run_folder import RunFolder, RunFolderError
from reprt.settings import as_table

RESULTS = pathlib.Path(__file__).parents[2] / "experiments" / "results"
COMMITTED = [
    (page, path.parent)
    for page in PAGES
    for path in sorted(RESULTS.glob(f"**/{page}.md"))
]
SCORES = [
    {"metric": metric, "form": form, "value": value, "signature": f"{metric}|{form}"}
    for metric, form, value in [
        ("BLEU", "corpus tokens", 31.25),
        ("chrF", "corpus tokens", 1e-7),
        ("BLEU", "detokenised", 30.0),
    ]
]
METRICS = {
    "parameters_without_tables": 10**6,
    "train_source_tokens": 40_000,
    "train_target_tokens": 12_000,
    "train_flops": 3 * 10**17 + 1,
    "out_of_time": False,
    "finished": "2026-11-21 14:09:26 +0000",
    "val_prefix_loss_per_token": 1 / 3,
    "test_bleu": 31.25,
    "test_bleu_signature": "BLEU|corpus tokens",
    "test_scores": SCORES,
}
EXAMPLE = {"source": 'o "não", 1 | 2', "reference": "17", "translation": ""}
AZ = {"official": True, "name": "TED-HRLR az_to_en", "pair": "az_to_en"}


def name(value):
    """Of a page and its folder."""
    return value if isinstance(value, str) else str(value.relative_to(RESULTS))


@pytest.fixture
def undrawn(monkeypatch):
    """Pages without their pictures, which take most of the time."""
    for page in PAGES:
        module = importlib.import_module(f"reprt.reports.{page}")
        monkeypatch.setattr(module, "_draw", lambda *_: None, raising=False)


def written(page, folder, out):
    """The files of a page by name, pictures left out."""
    out.mkdir(parents=True, exist_ok=True)
    PAGES[page].write(folder, out)
    return {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.mark.parametrize("page, folder", COMMITTED, ids=name)
def test_committed_pages_are_made_again_from_the_files_beside_them(
    page, folder, tmp_path, undrawn
):
    """To the byte; also when a setting of theirs has gone since."""
    for file, content in written(page, folder, tmp_path).items():
        assert content == (folder / file).read_bytes(), file


def test_a_committed_picture_is_drawn_again(tmp_path):
    PAGES["figure3"].write(RESULTS / "figure3" / "standin_pt_to_en", tmp_path)
    for ending in ("png", "svg"):
        assert (tmp_path / f"figure3.{ending}").stat().st_size > 50_000


def test_the_results_are_few_files_without_run_folders():
    folders = {path.parent for path in RESULTS.glob("**/*") if path.is_file()}
    assert all(len(list(folder.iterdir())) <= 9 for folder in folders)
    assert not any(RESULTS.glob("**/config.toml"))
    frozen = [path.parent for path in RESULTS.glob("**/runs.csv")]
    found = [run for folder in frozen for text in read_texts(folder) for run in text]
    # None of the 159 runs was lost that were there when folders became files.
    keys = {(run.name, *run.text_hashes, *starts(run)) for run in found}
    assert len(keys) >= 159 and len(found) - len(keys) == 180 - 159


def starts(run):
    return [start["time"] for start in run.manifest["starts"]]


@pytest.mark.parametrize("path", sorted(RESULTS.glob("**/recipe.toml")), ids=str)
def test_the_recipe_of_a_frozen_experiment_is_a_recipe(path):
    recipe = load_recipe(path)
    of_recipe = {run.name: run for run in recipe.runs(embedded=False)}
    with open(path.parent / "runs.csv", newline="", encoding="utf-8") as file:
        rows = {(each["text"], each["run"]): each for each in csv.DictReader(file)}
    for text in read_texts(path.parent):
        for run in text:
            if run.model in of_recipe:
                model = as_table(of_recipe[run.model].model)
                cells = rows.get((run.manifest["text"], run.name), {})
                own = {  # what differs between runs of a model, such as dropout
                    column.removeprefix("model."): json.loads(cell)
                    for column, cell in cells.items()
                    if column.startswith("model.") and cell
                }
                assert model | own == run.settings["model"]


@pytest.fixture
def live(add):
    """A folder of two finished trials and one under way, in which much differs."""
    rows = [row(1, 4.0, 1 / 3, 60.25), row(2, 3.0, 2e-5)]
    of_first = {"text_fields": {}, "training": {"seed": 3, "hours": 10.0}}
    add("repe.text.3", rows, {**METRICS, "examples": [EXAMPLE]}, **of_first)
    add("baseline.text.0", rows, METRICS, text_fields={}, schedule={"dim": 64})
    return add("repe-deep.text.0", rows[:1], text_fields={}, model={"num_blocks": 4})


def fields(run):
    """All that is known of a run; whether it looks ahead, it may have to say itself."""
    manifest = {**run.manifest, "looks_ahead": run.looks_ahead}
    results = run.metrics and {n: v for n, v in run.metrics.items() if n in METRICS}
    examples = run.results.get("examples")
    return run.settings, manifest, list(run.log), results, examples


def test_a_run_comes_back_as_it_was(live, tmp_path):
    RunFolder(live / "repe.text.3").add_start(["GPU:0", "GPU:1"])
    before = read_runs(live)
    place, unfinished = freeze(live, tmp_path / "frozen")
    assert unfinished == ["repe-deep.text.0"] and is_frozen(place)
    assert not [path for path in place.iterdir() if path.is_dir()]
    assert list(map(fields, read_runs(place))) == list(map(fields, before))
    assert [run.departures for run in read_runs(place)] == [
        run.departures for run in before
    ]


def test_sentences_of_others_texts_are_not_frozen(add, tmp_path):
    live = add("repe", [row(1, 4.0, 3.5)], {**METRICS, "examples": [EXAMPLE]})
    place, _ = freeze(live, tmp_path / "frozen")
    word = "não".encode()
    assert word in (live / "repe" / "metrics.json").read_bytes()
    assert not [path for path in place.iterdir() if word in path.read_bytes()]
    (run,) = read_runs(place)
    assert run.metrics and "examples" not in run.metrics


def test_results_that_the_log_tells_come_back_too(live, tmp_path):
    place, _ = freeze(live, tmp_path / "frozen")
    (run,) = (run for run in read_runs(place) if run.name == "repe.text.3")
    assert run.metrics["epochs"] == 2 and run.metrics["total_train_seconds"] == 120.25
    assert run.metrics["last_epoch"] == run.log[-1]


@pytest.mark.parametrize("page", ["comparison", "figure3", "report", "table1"])
def test_a_page_is_the_same_of_live_and_frozen_runs(live, tmp_path, page, undrawn):
    (live / "notes.md").write_text("What a person has to say.\n")
    place, _ = freeze(live, tmp_path / "frozen")
    of_live = written(page, live, tmp_path / "a" / "live")
    assert of_live and of_live == written(
        page, place, tmp_path / "a" / "frozen"
    )


@pytest.mark.parametrize("page", ["readings", "table1"])
def test_runs_on_several_texts_are_frozen_together(add, tmp_path, page, undrawn):
    for text in ("az, tokenised", "az"):
        fields = {**AZ, "name": text}
        for run in ("repe", "baseline"):
            about = {"text_fields": fields, "text": {"pair": "az_to_en"}}
            add(run, [row(1, len(text), 3.5)], METRICS, under=text, **about)
    padded = {"padding_in_statistics": True}
    live = add("repe-padded", under="az", model=padded, **about)
    PAGES[page].write(live)
    place, unfinished = freeze(live, tmp_path / "frozen")
    assert unfinished == ["repe-padded"]
    assert load_recipe(place / "recipe.toml").page == page
    file = f"{page}.md"  # the page that was there is written again
    assert (place / file).read_bytes() == (live / file).read_bytes()
    assert [len(text) for text in read_texts(place)] == [3, 2]


def test_the_command_names_what_is_not_finished_and_writes_the_page(
    live, capsys, monkeypatch
):
    (live / "notes.md").write_text("What a person has to say.\n")
    monkeypatch.chdir(live)
    assert main(["freeze", "."]) == 0
    said, place = capsys.readouterr(), live.with_name(f"{live.name}-frozen")
    assert said.out.strip() == str(place)
    assert "frozen before they had finished: repe-deep.text.0" in said.err
    page = (place / "comparison.md").read_text()
    assert "What a person has to say." in page
    # The mean of one run: 6·N·D, the products, and two epochs of a minute.
    cells = "1,234,567 | 1,000,000 | 40,000 | 12,000 | 3.12e11 | 3.00e17 | 0.033"
    assert page.count(f"{cells} | 2.49e15 |") == 2
    assert "300000000000000001,120.25" in (place / "comparison.csv").read_text()
    assert (place / "comparison.png").exists()


def test_a_frozen_experiment_is_frozen_again_with_more_runs(live, add, tmp_path):
    place, _ = freeze(live, tmp_path / "frozen")
    changes = {"text_fields": {}, "training": {"seed": 1}}
    add("repe-deep.text.1", [row(1, 4.0, 3.0)], METRICS, **changes)
    freeze(live, place)
    assert len(read_runs(place)) == 4


def test_a_folder_that_is_not_its_own_is_refused(live, tmp_path):
    other = tmp_path / "frozen"
    other.mkdir()
    (other / "letter.txt").write_text("mine")
    with pytest.raises(RunFolderError, match="with other files. Choose another"):
        freeze(live, other)
    assert [path.name for path in other.iterdir()] == ["letter.txt"]
    place, _ = freeze(live, tmp_path / "another")
    before = (place / "runs.csv").read_bytes()
    config = live / "repe.text.3" / "config.toml"
    config.write_text(config.read_text().replace("seed = 3", "seed = 4"))
    with pytest.raises(RunFolderError, match="with repe.text.3, .*not have.* Choose"):
        freeze(live, place)
    assert (place / "runs.csv").read_bytes() == before


def test_a_finished_run_is_not_replaced_by_an_unfinished_one(live, tmp_path):
    place, _ = freeze(live, tmp_path / "frozen")
    (live / "repe.text.3" / "metrics.json").unlink()
    with pytest.raises(RunFolderError, match="with repe.text.3, .*or not finished"):
        freeze(live, place)


def test_a_run_with_another_label_is_frozen_again(live, tmp_path):
    place, _ = freeze(live, tmp_path / "frozen")
    config = live / "repe.text.3" / "config.toml"
    config.write_text('label = "another"\n' + config.read_text())
    freeze(live, place)
    assert "another" in {run.label for run in read_runs(place)}


def test_a_folder_without_runs_is_not_frozen(tmp_path):
    with pytest.raises(RunFolderError, match="without any"):
        freeze(tmp_path, tmp_path / "frozen")
    assert not (tmp_path / "frozen").exists()


def test_the_same_text_from_two_places_is_one(live, tmp_path):
    path = live / "repe.text.3" / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "origin": "elsewhere"}))
    place, _ = freeze(live, tmp_path / "frozen")
    origins = {run.name: run.manifest["origin"] for run in read_runs(place)}
    assert origins.pop("repe.text.3") == "elsewhere"
    assert set(origins.values()) == {manifest["origin"]}


def test_a_run_that_does_not_say_where_its_text_was_stays_so(live, tmp_path):
    for path in live.glob("*/manifest.json"):
        manifest = json.loads(path.read_text())
        del manifest["origin"]
        path.write_text(json.dumps(manifest))
    place, _ = freeze(live, tmp_path / "frozen")
    assert not any("origin" in run.manifest for run in read_runs(place))


def test_a_frozen_run_has_to_say_whether_it_looks_ahead(live, tmp_path):
    place, _ = freeze(live, tmp_path / "frozen")
    rows = (place / "runs.csv").read_text().splitlines(keepends=True)
    (place / "runs.csv").write_text(rows[0].replace("looks_ahead", "x") + rows[1])
    with pytest.raises(ValueError, match="Missing in the run .*: 'looks_ahead'"):
        read_runs(place)


def test_two_texts_of_one_name_are_not_frozen_together(live, tmp_path):
    first, second, *_ = read_runs(live)
    other = {**second.manifest, "source_vocabulary_sha256": "0"}
    with pytest.raises(ValueError, match="one text called .*: freeze their runs apart"):
        write_frozen([first, dataclasses.replace(second, manifest=other)], tmp_path)
    with pytest.raises(ValueError, match="one run called 'repe.text.3' .*Received two"):
        write_frozen([run for run in read_runs(live) if run.seed] * 2, tmp_path)


def test_a_selection_takes_runs_of_other_folders(live, tmp_path):
    place, _ = freeze(live, tmp_path / "frozen")
    for there in (live, place):
        folder = tmp_path / f"from-{there.name}" / "page"
        folder.mkdir(parents=True)
        names = '["repe", "baseline.text.0"]'
        (folder / "selection.toml").write_text(f'"{there}" = {names}\n')
        found = [run.name for run in read_runs(folder)]
        assert found == ["baseline.text.0", "repe.text.3"]
    with pytest.raises(RunFolderError, match="another --out .*there twice"):
        freeze(folder, folder)
    (folder / "selection.toml").write_text(f'"{place}" = ["repe", "repe.text.3"]\n')
    with pytest.raises(RunFolderError, match="once. Received repe.text.3 more often"):
        read_runs(folder)
    (folder / "selection.toml").write_text(f'"{place}" = ["rep"]\n')
    with pytest.raises(RunFolderError, match="selection.toml to be in .*'rep'"):
        page_on("report", folder)
