"""Every figure of README and results page is that of a frozen experiment."""

import functools
import json
import pathlib
import re

import numpy as np
import pytest

from reprt import models
from reprt.analysis.cost import scientific
from reprt.models.presets import preset
from reprt_lab.pages.families import BLEU, CHOSEN_BY, LOSS, choose
from reprt_lab.pages.frame import by_schedule, nearest, runs_table, spread
from reprt_lab.pages.runs import read_texts
from reprt_lab.pages.table1 import by_pair
from reprt_lab.paper import FIGURE_3B, PARAMETERS, TABLE_1

REPOSITORY = pathlib.Path(__file__).parents[3]
RESULTS = REPOSITORY / "experiments" / "results"
README = REPOSITORY / "README.md"
PAGE = REPOSITORY / "docs" / "results.md"
SPEED = REPOSITORY / "docs" / "speed.md"
CAUSAL = REPOSITORY / "docs" / "causal_repe.md"
POSITIONS = REPOSITORY / "docs" / "positions.md"
COST = REPOSITORY / "docs" / "cost.md"

# The rows of the page's table, and the models, those of equal size without dropout.
CANDIDATES = {
    "**causal RePE**": "values",
    "causal RePE without value dropout": "present",
}
RIVALS = {
    "tied baseline": "cut",
    "narrow baseline": "narrow",
    "modern Transformer": "modern",
}
FULL_SIZE = {
    "full-size baseline": "baseline",
    "full-size modern Transformer": "modern-whole",
}
TIED = {
    "tied baseline, dropout 0.1": "cut-1",
    "tied baseline, dropout 0.2": "cut-2",
}
EQUAL = CANDIDATES | RIVALS
# The texts of the tables of paired differences, and the folders of their runs.
ABLATIONS = {
    "az_to_en": "az_to_en",
    "longer text": "standin_pt_to_en",
    "embedded corpus": "embedded_corpus",
    "embedded corpus, higher rates": "embedded_corpus_high_rates",
}
# The rows of the table that says why: the models on the small and the longer texts.
WHY = {
    "neither": ("neither", "neither"),
    "states": ("only-states", "present-1"),
    "values": ("only-values", "only-values"),
    "both": ("values-2", "values-1"),
    "both, TokenNorm's prefix statistics": ("token-norm", "token-norm"),
    "both, tied output": ("tied", "tied"),
}
PAIRS = ("az_to_en", "gl_to_en", "pt_to_en")
POSITIONS_TEXTS = ("az_to_en", "embedded", "gl_to_en", "pt_to_en")
PLACES = "['embeddings', 'values', 'attention_weights', 'feed_forward_output']"
PADDED = f"model.dropout_places = {PLACES}, model.padding_in_statistics = True"
READINGS = (  # single ones; with eq. 15, whose m is 128 in the baseline; of RePE alone
    ["baseline", "TED-HRLR az_to_en", "schedule.dim = 64"],
    ["baseline", "TED-HRLR az_to_en", "nothing"],
    ["RePE, padding counted, values dropped out", "TED-HRLR az_to_en", PADDED],
    [
        "RePE, padding counted, Keras' own Adam",
        "TED-HRLR az_to_en",
        "model.padding_in_statistics = True, optimizer.sparse_gradients = "
        "squared_apart, schedule.dim = 128",
    ],
)


def plain(path):
    """A page's text, each run of whitespace being one space."""
    return " ".join(path.read_text("utf-8").split())


def tables(path, mark):
    """The rows below each comment, as cells."""
    found = re.findall(
        rf"<!-- {mark} -->\n\n((?:\|.*\n)+)", path.read_text("utf-8")
    )
    rows = [row for table in found for row in table.splitlines()[2:]]
    return [
        [cell.strip() for cell in row.strip("|").split("|")] for row in rows
    ]


def groups(folder):
    table = runs_table(run for run in read_texts(folder)[0] if run.metrics)
    return {
        (g.run.label, g.run.settings.schedule_dim): g
        for g in by_schedule(table)
    }


def mean(group, name):
    return group.table[name].mean()


@pytest.mark.parametrize("cells", tables(PAGE, "paired"), ids=" ".join)
def test_differences_are_those_of_the_runs(cells):
    names, text, width, difference = cells
    one, other = names.split(" − ")
    found = groups(RESULTS / "ablation" / ABLATIONS[text])
    runs = found[one, int(width)], found[other, int(width)]
    assert difference == spread(runs[0].differences(runs[1], CHOSEN_BY), 3, "+")


@pytest.mark.parametrize("path", [README, PAGE], ids=lambda path: path.name)
def test_losses_beside_the_papers_are_those_of_the_runs(path):
    (az_to_en,) = by_pair(read_texts(RESULTS / "table1"))["az_to_en"]
    found = {group.run.label: group for group in nearest(az_to_en).values()}
    rows = tables(path, "table1")
    assert {cells[0] for cells in rows} == set(found)
    for label, theirs, ours, *_ in rows:
        numbers = TABLE_1["az_to_en"][found[label].run.model]
        losses = ("train_loss", "val_loss")
        assert theirs == " / ".join(f"{numbers[loss]:.2f}" for loss in losses)
        assert ours == " / ".join(found[label].cell(loss, 2) for loss in losses)


@pytest.mark.parametrize("text", list(ABLATIONS)[:3])
def test_repe_as_published_loses_under_both_readings(text):
    found = groups(RESULTS / "ablation" / ABLATIONS[text])
    for label in ("RePE as published", "RePE as published, padding counted"):
        behind = found[label, 128].differences(
            found["baseline", 128], CHOSEN_BY
        )
        assert (behind > 0.4).all()


def test_the_losses_beside_the_papers_are_far_from_them():
    (az_to_en,) = by_pair(read_texts(RESULTS / "table1"))["az_to_en"]
    gaps = {}
    for name, group in nearest(az_to_en).items():
        for loss in ("train_loss", "val_loss"):
            ours = group.table[loss]
            gap = gaps[name, loss] = (
                ours.mean() - TABLE_1["az_to_en"][name][loss]
            )
            assert abs(gap) > 10 * ours.std()
    baseline, repe = (
        [abs(gaps[name, loss]) for loss in ("train_loss", "val_loss")]
        for name in ("baseline", "repe")
    )
    told = "it by {:.2f} in training and {:.2f} in validation, our RePE below it by"
    assert told.format(*baseline) + " {:.2f} and {:.2f}.".format(
        *repe
    ) in plain(PAGE)


@functools.cache
def leak():
    found = groups(RESULTS / "leak").items()
    return {label: runs for (label, _), runs in found}


def test_what_was_found_on_az_to_en_has_the_numbers_of_the_leaks_page():
    baseline, ours = leak()["baseline"], leak()["RePE without TokenNorm"]
    readings = ("RePE as published", "RePE as published, padding counted")
    behind = [
        leak()[each].differences(baseline, CHOSEN_BY).mean()
        for each in readings
    ]
    gap = spread(ours.differences(baseline, CHOSEN_BY), 3, "+")
    share = mean(ours, "parameters") / mean(baseline, "parameters")
    front, page = plain(README), plain(PAGE)
    above = "{:.2f} nats per token above the baseline's, {:.2f} with padding counted."
    assert f"its loss is {above.format(*behind)}" in front
    assert f"Without TokenNorm it is the baseline's ({gap})." in front
    assert f"with {share:.0%}".replace("%", " %") + " of its parameters" in page
    padded = leak()[readings[1]]
    losses = [mean(padded, "val_loss_per_token"), mean(padded, CHOSEN_BY)]
    told = "on az_to_en is {:.3f}, its prefix loss {:.3f}, and the baseline's {:.3f}."
    assert told.format(*losses, mean(baseline, CHOSEN_BY)) in page
    notes = plain(RESULTS / "leak" / "notes.md")
    above = "loss is {1:.2f} nats above the baseline's. Without, it is {0:.2f}."
    assert above.format(*behind) in notes


def test_what_az_to_en_cannot_show_is_said_beside_it():
    for group in leak().values():
        (run, *_), settings = group.table["run"], group.run.settings
        assert (run.log[-1]["step"], settings.schedule.warmup_steps) == (
            930,
            4000,
        )
        assert group.table[BLEU].max() < 2
    gains = [
        TABLE_1["az_to_en"]["baseline"][loss]
        - TABLE_1["az_to_en"]["repe"][loss]
        for loss in ("train_loss", "val_loss")
    ]
    told = (
        f"gain is {gains[0]:.2f} in the training loss and {gains[1]:.2f} in the"
    )
    for path in (PAGE, RESULTS / "leak" / "notes.md"):
        assert told in plain(path)
        assert re.search(
            "930 steps of a schedule that warms up for 4,000", plain(path)
        )
    front = "after 930 of 4,000 warm-up steps BLEU is below 2, and the paper's gain is"
    assert f"{front} {gains[0]:.2f}." in plain(README)


def test_what_was_found_on_the_longer_text_has_the_numbers_of_its_runs():
    found = groups(RESULTS / "ablation" / "standin_pt_to_en")
    baseline, prefix, published = (
        found[label, 128]
        for label in (
            "baseline",
            "RePE, prefix statistics",
            "RePE as published",
        )
    )
    assert {len(group.table) for group in (baseline, prefix, published)} == {1}
    behind = prefix.differences(baseline, CHOSEN_BY).mean()
    fewer = baseline.differences(prefix, BLEU).mean()
    bleus = f"{mean(published, BLEU):.2f}", f"{mean(baseline, BLEU):.1f}"
    front = "its BLEU is {}, the baseline's {}.".format(*bleus)
    assert front in plain(README)
    assert f"ahead, by {behind:.3f} nats and {fewer:.1f} BLEU." in plain(README)
    notes = plain(RESULTS / "leak" / "notes.md")
    assert (
        f"is {behind:.3f} nats and {fewer:.1f} BLEU behind the baseline"
        in notes
    )
    assert (
        "it is {1} for the baseline, and {0} for RePE".format(*bleus) in notes
    )
    told = "{1} for the baseline, {2:.1f} for RePE with prefix statistics and {0} for"
    assert told.format(*bleus, mean(prefix, BLEU)) in plain(PAGE)


def test_the_distances_of_other_readings_are_those_of_their_page():
    page = (RESULTS / "readings" / "readings.md").read_text("utf-8")
    rows = [[*map(str.strip, line.split("|"))] for line in page.splitlines()]
    single, by_equation, repe, alone = (
        f"{float(row[-2]):.2f}"
        for each in READINGS
        for row in rows
        if row[1:4] == each
    )
    of_repe = [
        row for row in rows if len(row) > 9 and row[1].startswith("RePE")
    ]
    assert alone == min(f"{float(row[-2]):.2f}" for row in of_repe)
    front, page = plain(README), plain(PAGE)
    assert f"is {single} and {repe} nats away." in front
    assert f"m = 128 for the baseline: then {by_equation}." in front
    assert f"It is {single} nats (baseline) and {repe} nats (RePE) from" in page
    assert f"in the baseline, which is then {by_equation} away." in page
    notes = plain(RESULTS / "readings" / "notes.md")
    assert (
        f"It is {single} nats (baseline) and {repe} nats (RePE) from" in notes
    )
    assert f"for the baseline, which is then {by_equation} away." in notes
    told = (
        f"are {single} nats (baseline, m = 64) and {alone} nats (RePE, m = 128,"
    )
    assert told in page


def test_the_verdicts_on_the_papers_claims_have_its_numbers_and_ours():
    claims = dict(tables(README, "claims"))
    page = plain(PAGE)
    counts = [f"{PARAMETERS[name]:,}" for name in ("repe", "baseline")]
    assert "{} and {} parameters".format(*counts) in claims
    assert "Our two models have its {} and {}.".format(*counts) in page
    theirs, of_baseline = (FIGURE_3B[name][0] for name in ("repe", "baseline"))
    assert f"epochs of {theirs:,.0f} s, not {of_baseline:,.0f}" in claims
    told = "takes {:,.0f} s and not {:,.0f} s, {:.2f} of the baseline's time,"
    assert told.format(theirs, of_baseline, theirs / of_baseline) in page
    times = benchmark("models")["side_by_side"]
    step = np.divide(times["repe"]["seconds"], times["baseline"]["seconds"])
    assert f"([{np.median(step):.2f}](docs/speed.md))" in plain(README)
    assert f"of RePE takes {np.median(step):.2f} of the baseline's." in page
    times = sorted(
        (
            both["baseline"]["seconds_an_epoch"]
            / both["repe"]["seconds_an_epoch"],
            pair,
        )
        for pair, both in TABLE_1.items()
    )
    (least, first), *_, (most, last) = times
    assert claims["two to four times faster"].endswith(
        f"has {least:.1f} to {most:.1f}"
    )
    assert (
        f"Table 1 has {least:.1f} ({first}) to {most:.1f} times ({last})."
        in page
    )
    lower = {
        pair
        for pair, both in TABLE_1.items()
        if both["repe"]["train_loss"] < both["baseline"]["train_loss"]
        and both["repe"]["val_loss"] < both["baseline"]["val_loss"]
    }
    ten = {
        pair
        for pair, both in TABLE_1.items()
        if {both["repe"]["epochs"], both["baseline"]["epochs"]} == {10}
    }
    assert (len(TABLE_1), len(lower), len(ten), len(lower & ten)) == (
        14,
        13,
        7,
        6,
    )
    assert "13 of 14 texts. In seven of them both models finished ten" in page


def test_concatenation_adds_what_the_pages_say():
    found = groups(RESULTS / "ablation" / "embedded_corpus")
    few = [
        mean(found[label, 128], "parameters")
        for label in (
            "only concatenated positions",
            "RePE's size, none of its changes",
        )
    ]
    settings = {"embedding_norm": "none", "value": "states"}
    sizes = [
        models.build(
            "repe", 7765, 7010, position=position, **settings
        ).count_params()
        for position in ("concat", "add")
    ]
    times = np.divide(*few), np.divide(*sizes)
    more = [f"{each - 1:.0%}".replace("%", " %") for each in times]
    told = "{} to its parameters with this text's 514 pieces a side, and {} with the"
    assert told.format(*more) in plain(PAGE)


def test_the_quickstart_has_the_spread_of_the_first_run():
    found = groups(RESULTS / "embedded_corpus" / "seeds").items()
    found = {label: group for (label, _), group in found}
    cells = {label: group.cell(BLEU, 1) for label, group in found.items()}
    page = " ".join(
        (REPOSITORY / "docs" / "quickstart.md").read_text("utf-8").split()
    )
    expected = "{baseline} for the baseline, {causal RePE} for causal RePE and "
    assert (expected + "{RePE as published} for RePE").format(**cells) in page
    both = (
        found["baseline"],
        groups(RESULTS / "embedded_corpus")["baseline", None],
    )
    bleus = [bleu for group in both for bleu in group.table[BLEU]]
    near = {label: f"{mean(group, BLEU):.0f}" for label, group in found.items()}
    near["baseline"] = f"{min(bleus):.0f}–{max(bleus):.0f}"
    told = "baseline ({baseline}), RePE as published ({RePE as published}) and"
    assert (
        f"{told} causal RePE ({{causal RePE}})".format(**near)
        in README.read_text()
    )


LANGUAGE_MODELS = (
    RESULTS / "language_model",
    RESULTS / "language_model" / "longer",
)
LOSSES = ("val_loss_per_token", CHOSEN_BY)


@pytest.mark.parametrize(
    "cells", tables(PAGE, "language_model"), ids=lambda c: c[0]
)
def test_the_table_of_language_models_has_the_numbers_of_the_runs(cells):
    found = [groups(place)[cells[0], None] for place in LANGUAGE_MODELS]
    assert cells[1:] == [
        group.cell(loss, 3) for group in found for loss in LOSSES
    ]


def test_what_is_said_of_language_models_is_so():
    generated, longer = (
        groups(place)["RePE's three changes", None] for place in LANGUAGE_MODELS
    )
    with_all, by_prefix = (np.exp(generated.table[loss]) for loss in LOSSES)
    worst = sorted(np.exp(longer.table[CHOSEN_BY]) / 1e6)
    told = f"it is {with_all.mean():.1f} given the whole sentence."
    assert told in plain(PAGE)
    low, high = (
        f"{round(n, -3):,.0f}" for n in (by_prefix.min(), by_prefix.max())
    )
    told = "before, it is {} to {} over the seeds, and {:.1f} and {:.1f} million on the"
    assert told.format(low, high, *worst) in plain(PAGE)
    told = (
        f"its loss is {mean(generated, LOSSES[0]):.2f} given whole sentences, "
    )
    assert told + f"{generated.cell(CHOSEN_BY, 2)} given" in plain(README)
    notes = [plain(place / "notes.md") for place in LANGUAGE_MODELS]
    told = (
        f"{generated.cell(CHOSEN_BY, 2)} nats, a perplexity of {low} to {high}."
    )
    assert f"514 pieces: {told}" in notes[0]
    assert f"this loss is {longer.cell(CHOSEN_BY, 1)} nats" in notes[1]
    assert (
        "a perplexity of {:.1f} and of {:.1f} million".format(*worst)
        in notes[1]
    )


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
    runs = measured(experiment, pair)
    whole = [run for run in runs if not run.settings.text.train_tokens]
    chosen = choose(runs_table(whole))
    return {group.run.label: group for group in chosen}


def by_model(experiment, pair):
    return {group.run.model: group for group in best(experiment, pair).values()}


def test_the_page_of_texts_names_them_as_the_runs_do():
    page = plain(REPOSITORY / "experiments" / "texts.md")
    for pair in PAIRS:
        (sha256,) = {
            run.manifest.text_sha256 for run in measured("contest_2", pair)
        }
        assert f"`{sha256}`" in page


def contestant(row, pair):
    """The runs of a row of the contest's table on a text."""
    tenths = 1 if pair == "pt_to_en" else 2
    name = (FULL_SIZE | TIED).get(row) or f"{EQUAL[row]}-{tenths}"
    return by_model("contest_2", pair).get(name)


def test_the_preset_is_the_model_of_the_contest():
    ours = preset("repe-causal")
    places = dict.fromkeys(["dropout", "dropout_places"])
    for pair in PAIRS:
        run, *_ = contestant("**causal RePE**", pair).table["run"]
        model = run.settings.model
        assert {*model.dropout_places} == {*ours.dropout_places}
        assert model.model_dump() | places == ours.model_dump() | places


@pytest.mark.parametrize(
    "cells", tables(CAUSAL, "contest"), ids=lambda row: row[0]
)
def test_the_contest_has_the_numbers_of_the_runs(cells):
    groups = [contestant(cells[0], pair) for pair in PAIRS]
    numbers = ((LOSS, 3), (BLEU, 1))
    assert cells[1:] == [
        group.cell(*each) if group else "–"
        for group in groups
        for each in numbers
    ]


def ahead(one, another):
    """By how much, in loss and BLEU, of the same seeds."""
    return another.differences(one, LOSS), one.differences(another, BLEU)


def wins(leads):
    return all(lead.mean() > 2 * lead.std() for lead in leads)


def leads(pair, row="**causal RePE**", rival="tied baseline"):
    """By how much a model is ahead, in loss and BLEU, of the best rival or of one."""
    return ahead(contestant(row, pair), contestant(rival, pair))


@pytest.mark.parametrize("pair", PAIRS)
def test_the_best_rival_is_the_tied_baseline(pair):
    losses = {mean(contestant(rival, pair), LOSS): rival for rival in RIVALS}
    assert losses[min(losses)] == "tied baseline"
    rows = [contestant(row, pair) for row in EQUAL]
    sizes = [mean(group, "parameters") for group in rows]
    assert max(sizes) <= 1.02 * min(sizes)


@pytest.mark.parametrize("pair", PAIRS)
def test_causal_repe_wins_the_small_texts(pair):
    for row in CANDIDATES:
        found = leads(pair, row)
        assert wins(found) == (pair != "pt_to_en")
        assert all((lead > 0).all() for lead in found)


@pytest.mark.parametrize(
    "cells", tables(CAUSAL, "leads"), ids=lambda row: row[0]
)
def test_the_leads_over_the_tied_baseline_are_those_of_the_runs(cells):
    rival = f"tied baseline, dropout {cells[0]}"
    expected = []
    for pair in PAIRS:
        if contestant(rival, pair) is None:
            expected += ["–", "–"]
            continue
        loss, bleu = leads(pair, rival=rival)
        expected += [spread(loss, 3), spread(bleu, 1)]
        assert wins((loss, bleu)) == (pair != "pt_to_en")
    assert cells[1:] == expected


def test_every_page_has_the_smaller_of_the_leads_over_the_tied_baseline():
    smallest = []
    for pair in PAIRS[:2]:
        both = [leads(pair, rival=rival) for rival in TIED]
        smallest += [min(lead.mean() for lead in kind) for kind in zip(*both)]
    told = "{:.2f} nats and {:.1f} BLEU on az_to_en, {:.2f} nats and {:.1f} BLEU on gl"
    assert told.format(*smallest) in plain(CAUSAL)
    told = "{:.2f} nats and {:.1f} BLEU on az_to_en, {:.2f} and {:.1f} on [gl_to_en]"
    assert f"by at least {told.format(*smallest)}" in plain(README)
    told = "by at least {0:.2f} and {2:.2f} nats.".format(*smallest)
    assert told in plain(PAGE)


@pytest.mark.parametrize("pair", PAIRS)
def test_causal_repe_beats_the_full_size_models(pair):
    for row in CANDIDATES:
        for full_size in FULL_SIZE:
            assert wins(
                ahead(contestant(row, pair), contestant(full_size, pair))
            )


def test_what_is_said_of_the_full_size_models_is_so():
    page, ours = plain(CAUSAL), "**causal RePE**"
    sizes = [
        mean(contestant(row, pair), "parameters")
        / mean(contestant(ours, pair), "parameters")
        for row in FULL_SIZE
        for pair in PAIRS
    ]
    assert (
        f"models, {min(sizes):.1f} to {max(sizes):.1f} times its size?" in page
    )
    small = [contestant("full-size baseline", pair) for pair in PAIRS[:2]]
    (warmup,) = {group.run.settings.schedule.warmup_steps for group in small}
    told = (
        "warm-up of {} steps there, and with a BLEU of {:.1f} and {:.1f} it has"
    )
    assert told.format(warmup, *(mean(group, BLEU) for group in small)) in page
    late = groups(RESULTS / "ablation" / "standin_pt_to_en")["baseline", 128]
    (run,) = late.table["run"]
    (there,) = (
        row["val_loss_per_token"] for row in run.log if row["step"] == 4050
    )
    here = mean(contestant(ours, "pt_to_en"), CHOSEN_BY)
    said = f"it validates at {there:.2f} in the same steps, causal RePE at {here:.2f}."
    end = run.log[-1]["val_loss_per_token"]
    assert f"{said} After twice the steps the baseline is at {end:.2f}." in page


def test_what_is_said_of_dropout_on_values_has_the_numbers_of_the_runs():
    page = plain(CAUSAL)
    _, without = CANDIDATES
    gains = [leads(pair, rival=without)[0] for pair in PAIRS]
    told = "it gains {} on az_to_en and {} on gl_to_en.".format(
        *(spread(gain, 3) for gain in gains[:2])
    )
    assert told in page
    assert f"with two seeds, it costs {spread(-gains[2], 3)}." in page
    equal = []
    for pair in PAIRS[:2]:
        runs = {
            run.name: run.numbers[LOSS] for run in measured("contest_2", pair)
        }
        equal.append(runs["only-states.high.11"] - runs["values-2.high.11"])
    told = "gains {:.3f} nats of test loss on az_to_en and costs {:.3f} on gl_to_en;"
    assert told.format(equal[0], -equal[1]) in page
    both = [
        leads(pair, without, "tied baseline, dropout 0.1") for pair in PAIRS[:2]
    ]
    assert not any(wins(each) for each in both)
    numbers = [
        n for loss, bleu in both for n in (spread(loss, 3), spread(bleu, 1))
    ]
    told = (
        "by {} nats and {} BLEU, and by {} and {}: too unevenly in BLEU to win."
    )
    assert told.format(*numbers) in page
    before = by_model("contest_1", "az_to_en")["qk-rms"]
    after = [
        contestant(row, "az_to_en") for row in (without, "**causal RePE**")
    ]
    told = (
        "{:.3f} to {:.3f} without dropout on values, which lowers it to {:.3f}."
    )
    assert (
        told.format(*(mean(group, LOSS) for group in (before, *after))) in page
    )


def test_what_weakens_the_contests_rules_has_the_numbers_of_the_runs():
    page = plain(CAUSAL)
    chose = [
        run for pair in PAIRS[::2] for run in measured("contest_2_choice", pair)
    ]
    ours = [run.model for run in chose if re.match("values|present", run.model)]
    without = sum(name.startswith("present") for name in ours)
    told = f"the {len(chose)} runs that chose, {len(ours)} are causal RePE's, {without}"
    assert f"{told} of them without value dropout." in page
    before = by_model("contest_1", "gl_to_en")
    names = ("baseline-cut-tied-qk", "baseline-narrow-qk", "modern")
    losses = [
        (mean(contestant(rival, "gl_to_en"), LOSS), mean(before[name], LOSS))
        for rival, name in zip(RIVALS, names)
    ]
    assert all(now > then for now, then in losses)
    told = (
        "the tied baseline {:.3f} ({:.3f} there), the narrow one {:.3f} ({:.3f}) and "
        "the modern Transformer {:.3f} ({:.3f})."
    )
    assert told.format(*(loss for both in losses for loss in both)) in page
    one, two = (
        {
            run.name: run.numbers[CHOSEN_BY]
            for run in measured(contest, "az_to_en")
        }
        for contest in ("contest_1", "contest_2_choice")
    )
    hair = one["baseline-cut-tied-qk.high.1"] - two["cut-2.high.1"]
    assert f"was chosen on az_to_en, by {hair:.3f} nats over 0.1." in page
    chosen = {
        run.name: run.numbers[CHOSEN_BY]
        for name in ("contest_2_choice", "repaired")
        for run in measured(name, "pt_to_en")
    }
    early = chosen["baseline-cut-tied-qk.high.0"] - chosen["values-1.higher.0"]
    ours, rival = (
        mean(contestant(row, "pt_to_en"), CHOSEN_BY)
        for row in ("**causal RePE**", "tied baseline")
    )
    late = rival - ours
    said = f"{early:.2f} in the validation loss after two epochs, and {late:.2f} after"
    assert said in page


def test_the_small_texts_runs_of_equal_size_ended_before_the_rules_changed():
    ends = [
        run.metrics.finished
        for pair in PAIRS[:2]
        for row in [*CANDIDATES, *RIVALS]
        for run in contestant(row, pair).table["run"]
    ]
    assert max(ends).startswith("2026-11-26 06:06")
    assert "ended on 26 November 2026 at 06:06 (UTC)" in plain(CAUSAL)


@pytest.mark.parametrize("cells", tables(CAUSAL, "why"), ids=lambda row: row[0])
def test_why_has_the_numbers_of_the_runs(cells):
    small, longer = WHY[cells[0]]
    runs = {pair: f"{small}.high.11" for pair in PAIRS}
    runs |= {"pt_to_en": f"{longer}.higher.11"}
    assert cells[1:] == [
        f"{run.numbers[loss]:.3f}"
        for pair, name in runs.items()
        for run in measured("contest_2", pair)
        for loss in ("train_loss_per_token", CHOSEN_BY)
        if run.name == name
    ]


@pytest.mark.parametrize(
    "cells", tables(POSITIONS, "positions"), ids=lambda c: c[0]
)
def test_positions_have_the_numbers_of_the_runs(cells):
    found = [best("positions", text) for text in POSITIONS_TEXTS]
    kinds = ((LOSS, 3), (BLEU, 1))
    if cells[0] == "largest standard deviation":
        assert cells[1:] == [
            f"{max(group.table[name].std() for group in each.values()):.{digits}f}"
            for each in found
            for name, digits in kinds
        ]
        return
    if cells[0] == "rival, dropout 0.1 (contest)":
        groups = [
            None if text == "embedded" else by_model("contest_2", text)["cut-1"]
            for text in POSITIONS_TEXTS
        ]
    else:
        groups = [each.get(cells[0]) for each in found]
    assert cells[1:] == [
        f"{mean(group, name):.{digits}f}" if group else "–"
        for group in groups
        for name, digits in kinds
    ]


def test_what_is_said_of_positions_is_so():
    page = " ".join(POSITIONS.read_text("utf-8").split())
    methods = ("concat", "rotary", "untied", "add", "relative", "alibi", "none")
    either = {f"{m}-{v}" for m in methods[3:] for v in ("tokens", "states")}
    beaten, gains, leads_of_rotary = [], [], []
    for text in POSITIONS_TEXTS[:3]:
        found = by_model("positions", text)
        ours = found["concat-tokens"]
        others = {m: g for m, g in found.items() if g is not ours}
        assert not any(wins(ahead(group, ours)) for group in others.values())
        loss, bleu = ahead(found["rotary-tokens"], ours)
        leads_of_rotary.append((spread(loss, 3), spread(bleu, 1, "+")))
        beaten.append({m for m, g in others.items() if wins(ahead(ours, g))})
        assert len(found) == 18
        widths = [
            mean(found[f"concat-{p}"], LOSS) for p in ("tokens", 32, 16, 8)
        ]
        assert widths == sorted(widths)
        pairs = [
            ahead(found[f"{m}-tokens"], found[f"{m}-states"]) for m in methods
        ]
        gains.append([[lead.mean() for lead in pair] for pair in pairs])
    loss, bleu = ahead(found["untied-tokens"], ours)  # on gl_to_en
    assert (
        f"by {spread(loss, 3)}, and a BLEU lower by {spread(-bleu, 1)}." in page
    )
    (on_az, on_embedded, on_gl), bleus = zip(*leads_of_rotary)
    assert (
        f"on az_to_en, by {on_az}, and on gl_to_en, by {on_gl}: more than"
        in page
    )
    assert f"On the embedded corpus they do not differ ({on_embedded})." in page
    assert "differs by {0}, {2} and {1}.".format(*bleus) in page
    assert f"on both, by {on_az} and {on_gl}, but no higher BLEU." in plain(
        README
    )
    both = either - {"add-tokens", "relative-tokens"} | {"rival", "concat-8"}
    assert beaten[0] & beaten[1] == both
    assert beaten[0] == either | {"rival", "concat-16", "concat-8"}
    assert set.intersection(*beaten) == both
    states = {f"{m}-states" for m in methods[:3]}
    assert beaten[2] == both | {"concat-16", "relative-tokens", *states}
    losses, bleus = zip(*(zip(*each) for each in gains[1:]))
    said = "{:.2f} to {:.2f} on the embedded corpus and {:.2f} to {:.2f} on gl_to_en,"
    assert (
        said.format(*(n(each) for each in losses for n in (min, max))) in page
    )
    told = min(bleus[0]), max(bleus[0]), max(bleus[1])
    assert (
        "and raise BLEU by {:.0f} to {:.0f} and 0 to {:.0f}.".format(*told)
        in page
    )
    assert round(min(bleus[1]), 1) == 0  # without positions
    small = dict(zip(methods, gains[0]))
    assert all(0.9 < small[m][1] < 1.4 for m in ("concat", "rotary", "add"))
    assert [m for m in methods if small[m][0] < 0] == ["untied", *methods[4:]]


def clear(lead):
    return abs(lead.mean()) > 2 * lead.std()


def test_positions_with_states_have_a_lower_loss_on_az_to_en_alone():
    rotary, untied = (
        [
            ahead(found[f"{method}-states"], found["concat-tokens"])
            for found in (
                by_model("positions", text) for text in POSITIONS_TEXTS[:3]
            )
        ]
        for method in ("rotary", "untied")
    )
    losses = [spread(method[0][0], 3) for method in (rotary, untied)]
    fewer = [spread(-method[0][1], 1) for method in (rotary, untied)]
    assert "on az_to_en, by {} and {}.".format(*losses) in plain(POSITIONS)
    assert "BLEU is lower by {} and {}.".format(*fewer) in plain(POSITIONS)
    assert "loss on az_to_en, by {} and {} nats".format(*losses) in plain(
        CAUSAL
    )
    assert "BLEU is lower by {} and {}.".format(*fewer) in plain(CAUSAL)
    for method in rotary, untied:
        for loss, bleu in method[1:]:
            assert loss.mean() < 0 and bleu.mean() < 0


def test_rotary_positions_with_tokens_have_a_clearly_lower_loss_on_two_texts():
    for text in POSITIONS_TEXTS[:3]:
        found = by_model("positions", text)
        loss, bleu = ahead(found["rotary-tokens"], found["concat-tokens"])
        assert clear(loss) == (text != "embedded")
        assert not (clear(bleu) and bleu.mean() > 0)


def test_the_rival_of_positions_with_a_dropout_of_one_tenth_is_beaten_as_told():
    page, told = plain(POSITIONS), []
    for text in ("az_to_en", "gl_to_en"):
        ours = by_model("positions", text)["concat-tokens"]
        lead = ahead(ours, by_model("contest_2", text)["cut-1"])
        assert wins(lead)
        told += [spread(lead[0], 3), spread(lead[1], 1)]
    sentence = (
        "wins az_to_en, by {} nats and {} BLEU, and gl_to_en, by {} and {};"
    )
    assert sentence.format(*told) in page
    loss, bleu = ahead(ours, by_model("positions", "gl_to_en")["rival"])
    sentence = (
        f"0.2 these are {spread(loss, 3)} and {spread(bleu, 1)} on gl_to_en."
    )
    assert sentence in page


def test_what_is_said_of_positions_on_the_longer_text_is_so():
    page = " ".join(POSITIONS.read_text("utf-8").split())
    *small, found = (by_model("positions", text) for text in POSITIONS_TEXTS)
    ours, rival = found["concat-tokens"], found["rival"]
    assert {len(group.table) for group in found.values()} == {2}
    orders = [sorted(each, key=lambda m: mean(each[m], LOSS)) for each in small]
    others = {*small[0]} - {"concat-tokens", "rival"}
    ranked = sorted(
        others, key=lambda m: sum(order.index(m) for order in orders)
    )
    assert {*found} == {"concat-tokens", "rival", *ranked[:4]}
    assert not any(
        wins(ahead(g, ours)) for g in found.values() if g is not ours
    )
    loss, bleu = ahead(found["rotary-tokens"], ours)
    said = f"loss by {spread(loss, 3)}, and BLEU differs by {spread(bleu, 1, '+')}."
    assert said in page
    loss, bleu = ahead(ours, rival)
    said = f"by {spread(loss, 3)} nats and {spread(bleu, 1)} BLEU; the two seeds differ"
    assert f"It leads the rival {said}" in page and not wins((loss, bleu))
    beaten = [
        m for m, g in found.items() if g is not ours and wins(ahead(ours, g))
    ]
    assert beaten == ["rotary-states"]


def test_what_is_said_of_lengths_is_so():
    runs = measured("positions", "gl_to_en")
    short = [run for run in runs if run.settings.text.train_tokens]
    lengths = {run.model: run.metrics.test_by_length for run in short}
    assert [each.sentences for each in lengths["rival"]] == [701, 341, 70]
    losses = {
        model: [each.prefix_loss_per_token for each in found]
        for model, found in lengths.items()
    }
    gains = [
        losses[model.replace("-tokens", "-states")][0] - losses[model][0]
        for model in losses
        if model.endswith("-tokens")
    ]
    assert (len(gains), round(min(gains), 2), round(max(gains), 2)) == (
        7,
        0.03,
        0.3,
    )
    middle = {model: found[1] for model, found in losses.items()}
    first, second, *_ = sorted(middle, key=middle.get)
    assert first == "rotary-tokens"
    assert round(middle["concat-tokens"] - middle[first], 2) == 0.24
    assert round(middle[second] - middle[first], 2) == 0.17
    near = [
        f"{m}-{v}" for m in ("alibi", "relative") for v in ("tokens", "states")
    ]
    assert all(abs(middle[m] - middle["concat-tokens"]) < 0.08 for m in near)
    assert max(found[2].bleu for found in lengths.values()) < 2.95
    best = sorted(losses, key=lambda model: losses[model][2])[:2]
    assert best == ["relative-states", "alibi-states"]


def test_what_is_said_of_the_cost_of_positions_is_so():
    page = " ".join(POSITIONS.read_text("utf-8").split())
    rows = benchmark("positions")["side_by_side"]
    ours = rows["positions:concat-tokens"]["seconds"]
    share = {
        name.partition(":")[
            2
        ]: f"{np.median(np.divide(row['seconds'], ours)):.2f}"
        for name, row in rows.items()
    }
    for one, other in (
        ("rotary", "untied"),
        ("alibi", "relative"),
        ("add", "none"),
    ):
        assert share[f"{one}-tokens"] == share[f"{other}-tokens"]
    others = {"alibi-tokens", "relative-tokens", "add-tokens", "none-tokens"}
    others = sorted(share[each] for each in others | {"concat-states"})
    said = (
        "takes {rotary-tokens} times causal RePE's, with all others, and with "
        f"concatenated ones and states, {others[0]} to {others[-1]}; the rival's takes "
        "{rival} ("
    )
    assert said.format(**share) in page


@pytest.mark.parametrize("cells", tables(COST, "blog"), ids=" ".join)
def test_the_blogs_comparisons_have_the_numbers_of_the_runs(cells):
    small, longer = (
        best("families", t)[cells[0]] for t in ("embedded", "pt_to_en")
    )
    products = scientific(mean(longer, "train_flops"))
    assert cells[1:4] == [products, small.cell(BLEU, 1), longer.cell(BLEU, 1)]


@functools.cache
def benchmark(name):
    return json.loads(
        (RESULTS / "benchmark" / name / "results.json").read_text()
    )


@pytest.mark.parametrize(
    "cells", tables(SPEED, "ratios"), ids=lambda row: row[0]
)
def test_the_page_of_speed_has_the_medians_of_the_rounds(cells):
    model, peer = cells[0].split(": ")
    row = benchmark(model)["training"][model][peer]
    names = "step", "epoch", "memory", "start_up"
    rounds = (
        np.divide(row["measured"][name], row["ours"][name]) for name in names
    )
    assert cells[1:] == [f"{np.median(each):.2f}" for each in rounds]


@pytest.mark.parametrize(
    "cells", tables(SPEED, "single"), ids=lambda row: row[0]
)
def test_the_page_of_speed_has_the_times_of_single_sentences(cells):
    searches = benchmark("decoding_one_at_a_time")["searches"].values()
    both = [
        (search["reprt"]["seconds"], search[cells[0]]["seconds"])
        for search in searches
    ]
    assert cells[1:] == [f"{np.median(np.divide(t, o)):.2f}" for o, t in both]
