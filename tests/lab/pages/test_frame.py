"""What pages compute of runs: means, differences by seed, the choice of a rate."""

import pytest
from fake_runs import row

from reprt.analysis import scores
from reprt.analysis.cost import COST_FIELDS
from reprt_lab.pages.cost import cost_section
from reprt_lab.pages.families import choose
from reprt_lab.pages.frame import (
    BLEU,
    LOSS,
    PREFIX,
    Group,
    cells,
    group_by_settings,
    group_runs,
    nearest_to_paper,
    parameters,
    runs_table,
    scores_of,
    spread,
)
from reprt_lab.pages.pictures import colours
from reprt_lab.pages.runs import read_texts

RATES = {
    "high": {"peak": 2e-3},
    "low": {"peak": 1e-3},
    "late": {"peak": 1e-3, "warmup_steps": 9},
}


@pytest.fixture
def table(add):
    """A function that returns the table of runs: name, validation, test and BLEU."""

    def table(*runs, **changes):
        for name, *losses in runs:
            _, schedule, seed = name.split(".")
            metrics = dict(zip((PREFIX, LOSS, BLEU), losses))
            folder = add(
                name,
                [row(1, 4.0, 3.0)],
                {**metrics, "train_flops": 10**9},
                schedule=RATES[schedule],
                training={"seed": int(seed)},
                **(changes if name == runs[-1][0] else {}),
            )
        return runs_table(read_texts(folder)[0])

    return table


def test_differences_are_paired_by_the_seeds_that_both_have(table):
    repe, baseline = group_runs(
        table(
            ("repe.low.0", 2.0, 1.0, 30.0),
            ("repe.low.1", 5.0, 1.0),
            ("baseline.low.1", 1.0, 1.0, 20.0),
            ("baseline.low.0", 1.5, 1.0, 10.0),
            ("baseline.low.2", 99.0, 1.0, 10.0),
        )
    )[::-1]
    assert list(repe.differences(baseline, PREFIX)) == [0.5, 4.0]
    assert list(repe.differences(baseline, BLEU)) == [
        20.0
    ]  # one was not measured
    assert repe.cell(PREFIX, 2) == "3.50 ± 2.12"
    assert repe.cell(BLEU, 1) == "30.0"
    assert repe.cell("test_chrf", 1) == "–"
    assert parameters(repe) == "1,234,567"
    assert spread([2.0, float("nan")], 1) == "2.0"
    assert spread(repe.differences(repe, BLEU), 1, "+") == "–"


def test_rates_without_a_seed_in_common_are_refused(table):
    seeds = r"of repe .*from 0.001': \[1\], .*from 0.002': \[0\]"
    with pytest.raises(ValueError, match=seeds):
        choose(table(("repe.high.0", 2.0, 3.0), ("repe.low.1", 1.0, 3.0)))


def test_runs_of_other_settings_under_one_name_are_told_apart(table):
    runs = ("repe.high.0", 2.0, 3.0), ("repe.high.3", 2.0, 3.0)
    results = table(*runs, model={"feed_forward_dim": 7})
    assert [len(group.table) for group in group_runs(results)] == [1, 1]


def test_two_presets_under_one_name_are_told_apart(table):
    runs = ("repe.high.0", 2.0, 3.0), ("repe.high.1", 2.0, 3.0)
    results = table(("recurrent.high.0", 2.0, 3.0), *runs, preset="repe-causal")
    assert len(group_runs(results)) == 3
    (group,) = nearest_to_paper(results["run"]).values()
    assert group.table["name"].tolist() == ["repe.high.0"]


def test_two_schedules_with_one_peak_are_two_rates(table):
    results = table(
        ("repe.low.0", 3.0, 1.0),
        ("repe.late.0", 2.0, 5.0),
        ("repe.high.0", 2.0, 5.0),
    )
    assert dict(zip(results["schedule"], results["rate"])) == {
        "low": "inverse_sqrt from 0.001, low",
        "late": "inverse_sqrt from 0.001, late",
        "high": "inverse_sqrt from 0.002",
    }


def test_pictures_show_all_models_if_none_has_a_colour(add):
    for number in range(9):
        folder = add(f"repe-{number}", [row(1, 4.0, 3.0)])
    assert len(colours(group_by_settings(read_texts(folder)[0]))) == 9


def test_an_epoch_that_was_cut_does_not_change_the_speed(add):
    rows = [row(epoch, 4.0, 3.0, 10.0) for epoch in (1, 2)]
    rows[-1] |= {"train_tokens": 600, "train_seconds": 1.0}
    (run,) = read_texts(add("repe", rows))[0]
    assert run.numbers["tokens_per_second"] == 600
    assert run.numbers["seconds_an_epoch"] == 10.0


def test_a_seed_counts_once_whatever_its_hours_and_each_runs_devices(add):
    rows, cost = [row(1, 4.0, 3.0)], dict.fromkeys(COST_FIELDS, 10**9)
    add("repe", rows, cost)
    add("repe.0", rows, cost)  # the same run with a seed in its name
    add("repe.1", rows, cost, training={"seed": 1, "hours": 24.0})
    settings = {"seed": 2, "hours": 24.0}
    folder = add(
        "repe.2", rows, cost | {"out_of_time": True}, training=settings
    )
    runs = read_texts(folder)[0]
    for groups in (group_by_settings(runs), group_runs(runs_table(runs))):
        assert [[*group.table["seed"]] for group in groups] == [[0, 1, 2]]
    assert "training.hours = 24.0" in runs[3].departures != runs[2].departures
    (start,) = runs[2].manifest.starts
    starts = [
        start.changed(devices=[*"abcd"])
    ]  # 60 seconds on four, and on one
    runs[2] = runs[2].changed(manifest=runs[2].manifest.changed(starts=starts))
    assert " 0.042 " in cost_section([Group("ours", runs_table(runs[1:3]))])


def test_pages_show_the_metrics_that_name_them(add, monkeypatch):
    *metrics, ter = scores.METRICS
    ter = ter._replace(pages={"families": 1, "report": 2})
    monkeypatch.setattr(scores, "METRICS", (*metrics, ter))
    score = {
        "metric": "TER",
        "form": "corpus tokens",
        "value": 61.5,
        "signature": "s",
    }
    folder = add("repe", [row(1, 4.0, 3.0)], {"test_scores": [score]})
    (group,) = group_by_settings(read_texts(folder)[0])
    expected = {"BLEU": "–", "chrF": "–", "TER": "61.5"}
    assert cells(group, scores_of("families")) == expected
    assert [metric.name for metric in scores.metrics_of_page("report")] == [
        "BLEU",
        "TER",
    ]
