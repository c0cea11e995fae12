"""Which reading of the paper comes nearest to its numbers."""

import pathlib

import pytest
from fake_runs import row

from reprt.lab.pages.readings import write_readings
from reprt.lab.recipe import load_recipe
from reprt.lab.folder import RunFolderError

REPOSITORY = pathlib.Path(__file__).parents[2]
HEAD = (
    "| model | text | what departs from this package's defaults | seeds | training "
    "loss | validation loss | training − paper | validation − paper | distance |"
)
AZ = {"official": True, "name": "TED-HRLR az_to_en"}


@pytest.fixture
def read(add):
    def read(name, train, val, metrics={}, form="", **model):
        return add(
            name,
            [row(1, train, val)],
            metrics,
            text_fields={**AZ, "name": AZ["name"] + form},
            text={"pair": "az_to_en"},
            under=f"az{form}",
            model=model,
        )

    return read


def test_the_nearest_to_the_papers_losses_comes_first(read):
    # The paper: 4.32 and 4.22 for RePE, 4.34 and 4.23 for its baseline.
    read("repe.m64.0", 3.92, 3.92)
    read("repe-padded.m64.0", 4.32, 4.26, padding_in_statistics=True)
    read("repe-padded.m64.1", 4.32, 4.20, padding_in_statistics=True)
    read("repe-papers-table.m64.0", 9.0, 9.0, table="paper", metrics=None)
    folder = read("baseline.m128.0", 4.44, 4.23)
    page = write_readings(folder).read_text()
    assert [line for line in page.splitlines() if line.startswith("| ")] == [
        HEAD,
        "| paper | | | 1 | 4.34 | 4.23 | | | |",
        "| baseline | TED-HRLR az_to_en | nothing | 1 | 4.440 | 4.230 | +0.100 | "
        "+0.000 | 0.100 |",
        HEAD,
        "| paper | | | 1 | 4.32 | 4.22 | | | |",
        "| repe-padded | TED-HRLR az_to_en | model.padding_in_statistics = True | "
        "2 | 4.320 ± 0.000 | 4.230 ± 0.042 | +0.000 | +0.010 | 0.010 |",
        "| repe | TED-HRLR az_to_en | nothing | 1 | 3.920 | 3.920 | -0.400 | "
        "-0.300 | 0.500 |",
    ]
    assert "Not finished: repe-papers-table.m64.0." in page


def test_forms_of_the_text_are_readings_too(read):
    read("repe.m64.0", 4.0, 4.0)
    folder = read("repe.m64.0", 4.3, 4.2, form=", tokenised")
    page = write_readings(folder).read_text()
    forms = [line.split(" | ")[1] for line in page.splitlines() if "| repe |" in line]
    assert forms == ["TED-HRLR az_to_en, tokenised", "TED-HRLR az_to_en"]


def test_a_pair_without_a_row_is_refused(add):
    text, name = {"pair": "de_to_en"}, {"name": "de_to_en from mine", "official": False}
    folder = add("repe", [row(1, 4.0, 4.0)], {}, text_fields=name, text=text)
    with pytest.raises(RunFolderError, match="one pair of Table 1. .*: de_to_en"):
        write_readings(folder)


def test_the_recipe_tries_every_reading_of_both_models():
    runs = load_recipe(REPOSITORY / "experiments" / "readings.toml").runs(False)
    tried = {
        (run.preset, run.schedule_dim, *(getattr(run.model, name) for name in names))
        for names in [("padding_in_statistics", "table", "scale")]
        for run in runs
    }
    assert len(runs) == len(tried) == 16
    assert {len({reading[i] for reading in tried}) for i in range(5)} == {2}
