import re

import pytest
from fake_runs import OFFICIAL, row

from reprt.lab import paper
from reprt.lab.pages.report import write_report
from reprt.lab.pages.runs import read_runs
from reprt.lab.folder import RunFolder, RunFolderError

EMBEDDED = "embedded corpus (generated, not TED)"


def page(folder):
    return write_report(folder).read_text(encoding="utf-8")


def lines(text, start):
    return [line for line in text.splitlines() if line.startswith(start)]


def test_official_results_stand_beside_the_papers_with_the_difference(add):
    add("repe", [row(1, 3.0, 2.0), row(2, 1.25, 1.5)], {"test_bleu": 31.24})
    text = page(add("baseline", [row(1, 1.84, 2.1, 120.0)], {}))
    assert text.startswith("# RePE and its baseline on TED-HRLR pt_to_en\n")
    assert "not comparable" not in text.lower()
    assert lines(text, "| baseline |") == [
        "| baseline | paper | 10,184,162 (on pt_to_en) | 10 | 1.84 | 2.13 | 4,049 "
        "| 1.00 | – |",
        "| baseline | ours | 1,234,567 | 1 | 1.840 | 2.100 | 120.0 | 1.00 | not run |",
        "| baseline | ours − paper | | | +0.00 | -0.03 | | | |",
    ]
    assert lines(text, "| repe |") == [
        "| repe | paper | 2,809,634 (on pt_to_en) | 10 | 1.22 | 1.53 | 1,345 "
        "| 3.01 | – |",
        "| repe | ours | 1,234,567 | 2 | 1.250 | 1.500 | 60.0 (60.0 to 60.0) |"
        " 2.00 | 31.2 |",
        "| repe | ours − paper | | | +0.03 | -0.03 | | | |",
    ]
    assert lines(text, "| repe, ours, validation |") == [
        "| repe, ours, validation | 2.00 | 1.50 |" + " – |" * 8
    ]
    assert "baseline 1.841 / 2.101; repe 1.251 / 1.501" in text


def test_every_number_on_another_text_carries_its_name(add):
    fields = {"text_fields": {}}
    example = [{"source": "olá", "reference": "hello", "translation": "hi"}]
    metrics = {"test_bleu": 9.0, "test_bleu_signature": "tok:none", "examples": example}
    add("repe", [row(1, 3.0, 2.0)], metrics, **fields)
    text = page(add("baseline", [row(1, 4.0, 3.0)], {}, **fields))
    title = text.splitlines()[0]
    assert EMBEDDED in title and title.endswith("not comparable with the paper")
    assert "> **Not comparable with the paper.**" in text
    assert "ours − paper" not in text
    for line in text.splitlines():
        ours = re.match(r"\| (repe|baseline)(, | \| )(?!paper)", line)
        theirs = re.match(r"\| (repe|baseline)(, | \| )paper", line)
        assert not ours or EMBEDDED in line
        assert not theirs or "not comparable" in line
    assert f"## Translations of the test split, {EMBEDDED}" in text
    assert "  - reference: hello\n  - repe: hi\n" in text
    assert f"## The {EMBEDDED} beside the paper's" in text


@pytest.mark.parametrize(
    "changes, departure",
    [
        ({"schedule": {"dim": 128}}, "schedule.dim = 128"),
        ({"training": {"epochs": 4}}, "training.epochs = 4"),
        ({"model": {"num_blocks": 4}}, "model.num_blocks = 4"),
        ({"vocabulary": {"size": 500}}, "vocabulary.size = 500"),
    ],
)
def test_a_variant_lists_its_departures_and_has_no_row_of_the_paper(
    add, changes, departure
):
    add("repe", [row(1, 3.0, 2.0)], {})
    text = page(add("repe-variant", [row(1, 3.0, 2.0)], {}, **changes))
    named = "- **repe-variant**: run `repe-variant`, preset `repe`"
    assert f"{named} with {departure}, seed 0;" in text
    (line,) = lines(text, "| repe-variant |")
    assert line.startswith("| repe-variant | ours |")
    assert len(lines(text, "| repe |")) == 3


def test_what_changes_no_result_is_no_departure(add):
    training = {"seed": 3, "tensorboard": True, "bleu": False}
    folder = add("repe", [row(1, 3.0, 2.0)], training=training)
    (run,) = read_runs(add("repe", [row(1, 3.0, 2.0)], training=training))
    assert run.departures == [] and run.paper == paper.TABLE_1["pt_to_en"]["repe"]
    assert "preset `repe`, seed 3;" in page(folder)


def test_a_run_in_progress_is_shown_as_such(add):
    add("baseline")
    text = page(add("repe", [row(1, 3.0, 2.0)]))
    assert "| repe | ours | – | 1 so far | 3.000 | 2.000 | 60.0 | – | not run |" in text
    assert "| baseline | ours | – | 0 so far | not run |" in text
    assert "ours − paper" not in text  # which is for what has finished


def test_a_run_out_of_time_before_its_first_epoch_is_shown(add):
    text = page(add("repe", [], {"epochs": 0, "out_of_time": True}))
    assert "| repe | ours | 1,234,567 | 0 | not run |" in text


def test_another_pair_has_its_own_row_of_the_paper(add):
    fields = {"official": True, "name": "TED-HRLR az_to_en", "pair": "az_to_en"}
    pair = {"text_fields": fields, "text": {"pair": "az_to_en"}}
    text = page(add("repe", [], **pair))
    assert "| loss | 1 |\n|---|--:|\n| repe, ours, training | – |" in text
    assert "| 10 | 4.32 | 4.22 | 164 | 4.28 | – |" in text
    assert "| repe | ours | – | 0 so far" in text


def test_losses_that_profit_from_later_words_carry_a_warning(add):
    add("repe", [row(1, 3.0, 2.0)])
    prefix = {"decoder_statistics": "prefix"}
    text = page(add("repe-prefix", [row(1, 3.0, 2.0)], model=prefix))
    assert "**Read the losses of repe with care.**" in text


def test_only_models_that_see_ahead_are_warned_of(add):
    text = page(add("baseline", [row(1, 3.0, 2.0)]))
    assert "with care" not in text


def test_notes_become_part_of_the_page(add):
    folder = add("repe", [row(1, 3.0, 2.0)])
    (folder / "notes.md").write_text("## What I saw\n\né bom\n", encoding="utf-8")
    assert "\n## What I saw\n\né bom\n\n## Epoch by epoch" in page(folder)
    assert (folder / "notes.md").exists()


def test_the_report_is_a_function_of_the_files(add):
    folder = add("repe", [row(1, 3.0, 2.0)], {})
    first = write_report(folder).read_bytes()
    picture = (folder / "report.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert write_report(folder).read_bytes() == first
    names = {path.name for path in folder.iterdir()}
    assert names == {"repe", "report.md", "report.png"}


def test_every_start_is_told(add, tmp_path):
    add("repe", [row(1, 3.0, 2.0, 90.0)])
    RunFolder(tmp_path / "repe").add_start(["GPU:0", "GPU:1"])
    text = page(tmp_path)
    assert "1 replica(s)" in text and "2 replica(s)" in text
    assert text.count(", commit `") == 2
    assert "2 minutes of training" in text


def test_a_folder_without_runs_is_refused(tmp_path):
    with pytest.raises(RunFolderError, match="with run folders in it"):
        write_report(tmp_path)
    with pytest.raises(RunFolderError, match="with run folders in it"):
        write_report(tmp_path / "absent")


def test_a_folder_that_is_being_made_is_no_run_yet(add, tmp_path):
    add("repe", [row(1, 3.0, 2.0)])
    (tmp_path / "repe").rename(tmp_path / ".reprt-0123456789ab")
    with pytest.raises(RunFolderError):
        read_runs(tmp_path)


def test_runs_on_different_texts_are_not_put_side_by_side(add, tmp_path, text):
    add("repe", [row(1, 3.0, 2.0)])
    aside = (tmp_path / "repe").rename(tmp_path.with_name(f"{tmp_path.name}-aside"))
    add("baseline", text_fields={**OFFICIAL, "dev": text.corpus.test})
    aside.rename(tmp_path / "repe")  # by hand, for no command would
    with pytest.raises(RunFolderError, match="Those of baseline and repe differ"):
        write_report(tmp_path)


def test_what_search_sees_stands_beside_what_teachers_force(add):
    metrics = {"val_prefix_loss_per_token": 3.25}
    add("repe", [row(1, 3.0, 2.0)], metrics)
    text = page(add("baseline", [row(1, 3.0, 2.5)], {}))
    assert lines(text, "| repe | 2.001") == ["| repe | 2.001 | 3.250 |"]
    assert "| baseline | 2.501 |" not in text  # of which it was not measured
