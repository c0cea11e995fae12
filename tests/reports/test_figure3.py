"""Figure 3: all trials, their mean and its band, from result files alone."""

import csv

import numpy as np
from fake_runs import row

from reprt.lab import paper
from reprt.lab.pages import figure3
from reprt.lab.pages.figure3 import bootstrap_interval, write_figure3


def points(folder, **wanted):
    """The rows of the numbers behind the picture that have these values."""
    with open(folder / "figure3.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return [row for row in rows if wanted.items() <= row.items()]


def test_means_are_over_the_trials_that_reached_the_epoch(add, figures):
    add("repe.0", [row(1, 4.0, 3.0), row(2, 3.0, 2.0)], {})
    add("repe.1", [row(1, 6.0, 5.0)], training={"seed": 1})
    folder = add("baseline.0", [row(1, 7.0, 7.0)])
    page = write_figure3(folder).read_text()
    first, second = points(folder, source="ours", model="repe", loss="train_loss")
    assert (first["mean"], first["trials"]) == ("5.00000", "2")
    assert float(first["low"]) == 4.0 and float(first["high"]) == 6.0
    # One trial tells nothing of the spread.
    assert (second["mean"], second["trials"], second["low"]) == ("3.00000", "1", "")
    assert "baseline: 1, RePE as published: 2" in page
    assert "| RePE as published, training, ours | 5.00 (4.00–6.00) | 3.00 |" in page
    assert "repe**, seed 1, under way" in page
    png, svg = figures(figure3, lambda: write_figure3(folder))
    for figure in (png, svg):
        curves = {
            line.get_label().partition(" (trials")[0]: list(line.get_ydata())
            for line in figure.axes[0].lines
        }
        assert curves["RePE as published, training, ours"] == [5.0, 3.0]
        assert curves["RePE as published, validation, ours"] == [4.0, 2.0]
        assert curves["baseline, validation, ours"] == [7.0]


def test_the_papers_means_are_beside_ours(add):
    folder = add("repe.0", [row(1, 4.0, 3.0)], {})
    page = write_figure3(folder).read_text()
    for model, losses in paper.FIGURE_3A.items():
        for loss, means in losses.items():
            theirs = points(folder, source="paper", model=model, loss=loss)
            assert tuple(float(point["mean"]) for point in theirs) == means
    assert "4,297.8 ± 675.8" in page and "1,352.3 ± 144.5" in page


def test_what_was_not_run_says_so_in_numbers_and_picture(add):
    folder = add("repe.0", [row(1, 4.0, 3.0)], {})
    page = write_figure3(folder).read_text()
    assert "by their seeds: baseline: not run, RePE as published: 1." in page
    assert "| baseline, training, ours | not run |" in page
    assert "| baseline | not run | 4,297.8" in page
    svg = (folder / "figure3.svg").read_text()
    assert svg.lstrip().startswith("<?xml") and len(svg) > 10_000
    assert (folder / "figure3.png").read_bytes()[:4] == b"\x89PNG"


def test_another_text_names_itself(add):
    mine = {"official": False, "name": "pt_to_en from mine (not TED)"}
    folder = add("repe.0", [row(1, 4.0, 3.0)], {}, text_fields=mine)
    page = write_figure3(folder).read_text()
    assert page.startswith("# Figure 3 on pt_to_en from mine (not TED)\n")
    assert "Not comparable with the paper" in page
    assert "| RePE as published, training, ours, pt_to_en from mine (not TED) |" in page
    mine_again = points(folder, source="ours")
    assert {point["text"] for point in mine_again} == {mine["name"]}


def test_runs_with_other_settings_are_not_among_the_trials(add):
    add("repe.text.0", [row(1, 4.0, 3.0)], {})
    add("repe.equal.0", [row(1, 9.0, 9.0)], {}, schedule={"dim": 128})
    folder = add("repe-prefix.text.0", [row(1, 1.0, 1.0)], {})
    write_figure3(folder)
    (point,) = points(folder, source="ours", model="repe", loss="val_loss")
    assert (point["mean"], point["trials"]) == ("3.00000", "1")


def test_the_interval_covers_the_mean_about_as_often_as_it_says():
    random = np.random.default_rng(0)
    intervals = [bootstrap_interval(random.normal(size=10)) for _ in range(300)]
    covered = np.mean([low < 0 < high for low, high in intervals])
    # The percentile bootstrap of ten values is somewhat too narrow.
    assert 0.85 < covered < 0.97


def test_a_pair_whose_name_ends_alike_is_not_the_papers(add):
    glpt = {"official": True, "name": "TED-HRLR glpt_to_en", "pair": "glpt_to_en"}
    text = {"pair": "glpt_to_en"}
    folder = add("repe.0", [row(1, 4.0, 3.0)], {}, text_fields=glpt, text=text)
    assert "Not comparable with the paper" in write_figure3(folder).read_text()


def test_the_same_trials_give_the_same_files(add):
    folder = add("repe.0", [row(1, 4.0, 3.0)], {})
    write_figure3(folder)
    first = [path.read_bytes() for path in sorted(folder.glob("figure3.*"))]
    write_figure3(folder)
    assert first == [path.read_bytes() for path in sorted(folder.glob("figure3.*"))]
