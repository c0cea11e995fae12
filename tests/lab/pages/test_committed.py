import pathlib
import re
import shutil
from typing import get_args

import pytest

from reprt.data.corpora import embedded
from reprt_lab.pages import write_page
from reprt_lab.recipe import Page
from reprt_lab.records import read_records

RESULTS = pathlib.Path(__file__).parents[3] / "experiments" / "results"
COMMITTED_PAGES = sorted(
    path for name in get_args(Page) for path in RESULTS.glob(f"**/{name}.md")
)
FROZEN_RUNS = sorted(RESULTS.glob("**/runs.jsonl"))


def name(path):
    return str(path.relative_to(RESULTS))


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """A copy of the experiments, where pages may be written anew."""
    copy = tmp_path_factory.mktemp("experiments") / "results"
    return shutil.copytree(RESULTS, copy)


@pytest.mark.parametrize("page", COMMITTED_PAGES, ids=name)
def test_a_committed_page_is_that_of_its_runs(page, results, figures):
    page_again = results / page.relative_to(RESULTS)
    page_again.unlink()
    assert write_page(page_again.parent) == page_again
    assert page_again.read_bytes() == page.read_bytes()


def test_a_picture_is_drawn_again_and_the_same(results):
    folder = results / "figure3" / "standin_pt_to_en"
    pictures = []
    for _ in range(2):
        write_page(folder)
        pictures.append((folder / "figure3.png").read_bytes())
    assert pictures[0] == pictures[1]
    assert len(pictures[0]) > 50_000


def test_every_run_is_still_there_without_sentences_of_texts_that_stay_here():
    runs = [run for path in FROZEN_RUNS for run in read_records(path)]
    identities = {
        (run.name, run.manifest.hashes, str(run.manifest.starts))
        for run in runs
    }
    assert len(identities) == 1115
    assert not [path for path in RESULTS.glob("**/config.toml")]
    assert not [
        run
        for run in runs
        if f"{run.manifest.origin}"[0] == "/"
        or run.settings.text.source[0] == "/"
    ]
    texts = {
        run.manifest.text
        for run in runs
        if run.metrics and run.metrics.examples
    }
    assert texts == {embedded.NAME}


def test_the_tables_of_a_page_are_tables():
    for path in COMMITTED_PAGES:
        for table in re.findall(r"(?:^\|.*\n)+", path.read_text("utf-8"), re.M):
            counts = set()
            for line in table.splitlines():
                bars = re.findall(r"(?<!\\)\|", line)
                counts.add(len(bars))
            assert len(counts) == 1, table
