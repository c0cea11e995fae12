"""Trials: how a recipe multiplies, how they are compared, how processes share them."""

import csv
import dataclasses
import pathlib
import subprocess
import sys

import pytest
from fake_runs import row

from reprt.presets import preset
from reprt.lab.pages import comparison
from reprt.lab.pages.comparison import is_comparison, write_comparison
from reprt.lab.pages.runs import Run
from reprt.lab.recipe import load_recipe
from reprt.lab.folder import RunFolder

EXPERIMENTS = pathlib.Path(__file__).parents[2] / "experiments"
RECIPE = """
[training]
epochs = 2
[trials]
seeds = [0, 5]
[trials.schedules]
text = {}
equal = { dim = 128 }
[models.baseline]
preset = "baseline"
[models.repe]
preset = "repe"
"""


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "trials.toml"
        path.write_text(text)
        return path

    return write


def names(recipe, **arguments):
    return [run.name for run in recipe.runs(False, **arguments)]


def test_every_combination_is_a_run_and_the_same_work_is_done_once(write):
    recipe = load_recipe(write(RECIPE))
    # The baseline's own schedule is the equal one.
    assert names(recipe) == [
        "baseline.text.0",
        "repe.text.0",
        "repe.equal.0",
        "baseline.text.5",
        "repe.text.5",
        "repe.equal.5",
    ]
    runs = {run.name: run for run in recipe.runs(False)}
    assert runs["repe.text.5"].training.seed == 5
    assert runs["repe.text.5"].schedule.dim is None
    assert runs["repe.equal.0"].schedule.dim == 128


def test_runs_are_chosen_by_the_beginning_of_their_names(write):
    recipe = load_recipe(write(RECIPE))
    assert names(recipe, only=["repe.equal", "baseline.text.5"]) == [
        "repe.equal.0",
        "baseline.text.5",
        "repe.equal.5",
    ]
    with pytest.raises(ValueError, match="Asked for: rep"):
        names(recipe, only=["rep"])


@pytest.mark.parametrize(
    "line, message",
    [
        ("seeds = [0, 0]", "seeds of .* to differ"),
        ("seeds = 3", "'seeds' in .* of type list"),
        ("seed = [0]", "'seed' in .*'seeds'"),
        ("seeds = [-1]", "'seed' in .training. to be from 0"),
        ('seeds = [0]\nschedules."a/b" = {}', "letters, digits"),
        ("seeds = [0]\nschedules.a = {warmup = 1}", "'warmup'.*'warmup_steps'"),
        ("schedules.a = 1", "to be a table"),
    ],
)
def test_mistakes_in_trials_are_named(write, line, message):
    with pytest.raises(ValueError, match=message):
        load_recipe(write(f'[trials]\n{line}\n[models.repe]\npreset = "repe"'))


def test_the_ablation_is_the_whole_grid():
    runs = load_recipe(EXPERIMENTS / "ablation.toml").runs(embedded=True)
    models = {run.name.split(".")[0]: run.model for run in runs}
    grid = {
        (m.position, m.embedding_norm, m.value)
        for m in models.values()
        if m.num_blocks == 2 and m.embedding_dim == 64
    }
    assert len(grid) == 8
    assert models["repe"] == preset("repe", dropout=0.0)
    assert models["baseline"] == preset("baseline", dropout=0.0)
    ahead = {name for name, m in models.items() if m.embedding_norm == "token_norm"}
    twins = {name.removesuffix("-prefix") for name in ahead if "prefix" in name}
    assert twins == {n for n in ahead if "prefix" not in n} - {"repe-padded"}
    assert {run.training.seed for run in runs} == {0, 1, 2}
    # Every model has the baseline's rates, and RePE's.
    rates = {(run.name.split(".")[0], run.schedule_dim) for run in runs}
    assert rates == {(name, dim) for name in models for dim in (64, 128)}


@pytest.fixture
def add(tmp_path, text, settings):
    """A function that writes the folder of a finished trial; returns that of all."""

    def add(name, forced, prefix, bleu, model=None, seconds=2.0):
        model_name, schedule, seed = name.split(".")
        dim = 128 if schedule == "equal" else None
        own = settings(model_name.partition("-")[0], model)
        training = dataclasses.replace(own.training, seed=int(seed))
        schedule = dataclasses.replace(own.schedule, dim=dim)
        own = dataclasses.replace(own, name=name, training=training, schedule=schedule)
        files = RunFolder(tmp_path / name)
        files.open(own, text)
        files.add_start(["CPU:0"], looks_ahead=name.startswith("repe."))
        row = {
            "epoch": 1,
            "train_loss": 3.0,
            "train_loss_per_token": 3.0,
            "val_loss": forced,
            "val_loss_per_token": forced,
            "train_tokens": 10,
            "train_seconds": seconds,
        }
        files.write_log([row])
        if prefix is not None:
            files.write_metrics(
                {
                    "parameters": 123,
                    "val_prefix_loss_per_token": prefix,
                    "test_bleu": bleu,
                    "finished": "now",
                }
            )
        return tmp_path

    return add


def test_the_page_sets_both_losses_side_by_side_with_their_spread(add, figures):
    add("repe.equal.0", 1.0, 3.0, 4.0)
    add("repe.equal.1", 2.0, 5.0, 6.0)
    add("repe-prefix.equal.0", 2.0, 2.0, 8.0, {"decoder_statistics": "prefix"})
    add("repe.equal.2", 2.0, None, None)
    folder = add("baseline.text.0", 2.5, 2.5, 7.0, {"embedding_dim": 128})
    # Its second run has a pair with one model, and none with the other.
    add("baseline.text.1", 2.5, 3.5, 9.0, {"embedding_dim": 128})
    assert is_comparison(folder)
    page = write_comparison(folder).read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ")][1:]
    # The best by the prefix loss comes first, and the baseline is in the same table.
    assert rows == [
        "| repe-prefix | no | 1 | 123 | 2.000 | 2.000 | +0.000 | -0.500 | 8.00 | 2.0 |",
        "| baseline | no | 2 | 123 | 2.500 ± 0.000 | 3.000 ± 0.707 | +0.500 | – | "
        "8.00 ± 1.41 | 2.0 ± 0.0 |",
        "| repe | **yes** | 2 | 123 | 1.500 ± 0.707 | 4.000 ± 1.414 | +2.500 | "
        "+1.000 ± 0.707 | 5.00 ± 1.41 | 2.0 ± 0.0 |",
    ]
    assert "Not finished: repe.equal.2." in page
    assert "embedded corpus" in page and "none on TED-HRLR" in page
    with open(folder / "comparison.csv", newline="") as file:
        by_name = {row["run"]: row for row in csv.DictReader(file)}
    assert set(by_name) == {
        "baseline.text.0",
        "baseline.text.1",
        "repe-prefix.equal.0",
        "repe.equal.0",
        "repe.equal.1",
    }
    assert by_name["repe.equal.1"]["val_prefix_loss_per_token"] == "5.00000"
    assert by_name["repe.equal.1"]["looks_ahead"] == "True"
    assert by_name["baseline.text.0"]["schedule_dim"] == "128"
    (figure,) = figures(comparison, lambda: write_comparison(folder))
    dots = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    hollow, filled = (
        [list(line.get_xdata()) for line in dots if line.get_fillstyle() == style]
        for style in ("none", "full")
    )
    assert hollow == [[2.0], [2.5, 2.5], [1.0, 2.0]]
    assert filled == [[2.0], [2.5, 3.5], [3.0, 5.0]]


def test_a_page_can_be_written_before_any_trial_has_finished(add):
    folder = add("repe.text.0", 1.0, None, None)
    assert "Not finished: repe.text.0." in write_comparison(folder).read_text()


def test_trials_that_did_not_search_have_their_losses(add):
    folder = add("repe.equal.0", 1.0, 3.0, 4.0)
    files = RunFolder(folder / "repe.equal.0")
    measured = files.metrics()
    files.write_metrics({n: measured[n] for n in ("parameters", "finished")})
    page = write_comparison(folder).read_text()
    assert "| 1.000 | not run | – | – | not run |" in page
    assert "Not finished" not in page and (folder / "comparison.png").exists()
    # What looking ahead is worth is that of the runs with both losses.
    add("repe.equal.1", 2.0, 5.0, 6.0)
    page = write_comparison(folder).read_text()
    assert "| repe | **yes** | 2 | 123 | 1.500 ± 0.707 | 5.000 | +3.000 | – |" in page


def test_notes_survive_the_next_writing(add):
    folder = add("repe.text.0", 1.0, 3.0, 4.0)
    (folder / "notes.md").write_text("What a person has to say.\n")
    assert "What a person has to say." in write_comparison(folder).read_text()


def test_a_run_belongs_to_whoever_claims_it_first(tmp_path):
    folder = RunFolder(tmp_path / "out" / "repe")
    script = f"""
from pathlib import Path
from reprt.lab.folder import RunFolder
with RunFolder(Path({str(folder.path)!r})).claimed() as mine:
    print(mine)
"""

    def elsewhere():
        done = subprocess.run(
            [sys.executable, "-c", script], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    with folder.claimed() as mine:
        assert mine and elsewhere() == "False"
    assert elsewhere() == "True"


def test_an_epoch_that_was_cut_does_not_change_the_speed(papers_settings):
    log = [row(epoch, 4.0, 3.0, 10.0) for epoch in (1, 2, 3)]
    log[-1] |= {"train_tokens": 600, "train_seconds": 1.0}
    run = Run(papers_settings("repe").as_tables(), {"looks_ahead": True}, log, None)
    assert run.numbers["tokens_per_second"] == 600


@pytest.mark.parametrize(
    "schedule, rate, departure",
    [
        ({}, "m = 64", None),
        ({"dim": 128}, "m = 128", "schedule.dim = 128"),
        ({"peak": 0.1}, "inverse_sqrt from 0.1", "schedule.peak = 0.1"),
        ({"name": "cosine"}, "cosine from 0.0006", "schedule.floor = 6e-05"),
    ],
)
def test_pages_tell_what_rates_follow_from(papers_settings, schedule, rate, departure):
    settings = papers_settings("repe", schedule=schedule)
    run = Run(settings.as_tables(), {"looks_ahead": True}, [], None)
    assert run.rate == rate
    assert departure in run.departures if departure else not run.departures
