import re
from typing import get_args

import pytest
from fake_runs import row

from reprt.analysis.scores import Score
from reprt.data.corpora.embedded import NAME as EMBEDDED
from reprt_lab import paper
from reprt_lab.folder import RunFolder
from reprt_lab.pages import write_page
from reprt_lab.recipe import Page

AZ = {"text": "TED-HRLR az_to_en", "pair": "az_to_en"}
OUR_LABEL = "ours, TED-HRLR pt_to_en"
PREFIX, TEST = "val_prefix_loss_per_token", "test_prefix_loss_per_token"
COST = {
    "parameters_without_tables": 1000,
    "train_source_tokens": 10,
    "train_target_tokens": 10,
    "train_flops": 10**9,
}

pytestmark = pytest.mark.usefixtures("figures")


def page(folder, name):
    return write_page(folder, name).read_text("utf-8")


def lines(text, *cells):
    """The cells of the table's lines that begin with these."""
    rows = []
    for line in text.splitlines():
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return [row[len(cells) :] for row in rows if row[: len(cells)] == [*cells]]


@pytest.mark.parametrize("name", sorted(set(get_args(Page)) - {"readings"}))
def test_a_page_can_be_written_before_any_epoch_has_ended(add, figures, name):
    folder = add("repe.text.0")
    (folder / "notes.md").write_text(
        "What I *saw*.\n\né bom\n", encoding="utf-8"
    )
    text = page(folder, name)
    if name in ("report", "translation"):
        assert (
            "> **Not finished.** repe.text.0 was interrupted, after 0" in text
        )
    elif name not in ("figure3", "table1"):
        assert re.search("Not finished.*: repe.text.0.", text)
    assert "\n\nWhat I *saw*.\n\né bom\n\n" in text and "\n\n\n" not in text
    assert (".png)" in text) == bool(figures)


def test_a_run_that_has_not_begun_is_not_on_the_page(add):
    add("baseline.text.0", starts=0)
    assert "baseline.text.0" not in page(add("repe.text.0"), "report")


def test_official_results_stand_beside_the_papers_with_the_difference(
    add, figures
):
    add("repe", [row(1, 3.0, 2.0), row(2, 1.25, 1.5)], {"test_bleu": 31.24})
    text = page(add("baseline", [row(1, 1.84, 2.1, 120.0)], {}), "report")
    assert text.startswith("# RePE and its baseline on TED-HRLR pt_to_en\n")
    assert "not comparable" not in text.lower()
    paper_row = "10,184,162 (on pt_to_en)|10|1.84|2.13|–|–|4,049|–"
    paper_label = "paper, TED-HRLR pt_to_en"
    assert lines(text, "baseline", paper_label) == [paper_row.split("|")]
    our_row = "1,234,567|2|1.250|1.500|+0.03|-0.03|60.0|31.2"
    assert lines(text, "repe", OUR_LABEL) == [our_row.split("|")]
    for model, *losses in (
        ("baseline", "1.841", "2.101"),
        ("repe", "1.251", "1.501"),
    ):
        assert lines(text, model, f"`{model}`", model) == [losses]
    assert "**Read the losses of repe with care.**" in text


def test_every_number_on_another_text_carries_its_name(add):
    example = {"source": "o *1*", "reference": "a | b", "translation": "<hi>"}
    add("repe", [row(1, 3.0, 2.0)], {"examples": [example]}, EMBEDDED)
    text = page(add("baseline", [row(1, 4.0, 3.0)], {}, EMBEDDED), "report")
    assert text.splitlines()[0].endswith("not comparable with the paper")
    assert (
        "> **Not comparable with the paper.**" in text and "− paper" not in text
    )
    labels = [", ".join(cells[:2]) for cells in lines(text)]
    result_labels = [
        label for label in labels if re.match("(repe|baseline), [a-z]", label)
    ]
    assert len(result_labels) == 4
    for label in result_labels:
        assert ("TED-HRLR" if "paper" in label else EMBEDDED) in label
    assert "- o \\*1\\*\n  - reference: a \\| b\n  - repe: \\<hi>\n" in text


def test_runs_under_way_variants_and_means_are_shown_as_such(add):
    add("baseline")
    mean = {"averaged_models": ["a", "b"], "val_loss": 1.75}
    add("repe-wide", [row(1, 3.0, 2.0)], mean, schedule={"dim": 128})
    text = page(add("repe", [row(1, 3.0, 2.0)], starts=2), "report")
    cells = "–", "1 so far", "3.000", "2.000", "60.0"
    assert lines(text, "repe", OUR_LABEL, *cells)
    assert lines(text, "baseline", OUR_LABEL, "–", "0 so far", "–")
    assert lines(text, "repe-wide", "`repe-wide`", "repe, schedule.dim = 128")
    assert lines(
        text, "repe-wide", OUR_LABEL, "1,234,567", "1", "3.000", "1.750"
    )
    assert "The model of repe-wide is a mean of the last models" in text
    assert "− paper" not in text and "  - 4 × `reprt train mine" in text


@pytest.mark.parametrize("name", ["report", "translation"])
def test_the_page_of_a_running_training_says_how_far_it_is(add, name):
    folder = add("repe", [row(1, 3.0, 2.0) | {"step": 90}])
    run = RunFolder(folder / "repe")
    run.write_log([{"step": 120, "val_loss_per_token": 1.5}], "steps.csv")
    with run.claim():
        text = page(folder, name)
    progress = "repe is in training, after 1 of 10 epochs, at step 120."
    assert f"> **Not finished.** {progress}" in text and "](steps.png)" in text
    run.checkpoints.mkdir()
    (run.checkpoints / "step-00000130.npz").touch()
    interruption = "repe was interrupted, after 1 of 10 epochs, at step 130."
    assert f"> **Not finished.** {interruption}" in page(folder, name)


def test_the_page_on_a_text_of_ones_own_is_about_this_text(add):
    example = {"source": "o 'b'", "reference": "a | b", "translation": "<hi>"}
    score = {"metric": "BLEU", "form": "detokenised", "value": 31.24}
    metrics = {
        TEST: 2.0,
        "test_bleu": 33.0,
        "test_scores": [Score(**score, signature="nrefs:1|case:mixed")],
        "examples": [example],
        "best_step": 1200,
        "stopped_early": True,
    }
    origin = {"text": "de_to_en from corpus.de", "pair": "de_to_en"}
    folder = add("repe-causal", [row(1, 3.0, 2.5)], metrics, **origin)
    text = page(folder, "translation")
    assert text.startswith("# A translator: de_to_en from corpus.de\n")
    assert not re.search("paper|TED|RePE|baseline|Not finished", text)
    assert lines(text, "train", "33") and lines(text, "dropout", "0.1")
    results = "1,234,567|1|1.0|3.001|2.501|2.000|7.4|33.0"
    assert lines(text, "repe-causal")[0] == results.split("|")
    assert "repe-causal (step 1,200, stopped early). The table" in text
    assert "| 31.2 | `nrefs:1\\|case:mixed` |" in re.sub(" +", " ", text)
    assert "- o 'b'\n  - reference: a \\| b\n" in text
    command = """reprt translate repe-causal 'o '"'"'b'"'"''"""
    assert f"```sh\n{command}\n" in text
    assert "reprt evaluate repe-causal new.de new.en\n" in text


def test_trials_in_a_report_have_names_and_colours_of_their_own(add, figures):
    metrics = {"best_step": 1200, "stopped_early": True}
    add("repe.0", [row(1, 3.0, 2.0)], metrics)
    folder = add("repe.1", [row(1, 4.0, 2.0)], {}, training={"seed": 1})
    text = page(folder, "report")
    for seed, loss in enumerate(("3.000", "4.000")):
        assert lines(
            text, f"repe, repe.{seed}", OUR_LABEL, "1,234,567", "1", loss
        )
    assert "repe, repe.0 (step 1,200, stopped early) is the best by" in text
    (legend,) = figures[0].legends
    assert [text.get_text()[6:] for text in legend.texts] == [
        "repe.0",
        "repe.1",
    ]
    first, second = (patch.get_facecolor() for patch in legend.legend_handles)
    assert first != second


def test_runs_of_two_commands_are_told_apart_by_their_settings(add):
    add("repe", [row(1, 3.0, 2.0)], {}, subfolder="a")
    folder = add(
        "repe", [row(1, 4.0, 2.0)], {}, subfolder="b", model={"dropout": 0.5}
    )
    text = page(folder, "report")
    for label in ("repe, repe", "repe, repe, model.dropout = 0.5"):
        assert lines(text, label, OUR_LABEL)


def test_table1_has_every_pair_of_the_paper_and_ours_below(add):
    add("baseline.0", [row(1, 9.0, 9.0), row(2, 4.5, 4.0)], {}, **AZ)
    add("repe.0", [row(1, 4.0, 3.5, 10.0)], {}, **AZ, training={"seed": 3})
    folder = add("repe.1", [row(1, 5.0, 3.7, 30.0)], {TEST: 1.0}, **AZ)
    text = page(folder, "table1")
    for pair, models in paper.TABLE_1.items():
        for model, results in models.items():
            name = paper.LABELS[model]
            ((_, _, *cells),) = lines(text, pair, name, "paper")
            numbers = [
                float(cell.replace(",", "")) for cell in cells if cell != "–"
            ]
            assert numbers == [*results.values()]
    # The paper: 4.34 and 4.23 for the baseline, 4.32 and 4.22 for RePE.
    expected = "–|–|2|4.50|+0.16|4.00|-0.23|60"
    assert lines(text, "az_to_en", "baseline", "ours") == [expected.split("|")]
    expected = "–|–|1|4.50 ± 0.71|+0.18|3.60 ± 0.14|-0.62|20 ± 14"
    repe = lines(text, "az_to_en", "RePE as published", "ours")
    assert repe == [expected.split("|")]


def test_table1_names_departures_and_other_texts(add):
    name = "az_to_en from mine (not TED)"
    add("repe", [row(1, 1.0, 1.0)], {}, name, "az_to_en", subfolder="mine")
    add("repe-wide", [row(1, 1.0, 1.0)], {}, **AZ, schedule={"dim": 128})
    add("repe", [row(1, 4.0, 3.5)], {}, **AZ)
    folder = add(
        "baseline", [row(1, 2.0, 2.0)], {}, **AZ, training={"epochs": 1}
    )
    text = page(folder, "table1")
    repe = "az_to_en", "RePE as published"
    assert len(lines(text, *repe, "paper", "5,946", "671")) == 1
    assert lines(text, *repe, f"ours, on {name}: not comparable", "33", "10")
    label = "ours, training.epochs = 1"
    assert lines(text, "az_to_en", "baseline", label, "–", "–", "1", "2.00")
    assert lines(text, AZ["text"], "repe-wide", "schedule.dim = 128")
    assert lines(text, AZ["text"], "repe", "–", "1")


def test_the_reading_nearest_to_the_papers_losses_comes_first(add):
    # The paper: 4.32 and 4.22 for RePE, 4.34 and 4.23 for its baseline.
    padding_setting = {"model": {"padding_in_statistics": True}}
    add("repe.m64.0", [row(1, 3.92, 3.92)], {}, **AZ)
    add("repe-padded.m64.0", [row(1, 4.32, 4.26)], {}, **AZ, **padding_setting)
    seed = {"training": {"seed": 1}}
    add(
        "repe-padded.m64.1",
        [row(1, 4.32, 4.20)],
        {},
        **AZ,
        **padding_setting,
        **seed,
    )
    folder = add("repe-table.m64.0", [row(1, 9.0, 9.0)], **AZ)
    add("baseline.m64.0", [row(1, 4.30, 4.27)], {}, **AZ, schedule={"dim": 64})
    add("baseline.m128.0", [row(1, 4.50, 4.20)], {}, **AZ)
    text = page(folder, "readings")
    section = text.split("## RePE as published")[1].split("## ")[0]
    rows = lines(section)[2:]
    assert [[row[0], *row[2:4], row[-1]] for row in rows] == [
        ["repe-padded", "model.padding_in_statistics = True", "2", "0.010"],
        ["repe", "–", "1", "0.400"],
        ["paper", "–", "–", "–"],
    ]
    changes = lines(text.split("## What a single choice changes")[1])[2:4]
    padding = "model.padding_in_statistics = True"
    assert changes == [
        ["baseline", "schedule.dim = 64", "nothing", "-0.200", "+0.070"],
        ["repe", padding, "nothing", "+0.400", "+0.340"],
    ]
    assert "Not finished: repe-table.m64.0." in text
    folder = add(
        "repe", text="de_to_en from mine", pair="de_to_en", subfolder="de"
    )
    with pytest.raises(
        ValueError, match="one pair of Table 1. .*: az_to_en, de_"
    ):
        write_page(folder, "readings")


def test_figure3_has_means_over_the_trials_that_reached_an_epoch(add, figures):
    long_epoch = row(3, 3.0, 2.0, seconds=180.0)
    add("repe.text.0", [row(1, 4.0, 3.0), row(2, 3.0, 2.0), long_epoch], {})
    add("repe.text.1", [row(1, 6.0, 5.0)], training={"seed": 1})
    add("repe.equal.0", [row(1, 9.0, 9.0)], {}, schedule={"dim": 128})
    folder = add("repe-prefix.text.0", [row(1, 1.0, 1.0)], {})
    text = page(folder, "figure3")
    assert lines(
        text, "RePE as published", "repe", "2", "80.0 ± 28.3", "60.0 ± 0.0"
    )
    name = "RePE as published, training, ours"
    rows = lines(text, f"{name}, TED-HRLR pt_to_en")
    assert rows[0][:4] == ["5.00 (4.00–6.00)", "3.00", "3.00", "–"]
    assert lines(text, "baseline", "", "0", "–", "–", "4,297.8 ± 675.8")
    curves = {
        line.get_label(): [*line.get_ydata()]
        for line in figures[0].axes[0].lines
    }
    assert curves[f"{name} (trials: 2)"] == [5.0, 3.0, 3.0]
    assert curves["baseline, validation, ours (trials: 0)"] == []


def test_a_comparison_sets_both_losses_side_by_side(add, figures):
    equal_schedule = {"schedule": {"dim": 128}}
    wide_model = {"model": {"embedding_dim": 128}}

    def trial(name, forced_loss, metrics, **tables):
        seed = {"training": {"seed": int(name[-1])}}
        return add(
            name,
            [row(1, 3.0, forced_loss - 0.001, 2.0)],
            metrics,
            **seed,
            **tables,
        )

    trial(
        "repe.equal.0", 1.0, {PREFIX: 3.0, "test_bleu": 4.0}, **equal_schedule
    )
    trial(
        "repe.equal.1", 2.0, {PREFIX: 5.0, "test_bleu": 6.0}, **equal_schedule
    )
    trial("repe.equal.2", 2.0, None, **equal_schedule)
    # This run was trained and did not search.
    trial("repe-not.equal.0", 9.0, {}, **equal_schedule)
    trial("baseline.text.0", 2.5, {PREFIX: 2.5, "test_bleu": 7.0}, **wide_model)
    folder = trial(
        "baseline.text.1", 2.5, {PREFIX: 3.5, "test_bleu": 9.0}, **wide_model
    )
    text = page(folder, "comparison")
    rows = lines(text.split("## m = 128")[1].split("##")[0])
    base = "baseline | no | 2 | 1,234,567 | 2.500 ± 0.000 | 3.000 ± 0.707 | –"
    repe = (
        "repe | **yes** | 2 | 1,234,567 | 1.500 ± 0.707 | 4.000 ± 1.414 | "
        "+1.000 ± 0.707"
    )
    other = "repe-not | **yes** | 1 | 1,234,567 | 9.000 | – | –"
    assert [" | ".join(row[:7]) for row in rows[2:]] == [base, repe, other]
    assert "Not finished: repe.equal.2." in text and "Differences from" in text
    dots = [
        line for line in figures[0].axes[0].lines if line.get_marker() == "o"
    ]
    values = [
        [*dot.get_xdata()] for dot in dots if dot.get_fillstyle() == "full"
    ]
    assert values[:2] == [[2.5, 3.5], [3.0, 5.0]]


def test_a_comparison_without_a_baseline_has_no_column_for_it(add, figures):
    text = page(
        add("repe.text.0", [row(1, 3.0, 2.0)], {PREFIX: 3.0}), "comparison"
    )
    assert "teacher-forced" in text and "prefix − baseline's" not in text


def test_families_compare_the_best_rates_with_the_reference(add, figures):
    def trial(name, validation, test, bleu, rate, **costs):
        metrics = {
            PREFIX: validation,
            TEST: test,
            "test_bleu": bleu,
            **COST,
            **costs,
        }
        tables = {
            "schedule": {"peak": rate},
            "training": {"seed": int(name[-1])},
        }
        return add(name, [row(1, 4.0, validation)], metrics, **tables)

    trial("repe.high.0", 2.0, 9.0, 30.0, 2e-3)
    trial("repe.high.1", 2.5, 9.5, 30.0, 2e-3, out_of_time=True)
    trial("repe.low.0", 3.0, 1.0, 30.0, 1e-3, peak_memory_bytes=2**30)
    trial("baseline.low.0", 3.5, 6.0, 31.0, 1e-3)
    trial("baseline.low.1", 99.0, 7.0, 33.0, 1e-3)
    add("repe-old.low.0", [row(1, 4.0, 3.0)], {PREFIX: 2.0})
    folder = add("repe-new.low.0", [row(1, 4.0, 3.0)])
    (folder / "page.toml").write_text(
        'name = "families"\nreference = "baseline"\n'
        'models.repe = { label = "a|b", colour = "#000000" }\n'
    )
    (folder / "notes.md").write_text("# Mine\n\n## What it says\n\nMuch.\n")
    text = page(folder, None)
    assert text.startswith("# Mine\n\nThe *prefix loss*")
    assert "\n\n## What it says\n\nMuch.\n\n" in text
    assert "The reference is baseline." in text
    table = re.sub(" +", " ", text)
    low, high = "inverse_sqrt from 0.001", "inverse_sqrt from 0.002"
    cells = "51.250 ± 67.529 | 6.500 ± 0.707 | – | 32.0 ± 1.4 | –"
    assert f"| baseline | no | 2 | {low} | {cells} |" in table
    cells = (
        "2.250 ± 0.354 | 9.250 ± 0.354 | **+2.750 ± 0.354** | 30.0 ± 0.0 | "
        "-2.0 ± 1.4"
    )
    assert rf"| a\|b | **yes** | 2 | {high} | {cells} |" in table
    assert rf"| a\|b | {low} | 1 | 3.000 |" in table
    assert "| 1.20e5 | 1.00e9 | 0.017 | 1.67e7 |" in table
    assert (
        "Out of time before the last epoch, and counted: repe.high.1." in text
    )
    names = "repe-new.low.0, repe-old.low.0."
    assert f"Not finished, or without these numbers: {names}" in text
    assert "  - 7 × `reprt train mine.toml`, commit `0123456789ab`" in text
    bleu, losses = figures[0].axes
    assert [[*line.get_ydata()] for line in bleu.lines] == [[30.0, 30.0]]
    assert [[*line.get_ydata()] for line in losses.lines] == [[9.0, 9.5]]


def test_positions_have_a_dot_a_seed_and_the_losses_of_each_length(
    add, figures
):
    def trial(name, test, *lengths):
        parts = [
            {
                "longest": longest,
                "sentences": 2,
                "prefix_loss_per_token": loss,
                "bleu": 9.0,
            }
            for longest, loss in zip((30, None), lengths)
        ]
        metrics = {PREFIX: test, TEST: test, **COST, "test_by_length": parts}
        tables = {
            "training": {"seed": int(name[-1])},
            "model": {"value": "states"},
        }
        return add(name, [row(1, 4.0, test)], metrics, **tables)

    trial("repe.text.0", 2.0)
    trial("repe.text.1", 3.0)
    trial("repe-other.text.0", 6.0, 5.0, 7.0)
    trial("repe-other.text.1", 6.0, 5.0, 6.0)
    folder = trial("repe-short.text.0", 5.0, 4.0, 6.0)
    for config in folder.glob("repe-*/config.toml"):
        settings = config.read_text().replace(
            "[text]", "[text]\ntrain_tokens = 30"
        )
        config.write_text(settings)
    (folder / "page.toml").write_text('reference = "repe-short"')
    text = page(folder, "positions")
    assert lines(text, "repe", "**yes**", "2")[0][1:3] == ["2.500 ± 0.707"] * 2
    assert "trained on pairs of at most 30 tokens a side." in text
    assert lines(text, "repe-short") == [["4.000", "9.0", "6.000", "9.0"]]
    spread = ["5.000 ± 0.000", "9.0 ± 0.0", "6.500 ± 0.707", "9.0 ± 0.0"]
    assert lines(text, "repe-other") == [spread]
    losses, (length_axes,) = (figure.axes for figure in figures)
    assert [[*dots.get_xdata()] for dots in losses[0].lines] == [[2.0, 3.0]]
    assert losses[0].lines[0].get_fillstyle() == "none"
    assert {line.get_linestyle() for line in length_axes.lines} == {"--"}
    differences = [[*line.get_ydata()] for line in length_axes.lines]
    assert differences == [[0.0, 0.0], [1.0, 0.5]]


def test_controls_are_compared_over_the_seeds_that_both_have(add):
    """The paired t of differences of -0.2 and -0.4 is -3, its p-value 0.2048."""
    text = {"text": "gl_to_en from near_ted", "pair": "gl_to_en"}

    def run(name, seed, loss, bleu, **tables):
        numbers = {PREFIX: loss, TEST: loss, "test_bleu": bleu, **COST}
        seed_setting = {"training": {"seed": seed}}
        return add(
            f"{name}.{seed}",
            [row(1, 3.0, 3.0)],
            numbers,
            **seed_setting,
            **tables,
        )

    for seed, losses in enumerate([(3.0, 3.2), (2.8, 3.2)], 11):
        run("repe", seed, losses[0], seed + 9.0, **text)
        run("baseline", seed, losses[1], 19.0, **text)
    run("baseline", 13, 9.0, 1.0, **text)  # whose pair is not there
    run("repe", 11, 1.0, 30.0, subfolder="pt")
    folder = run("baseline", 11, 2.0, 30.0, subfolder="pt")
    pairs = [["repe", "other", "baseline"], ["baseline", "repe"]]
    (folder / "page.toml").write_text(
        f'name = "controls"\ncomparisons = {pairs}\n'
    )
    section = page(folder, None).split("## Comparisons")[1].split("## ")[0]
    test = "2|-0.300 [-1.571, +0.971]|+1.5 [-4.9, +7.9]|0.205"
    assert [row[1:] for row in lines(section, "repe", "baseline")] == [
        "1|-1.000|+0.0|–".split("|"),
        test.split("|"),
    ]
