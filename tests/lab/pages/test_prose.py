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
OURS = "causal RePE: RMSNorm, query-key norm"


def test_the_candidate_of_the_contest_is_the_preset():
    runs = [run for run in measured("repaired", "pt_to_en") if run.model == "qk-rms"]
    assert runs and all(run.settings.model == preset("repe-causal") for run in runs)


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


@pytest.mark.parametrize("cells", tables(CAUSAL, "ingredients"), ids=" ".join)
def test_ingredients_give_what_the_runs_say(cells):
    _, names, *differences = cells
    for text, difference in zip(("embedded", "pt_to_en"), differences, strict=True):
        found = best("repaired", text)
        one, other = (found.get(name) for name in names.split(" − "))
        expected = "not run"
        if one and other:
            expected = spread(one.differences(other, CHOSEN_BY), 3, "+")
        assert difference == expected, text


def test_the_contest_has_the_numbers_of_the_runs():
    texts = [best("contest", pair) for pair in ("az_to_en", "gl_to_en", "pt_to_en")]
    rows = tables(CAUSAL, "contest")
    assert {cells[0] for cells in rows} == set().union(*texts)
    for label, *cells in rows:
        expected = []
        for text in texts:
            group = text.get(label)
            for name, digits in ((LOSS, 3), (BLEU, 1)):
                expected.append(group.cell(name, digits) if group else "not run")
        assert cells == expected, label


@pytest.mark.parametrize("pair", ["az_to_en", "gl_to_en", "pt_to_en"])
def test_causal_repe_is_not_worse_than_the_whole_baseline_by_the_rule(pair):
    found = best("contest", pair)
    ours, whole = found[OURS], found["baseline"]
    assert mean(ours, "parameters") <= 0.28 * mean(whole, "parameters")
    for worse in (ours.differences(whole, LOSS), whole.differences(ours, BLEU)):
        assert worse.mean() <= 2 * worse.std()


def test_what_is_said_of_causal_repe_has_the_numbers_of_the_runs():
    page = " ".join(CAUSAL.read_text("utf-8").split())
    contest, screening = (best(name, "pt_to_en") for name in ("contest", "repaired"))
    ours, rival = OURS, "cut baseline, tied output, query-key norm"
    whole = contest["baseline"]
    loss = spread(whole.differences(contest[ours], LOSS), 2)
    bleu = spread(contest[ours].differences(whole, BLEU), 1)
    assert f"RePE is ahead by {loss} nats and {bleu} BLEU" in page
    first, second = (run.numbers for run in whole.table["run"])
    assert f"two seeds differ by {second[LOSS] - first[LOSS]:.2f} nats" in page
    small = best("contest", "gl_to_en")
    loss = spread(small["baseline"].differences(small[ours], LOSS), 2)
    bleu = spread(small[ours].differences(small["baseline"], BLEU), 1)
    assert f"ahead there by {loss} nats and {bleu} BLEU" in page
    leads = [
        mean(found[rival], CHOSEN_BY) - mean(found[ours], CHOSEN_BY)
        for found in (screening, contest)
    ]
    first, last = (f"{lead:.2f}" for lead in leads)
    assert f"is {first} in the validation loss after two epochs" in page
    assert f"and {last} after five of the contest" in page
    late = groups(RESULTS / "ablation" / "standin_pt_to_en")["baseline", 128]
    loss = mean(contest[ours], CHOSEN_BY) - mean(late, CHOSEN_BY)
    bleu = mean(late, BLEU) - mean(contest[ours], BLEU)
    (run,) = late.table["run"]
    (there,) = (row["val_loss_per_token"] for row in run.log if row["step"] == 4050)
    here = mean(whole, CHOSEN_BY)
    assert f"loss is {there:.2f} there, where the contest has {here:.2f}" in page
    mine = mean(contest[ours], CHOSEN_BY)
    assert f"Causal RePE's is {mine:.2f}" in page and here - there > (here - mine) / 2
    assert f"validation loss is {loss:.2f} lower than causal RePE's" in page
    assert f"and its BLEU is {bleu:.1f} higher" in page


@pytest.mark.parametrize("cells", tables(COST, "blog"), ids=" ".join)
def test_the_blogs_comparisons_have_the_numbers_of_the_runs(cells):
    small, longer = (best("families", t)[cells[0]] for t in ("embedded", "pt_to_en"))
    products = power(mean(longer, "train_flops"))
    assert cells[1:4] == [products, small.cell(BLEU, 1), longer.cell(BLEU, 1)]


def test_what_is_said_of_the_second_contest_is_that_of_its_runs():
    page = " ".join(CAUSAL.read_text("utf-8").split())
    runs = {run.name: run.numbers[CHOSEN_BY] for run in measured("values", "az_to_en")}
    present, values, rival = (
        min(runs[name] for name in runs if re.match(rf"{model}.*\.1$", name))
        for model in ("present", "values", "cut")
    )
    assert f"from {present:.3f} to {values:.3f}, where the cut baseline" in page
    assert f"has {rival:.3f}" in page
