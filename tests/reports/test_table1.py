"""Table 1: the paper's numbers, ours beside them, from result files alone."""

import csv
import dataclasses
import re

import pytest
from fake_runs import row

from reprt.lab import paper
from reprt.lab.pages.table1 import write_table1
from reprt.lab.folder import RunFolderError

AZ = {"official": True, "name": "TED-HRLR az_to_en", "pair": "az_to_en"}
CHRF = {"metric": "chrF", "form": "corpus tokens", "value": 33.25, "signature": "s"}
PLAIN = {**CHRF, "form": "detokenised", "value": 99.0}


@pytest.fixture
def add_az(add):
    def add_az(name, rows, metrics=None, **more):
        return add(
            name,
            rows,
            metrics,
            **{
                "text_fields": AZ,
                "under": "ted-hrlr-az_to_en",
                "text": {"pair": "az_to_en"},
                **more,
            },
        )

    return add_az


def cells(page, start):
    """The cells of the lines that begin so."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith(start)
    ]


def test_every_pair_of_the_paper_is_there_as_the_paper_has_it(add_az):
    page = write_table1(add_az("repe", [row(1, 4.0, 3.5)])).read_text()
    for pair, models in paper.TABLE_1.items():
        ((name, _, _, whose, *numbers),) = cells(page, f"| {pair} | ")
        assert (name, whose) == (pair, "paper")
        expected = []
        for result in (models["baseline"], models["repe"]):
            expected += [result.epochs, result.train_loss, result.val_loss]
            expected.append(result.seconds)
        assert [float(n.replace(",", "")) for n in numbers] == expected
    # What was not run says so: 13 pairs with both models, and this one's baseline.
    assert sum(line.count("not run") for line in cells_of(page)) == 13 * 2 + 1


def cells_of(page):
    table = page.split("## ")[0]
    return [line for line in table.splitlines() if line.startswith("|")]


def test_ours_stand_beside_the_papers_with_the_difference(add_az):
    add_az("baseline.0", [row(1, 9.0, 9.0), row(2, 4.5, 4.0)], {})
    add_az("repe.0", [row(1, 4.0, 3.5, seconds=10.0)], {}, training={"seed": 3})
    folder = add_az("repe.1", [row(1, 5.0, 3.7, seconds=30.0)], {})
    lines = write_table1(folder).read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("| az_to_en |"))
    assert lines[first + 1] == (
        "|  |  |  | ours | 2 | 4.50 | 4.00 | 60 | "
        "1 | 4.50 ± 0.71 | 3.60 ± 0.14 | 20 ± 14 |"
    )
    # The paper: 10 epochs, 4.34 and 4.23; 10 epochs, 4.32 and 4.22.
    assert lines[first + 2] == (
        "|  |  |  | ours − paper | -8 | +0.16 | -0.23 | – | -9 | +0.18 | -0.62 | – |"
    )


def test_what_the_paper_does_not_have_is_in_a_table_of_its_own(add_az):
    metrics = {
        "val_prefix_loss_per_token": 5.125,
        "test_bleu": 1.5,
        "test_scores": [PLAIN, CHRF],
    }
    add_az("repe", [row(1, 4.0, 3.5, seconds=10.0)], metrics)
    folder = add_az("baseline", [row(1, 4.0, 3.5)])  # has not finished
    page = write_table1(folder).read_text()
    beyond = cells(page, "| TED-HRLR az_to_en | ")
    assert ["repe", "1", "3.501", "5.125", "1.50", "33.25", "1,234,567", "600"] == (
        beyond[0][1:9]
    )
    assert beyond[1][1:7] == ["baseline", "1", "3.501"] + ["not run"] * 3


def test_another_text_names_itself_and_is_not_compared(add_az):
    mine = {"name": "az_to_en from mine (not the official TED-HRLR split)"}
    fields = {**AZ, **mine, "official": False}
    folder = add_az("repe", [row(1, 4.0, 3.5)], {}, text_fields=fields)
    page = write_table1(folder).read_text()
    ((_, train, dev, whose, *_),) = cells(page, "|  | 33 | 10 |")
    assert (train, dev) == ("33", "10")
    assert whose == f"ours, on {mine['name']}: not comparable"
    assert "ours − paper" not in page


def test_the_same_pair_on_two_texts_has_two_lines(add_az):
    mine = {**AZ, "official": False, "name": "az_to_en from mine (not TED)"}
    add_az("repe", [row(1, 4.0, 3.5)], {}, text_fields=mine, under="mine")
    page = write_table1(add_az("repe", [row(1, 4.0, 3.5)], {})).read_text()
    assert page.count("| az_to_en | 5,946 | 671 | paper |") == 1
    assert len(re.findall(r"\| ours \| not run .* \| 1 \| 4.00", page)) == 1
    assert len(re.findall(r"\| ours, on az_to_en from mine", page)) == 1


def test_a_pair_that_the_paper_does_not_have_is_a_row_without_it(add_az):
    new = {"official": False, "name": "de_to_en from mine", "pair": "de_to_en"}
    folder = add_az(
        "repe", [row(1, 4.0, 3.5)], {}, text_fields=new, text={"pair": "de_to_en"}
    )
    page = write_table1(folder).read_text()
    (line,) = cells(page, "| de_to_en | ")
    assert line[:4] == [
        "de_to_en", "33", "10", "ours, on de_to_en from mine: not comparable"
    ]
    assert (folder / "table1.tex").read_text().count(r"de\_to\_en & ") == 1


def test_departures_are_marked_and_the_papers_own_settings_come_first(add_az):
    add_az("repe", [row(1, 4.0, 3.5)], {})
    add_az("repe-wide", [row(1, 1.0, 1.0)], {}, schedule={"dim": 128})
    folder = add_az("baseline", [row(1, 2.0, 2.0)], {}, training={"epochs": 1})
    page = write_table1(folder).read_text()
    assert "| ours* | 1 | 2.00 | 2.00 |" in page and "| 4.00 | 3.50 |" in page
    assert "\\* baseline on TED-HRLR az_to_en: training.epochs = 1" in page
    assert "\\* repe-wide on TED-HRLR az_to_en: schedule.dim = 128" in page
    assert "\\* repe on" not in page


def test_the_csv_has_a_row_for_every_result(add_az):
    add_az("repe.0", [row(1, 4.0, 3.5)], {})
    folder = add_az("repe.1", [row(1, 5.0, 3.5)], {}, training={"seed": 1})
    write_table1(folder)
    with open(folder / "table1.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    theirs = [row for row in rows if row["source"] == "paper"]
    (ours,) = (row for row in rows if row["source"] == "ours")
    assert len(theirs) == 28
    assert ours["train_loss"] == "4.5" and ours["train_loss_sd"] == "0.70711"
    assert ours["seeds"] == "2" and ours["parameters"] == "1234567"
    assert ours["test_bleu"] == "" and ours["text"] == "TED-HRLR az_to_en"


def test_the_latex_table_is_whole(add_az):
    folder = add_az("repe", [row(1, 4.0, 3.5)], {})
    write_table1(folder)
    tables = (folder / "table1.tex").read_text().split("% Beyond the paper")
    lines = tables[0].strip().splitlines()
    rows = [
        line
        for line in lines
        if line.endswith(r"\\") and "multicolumn" not in line
    ]
    assert {line.count("&") for line in rows} == {11}
    assert len(rows) == 1 + 14 * 2 + 1
    assert lines[-1] == r"\end{tabular}" and lines[-2] == r"\bottomrule"
    assert r"TED-HRLR az\_to\_en & repe & 1 & 3.501 & not run &" in tables[1]
    assert not re.search(r"(?<!\\)_|±|−", "\n".join(lines[1:]))


def test_the_folder_of_one_text_will_do_and_notes_are_kept(add_az):
    folder = add_az("repe", [row(1, 4.0, 3.5)], {}) / "ted-hrlr-az_to_en"
    (folder / "notes.md").write_text("What a person has to say.\n")
    page = write_table1(folder).read_text()
    assert "What a person has to say." in page and "4.00" in page


def test_a_folder_without_runs_is_told(tmp_path):
    with pytest.raises(RunFolderError, match="without any"):
        write_table1(tmp_path)


def test_before_the_first_epoch_has_ended_nothing_was_run(add_az):
    page = write_table1(add_az("repe", [])).read_text()
    assert sum(line.count("not run") for line in cells_of(page)) == 14 * 2


def test_results_name_the_fields_that_the_table_prints():
    fields = {field.name for field in dataclasses.fields(paper.Result)}
    assert fields == {"epochs", "train_loss", "val_loss", "seconds"}
