"""Every figure of README and results page is that of a frozen experiment."""

import functools
import pathlib
import re

import pytest

from reprt.analysis.cost import power
from reprt.lab.pages.families import BLEU, CHOSEN_BY, LOSS, choose
from reprt.lab.pages.frame import by_schedule, nearest, runs_table, spread
from reprt.lab.pages.runs import read_texts
from reprt.lab.pages.table1 import by_pair, published
from reprt.presets import preset

REPOSITORY = pathlib.Path(__file__).parents[3]
RESULTS = REPOSITORY / "experiments" / "results"
README = REPOSITORY / "README.md"
PAGE = REPOSITORY / "docs" / "results.md"
CAUSAL = REPOSITORY / "docs" / "causal_repe.md"
COST = REPOSITORY / "docs" / "cost.md"

# The rows of the page's table: an experiment, and a model without its dropout.
RIVALS = {
    "cut baseline": ("values", "cut"),
    "narrow baseline": ("values", "narrow"),
    "modern Transformer": ("values", "modern"),
}
CONTEST = {
    "**causal RePE**": ("values", "values"),
    "causal RePE before": ("values", "present"),
    **RIVALS,
    "whole baseline, first contest": ("contest", "baseline"),
    "whole modern Transformer, first contest": ("contest", "modern-whole"),
}
# The rows of the table that says why: the run with the first seed.
WHY = {
    "neither": "neither.high.11",
    "states": "present-2.high.11",
    "values": "only-values.high.11",
    "both": "values-2.high.11",
    "both, TokenNorm's prefix statistics": "token-norm.high.11",
    "both, tied output": "tied.high.11",
}
PAIRS = ("az_to_en", "gl_to_en", "pt_to_en")


def tables(path, mark):
    """The rows below each comment, as cells."""
    found = re.findall(rf"<!-- {mark} -->\n\n((?:\|.*\n)+)", path.read_text("utf-8"))
    rows = [row for table in found for row in table.splitlines()[2:]]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def groups(folder):
    table = runs_table(run for run in read_texts(folder)[0] if run.metrics)
    return {(g.run.label, g.run.settings.schedule_dim): g for g in by_schedule(table)}


def mean(group, name):
    return group.table[name].mean()


@pytest.mark.parametrize("cells", tables(PAGE, "paired"), ids=" ".join)
def test_differences_are_those_of_the_runs(cells):
    names, experiment, width, difference = cells
    one, other = names.split(" − ")
    found = groups(RESULTS / "ablation" / experiment)
    runs = found[one, int(width)], found[other, int(width)]
    assert difference == spread(runs[0].differences(runs[1], CHOSEN_BY), 3, "+")


@pytest.mark.parametrize("path", [README, PAGE], ids=lambda path: path.name)
def test_losses_beside_the_papers_are_those_of_the_runs(path):
    (az_to_en,) = by_pair(read_texts(RESULTS / "table1"))["az_to_en"]
    found = {group.run.label: group for group in nearest(az_to_en).values()}
    rows = tables(path, "table1")
    assert {cells[0] for cells in rows} == set(found)
    for label, theirs, ours, *_ in rows:
        numbers = published("az_to_en", found[label].run.model)
        losses = ("train_loss", "val_loss")
        assert theirs == " / ".join(f"{numbers[loss]:.2f}" for loss in losses)
        assert ours == " / ".join(found[label].cell(loss, 2) for loss in losses)


def test_what_was_found_has_the_numbers_of_the_leaks_page():
    found = {label: runs for (label, _), runs in groups(RESULTS / "leak").items()}
    baseline = found["baseline"]
    behind = {
        label: each.differences(baseline, CHOSEN_BY).mean()
        for label, each in found.items()
    }
    ours = found["RePE without TokenNorm"]
    share = mean(ours, "parameters") / mean(baseline, "parameters")
    front, page = (" ".join(p.read_text("utf-8").split()) for p in (README, PAGE))
    assert f"{behind['RePE as published']:.2f} nats a token above" in front
    assert f"loss within {behind['RePE without TokenNorm']:.3f} nats" in front
    assert f"{share:.0%}".replace("%", " %") + " of the baseline's parameters" in front
    assert f"with {share:.0%}".replace("%", " %") + " of its parameters" in page


@functools.cache
def measured(experiment, pair):
    """The runs on this text that have a loss to be chosen by."""
    (runs,) = (
        [run for run in runs if CHOSEN_BY in run.numbers]
        for runs in read_texts(RESULTS / experiment)
        if pair in runs[0].text
    )
    return runs


@functools.cache
def best(experiment, pair):
    """Every model on this text at the rate that the validation split chose."""
    chosen = choose(runs_table(measured(experiment, pair)))
    return {group.run.label: group for group in chosen}


def contestant(row, pair):
    """The runs of a row of the contest's table on a text."""
    experiment, model = CONTEST[row]
    if experiment == "values":
        model += "-1" if pair == "pt_to_en" else "-2"  # the dropout, in tenths
    found = {group.run.model: group for group in best(experiment, pair).values()}
    return found[model]


def test_the_preset_is_the_model_of_the_contest():
    ours = preset("repe-causal")
    places = dict.fromkeys(["dropout", "dropout_places"])
    for pair in PAIRS:
        (run, *_) = contestant("**causal RePE**", pair).table["run"]
        model = run.settings.model
        assert {*model.dropout_places} == {*ours.dropout_places}
        assert model.model_dump() | places == ours.model_dump() | places


@pytest.mark.parametrize("cells", tables(CAUSAL, "contest"), ids=lambda row: row[0])
def test_the_contest_has_the_numbers_of_the_runs(cells):
    groups = [contestant(cells[0], pair) for pair in PAIRS]
    numbers = ((LOSS, 3), (BLEU, 1))
    assert cells[1:] == [group.cell(*each) for group in groups for each in numbers]


@pytest.mark.parametrize("pair", PAIRS)
def test_causal_repe_wins_by_the_rule(pair):
    ours = contestant("**causal RePE**", pair)
    rivals = [contestant(row, pair) for row in RIVALS]
    rival = min(rivals, key=lambda group: mean(group, LOSS))
    for better in (rival.differences(ours, LOSS), ours.differences(rival, BLEU)):
        assert better.mean() > 2 * better.std()
    sizes = [mean(group, "parameters") for group in (ours, *rivals)]
    assert max(sizes) <= 1.02 * min(sizes)


@pytest.mark.parametrize("cells", tables(CAUSAL, "why"), ids=lambda row: row[0])
def test_why_has_the_numbers_of_the_runs(cells):
    expected = []
    for pair in PAIRS[:2]:
        (run,) = (r for r in measured("values", pair) if r.name == WHY[cells[0]])
        for name in ("train_loss_per_token", CHOSEN_BY):
            expected.append(f"{run.numbers[name]:.3f}")
    assert cells[1:] == expected


@pytest.mark.parametrize("cells", tables(COST, "blog"), ids=" ".join)
def test_the_blogs_comparisons_have_the_numbers_of_the_runs(cells):
    small, longer = (best("families", t)[cells[0]] for t in ("embedded", "pt_to_en"))
    products = power(mean(longer, "train_flops"))
    assert cells[1:4] == [products, small.cell(BLEU, 1), longer.cell(BLEU, 1)]
