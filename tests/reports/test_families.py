"""Families side by side: the rate is chosen on one split, the numbers are another's."""

import dataclasses

import pytest
from fake_runs import OFFICIAL, row

from reprt.lab.pages import families
from reprt.lab.pages.families import choose, write_families
from reprt.lab.pages.files import label_points, new_figure
from reprt.lab.pages.freeze import freeze
from reprt.lab.pages.runs import read_runs
from reprt.lab.recipe import load_recipe
from reprt.lab.folder import RunFolder, RunFolderError


@pytest.fixture
def trial(add):
    """A function that writes a run of the losses on the two splits."""

    def trial(
        name, validation, test, bleu=30.0, under="a", label=None, early=False, **changes
    ):
        schedule, seed = name.split(".")[1:]
        metrics = {
            "val_prefix_loss_per_token": validation,
            "test_prefix_loss_per_token": test,
            **({} if bleu is None else {"test_bleu": bleu}),
            "out_of_time": early,
            "peak_memory_bytes": 2**30,
            "parameters_without_tables": 1000,
            "train_source_tokens": 10,
            "train_target_tokens": 10,
            "train_flops": 10**9,
        }
        rates = {
            "high": {"peak": 2e-3},
            "low": {"peak": 1e-3},
            "late": {"peak": 1e-3, "warmup_steps": 9},
        }
        return add(
            name,
            [row(1, 4.0, validation)],
            metrics,
            under=under,
            label=label,
            schedule=rates[schedule],
            training={"seed": int(seed)},
            **changes,
        )

    return trial


def rows(page, first):
    return [line for line in page.splitlines() if line.startswith(f"| {first} |")]


def test_the_validation_split_chooses_and_the_test_split_counts(trial, figures):
    trial("repe.high.0", 2.0, 9.0, label="RePE as published")
    trial("repe.high.1", 2.5, 9.5, label="RePE as published")
    trial("repe.low.0", 3.0, 1.0, label="RePE as published")
    trial("baseline.high.0", 4.0, 5.0, reference=True)
    trial("baseline.low.0", 3.5, 6.0, bleu=31.0, reference=True)
    folder = trial("baseline.low.1", 99.0, 7.0, bleu=33.0, reference=True)
    page = write_families(folder).read_text()
    assert rows(page, "RePE as published") == [
        "| RePE as published | **yes** | 2 | 9.250 ± 0.354 | **+2.750 ± 0.354** | "
        "30.0 ± 0.0 | -2.0 ± 1.4 | not run | 1.00e9 | 60 | 1.00 |",
        "| RePE as published | 3.000 | **2.250 ± 0.354** |",
        "| RePE as published | 1,234,567 | 1,000 | 10 | 10 | 1.20e5 | 1.00e9 | 0.017 "
        "| 1.67e7 |",
    ]
    assert "The reference is baseline." in page
    # The seed that only one rate has does not choose.
    assert rows(page, "baseline")[0].startswith("| baseline | no | 2 | 6.500")
    assert page.index("| baseline | no") < page.index("| RePE as published | **yes**")
    # What six runs have in common stands once.
    environment, way = page.split("### How it was run\n\n")[1].splitlines()
    assert environment.startswith("- ") and " cores, 1 replica(s), " in environment
    assert way.startswith("  - 6 × `reprt") and "cores" not in way
    (figure,) = figures(families, lambda: write_families(folder))
    shown = [
        [list(line.get_ydata()) for line in axis.lines if line.get_marker() in "o."]
        for axis in figure.axes
    ]
    # Of each model a curve a run, its dots of BLEU and those of the loss.
    assert sorted(shown[0]) == [[2.001], [2.501], [3.501], [99.001]]
    assert sorted(shown[1]) == [[30.0, 30.0], [31.0, 33.0]]
    assert sorted(shown[2]) == [[6.0, 7.0], [9.0, 9.5]]


def test_two_schedules_with_one_peak_are_two_rates(trial):
    trial("repe.low.0", 3.0, 1.0)
    trial("repe.late.0", 2.0, 5.0)
    page = write_families(trial("baseline.low.0", 4.0, 6.0)).read_text()
    peak = "inverse_sqrt from 0.001"
    assert f"| prefix loss, validation | {peak}, late | {peak}, low |" in page
    assert rows(page, "repe")[1] == "| repe | **2.000** | 3.000 |"
    assert rows(page, "baseline")[1] == "| baseline | not run | **4.000** |"


def test_a_run_that_ran_out_of_time_is_named(trial):
    trial("repe.low.0", 3.0, 1.0)
    page = write_families(trial("repe.low.1", 2.0, 5.0, early=True)).read_text()
    assert "Out of time before the last epoch, and counted: repe.low.1." in page


def test_texts_stand_apart_and_the_page_survives_freezing(trial, tmp_path):
    trial("repe.high.0", 2.0, 2.5, reference=True)
    trial("repe.low.0", 3.0, 3.5, reference=True)
    trial("baseline.low.0", 3.0, 4.0)
    words = {"official": False, "name": "another text"}
    folder = trial("repe.high.0", 4.0, 4.5, under="b", text_fields=words)
    (folder / "notes.md").write_text("# Mine\n\n## What it says\n\nMuch.\n")
    page = write_families(folder).read_text()
    assert page.startswith("# Mine\n\nThe *prefix loss*")
    assert "\n\n## What it says\n\nMuch.\n\n" in page
    row, *_ = rows(page, "baseline")
    assert row.startswith("| baseline | no | 1 | 4.000 | +1.500 |")
    assert "## another text" in page and "test pairs, not of TED-HRLR." in page
    frozen, unfinished = freeze(folder, tmp_path.with_name("frozen"))
    assert (frozen / "families.md").read_text() == page and not unfinished


def test_rates_without_a_common_seed_choose_none(trial):
    trial("repe.high.0", 2.0, 3.0)
    folder = trial("repe.low.1", 1.0, 3.0)
    with pytest.raises(RunFolderError, match=r"of repe .*'high': \{0\}, 'low': \{1\}"):
        write_families(folder)


def test_runs_that_differ_by_more_than_a_seed_are_no_series(trial):
    trial("repe.high.0", 2.0, 3.0)
    folder = trial("repe.high.1", 1.0, 3.0, model={"feed_forward_dim": 7})
    with pytest.raises(RunFolderError, match="high.0 and repe.high.1 .*in model.feed"):
        write_families(folder)


def test_a_run_of_an_older_version_is_named(trial, add):
    trial("repe.high.0", 2.0, 3.0)
    older = {"val_prefix_loss_per_token": 2.0}
    folder = add("repe.low.0", [row(1, 4.0, 3.0)], older, under="a")
    assert "Without these numbers: repe.low.0." in write_families(folder).read_text()


def test_a_run_without_bleu_has_no_difference_of_it(trial):
    trial("baseline.high.0", 4.0, 5.0, reference=True)
    folder = trial("repe.high.0", 2.0, 3.0, bleu=None)
    row, *_ = rows(write_families(folder).read_text(), "repe")
    assert "| 3.000 | -2.000 | not run | – |" in row


def test_a_page_can_be_written_before_any_run_has_finished(add):
    folder = add("repe.high.0", [row(1, 4.0, 3.0)], under="a")
    assert "Not finished: repe.high.0." in write_families(folder).read_text()
    assert choose([]) == [] and not (folder / "families.png").exists()


def test_labels_follow_the_recipe_of_a_run_that_is_there(add, text, papers_settings):
    folder = add("repe", label="an old name")
    asked = papers_settings("repe", label="a new name", colour="#0072b2")
    corpus = dataclasses.replace(text.corpus, **OFFICIAL)
    RunFolder(folder / "repe").open(asked, dataclasses.replace(text, corpus=corpus))
    (run,) = read_runs(folder)
    assert (run.label, run.colour) == ("a new name", "#0072b2")


@pytest.mark.parametrize(
    "line, message",
    [
        ('label = " "', "'label' with a letter"),
        ("label = 3", r"'label' in \[models.repe\] to be of type str"),
        ('colour = "blue"', "'colour' to be # and six digits .* Received: 'blue'"),
    ],
)
def test_mistakes_in_how_a_model_is_shown_are_named(tmp_path, line, message):
    path = tmp_path / "mine.toml"
    path.write_text(f'[models.repe]\npreset = "repe"\n{line}\n')
    with pytest.raises(ValueError, match=message):
        load_recipe(path)


def test_labels_of_points_that_lie_together_do_not_overlap():
    figure, axis = new_figure(1, 1, figsize=(4, 4))
    axis.set(xlim=(0, 1), ylim=(0, 1))
    label_points(axis, [(0.5, 0.99, name, "#000000") for name in "abcde"])
    heights = sorted(text.xyann[1] for text in axis.texts)
    assert all(b - a > 0.06 for a, b in zip(heights, heights[1:]))
    assert heights[-1] <= 1.0
