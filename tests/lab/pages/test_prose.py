"""Every figure of README and results page is that of a frozen experiment."""

import functools
import json
import pathlib
import re

import numpy as np
import pytest

from reprt.analysis.cost import scientific
from reprt.lab.pages.families import BLEU, CHOSEN_BY, LOSS, choose
from reprt.lab.pages.frame import by_schedule, nearest, runs_table, spread
from reprt.lab.pages.runs import read_texts
from reprt.lab.pages.table1 import by_pair
from reprt.lab.paper import TABLE_1
from reprt.models.presets import preset

REPOSITORY = pathlib.Path(__file__).parents[3]
RESULTS = REPOSITORY / "experiments" / "results"
README = REPOSITORY / "README.md"
PAGE = REPOSITORY / "docs" / "results.md"
SPEED = REPOSITORY / "docs" / "speed.md"
CAUSAL = REPOSITORY / "docs" / "causal_repe.md"
POSITIONS = REPOSITORY / "docs" / "positions.md"
COST = REPOSITORY / "docs" / "cost.md"

# The rows of the page's table, and the models, those of equal size without dropout.
RIVALS = {
    "tied baseline": "cut",
    "narrow baseline": "narrow",
    "modern Transformer": "modern",
}
WHOLE = {"whole baseline": "baseline", "whole modern Transformer": "modern-whole"}
EQUAL = {"**causal RePE**": "values", "old causal RePE": "present", **RIVALS}
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
READING = (
    ["baseline", "TED-HRLR az_to_en", "schedule.dim = 64"],
    ["RePE, padding counted, values dropped out", "TED-HRLR az_to_en", PADDED],
)


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
        numbers = TABLE_1["az_to_en"][found[label].run.model]
        losses = ("train_loss", "val_loss")
        assert theirs == " / ".join(f"{numbers[loss]:.2f}" for loss in losses)
        assert ours == " / ".join(found[label].cell(loss, 2) for loss in losses)


def test_what_was_found_has_the_numbers_of_the_leaks_page():
    found = {label: runs for (label, _), runs in groups(RESULTS / "leak").items()}
    baseline = found["baseline"]
    behind = found["RePE as published"].differences(baseline, CHOSEN_BY).mean()
    ours = found["RePE without TokenNorm"]
    gap = spread(ours.differences(baseline, CHOSEN_BY), 3, "+")
    share = mean(ours, "parameters") / mean(baseline, "parameters")
    front, page = (" ".join(p.read_text("utf-8").split()) for p in (README, PAGE))
    assert f"{behind:.2f} nats per token above" in front
    assert f"loss is the baseline's ({gap} nats)" in front
    for told in (front, page):
        assert f"with {share:.0%}".replace("%", " %") + " of its parameters" in told


def test_the_readme_has_the_distances_of_the_nearest_single_reading():
    """m = 64 for both models, with padding counted and values dropped out."""
    page = (RESULTS / "readings" / "readings.md").read_text("utf-8")
    rows = [[*map(str.strip, line.split("|"))] for line in page.splitlines()]
    found = [f"{float(row[-2]):.2f}" for row in rows if row[1:4] in READING]
    assert "is {} and {} nats away".format(*found) in README.read_text("utf-8")


def test_the_quickstart_has_the_spread_of_the_first_run():
    found = groups(RESULTS / "embedded_corpus" / "seeds").items()
    found = {label: group for (label, _), group in found}
    cells = {label: group.cell(BLEU, 1) for label, group in found.items()}
    page = " ".join((REPOSITORY / "docs" / "quickstart.md").read_text("utf-8").split())
    expected = "{baseline} for the baseline, {causal RePE} for causal RePE and "
    assert (expected + "{RePE as published} for RePE").format(**cells) in page
    both = found["baseline"], groups(RESULTS / "embedded_corpus")["baseline", None]
    bleus = [bleu for group in both for bleu in group.table[BLEU]]
    near = {label: f"{mean(group, BLEU):.0f}" for label, group in found.items()}
    near["baseline"] = f"{min(bleus):.0f}–{max(bleus):.0f}"
    told = "baseline ({baseline}), RePE as published ({RePE as published}) and"
    assert f"{told} causal RePE ({{causal RePE}})".format(**near) in README.read_text()


def test_what_is_said_of_language_models_is_so():
    page, folder = " ".join(PAGE.read_text("utf-8").split()), RESULTS / "language_model"
    said = (
        "of {} and a prefix perplexity of {}. For the others the two are equal: {} for "
        "a plain decoder, {} for RePE without TokenNorm and {} for causal RePE.",
        "they are {} and {}, and {}, {} and {}.",
    )

    def told(n):
        return f"{n / 1e6:.0f} million" if n > 1e6 else f"{n:,.{int(n < 1e3)}f}"

    names = ["val_loss_per_token", CHOSEN_BY]
    for place, words in zip((folder, folder / "longer"), said):
        found = [np.exp(group.table[names]).mean() for group in groups(place).values()]
        causal, plain, leaking, without = found
        others = plain, without, causal
        assert np.allclose(*zip(*others), rtol=1e-3)
        numbers = map(told, [*leaking, *(prefix for _, prefix in others)])
        assert words.format(*numbers) in page


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


def contestant(row, pair):
    """The runs of a row of the contest's table on a text."""
    found, tenths = by_model("contest_2", pair), 1 if pair == "pt_to_en" else 2
    return found[WHOLE[row] if row in WHOLE else f"{EQUAL[row]}-{tenths}"]


def test_the_preset_is_the_model_of_the_contest():
    ours = preset("repe-causal")
    places = dict.fromkeys(["dropout", "dropout_places"])
    for pair in PAIRS:
        run, *_ = contestant("**causal RePE**", pair).table["run"]
        model = run.settings.model
        assert {*model.dropout_places} == {*ours.dropout_places}
        assert model.model_dump() | places == ours.model_dump() | places


@pytest.mark.parametrize("cells", tables(CAUSAL, "contest"), ids=lambda row: row[0])
def test_the_contest_has_the_numbers_of_the_runs(cells):
    groups = [contestant(cells[0], pair) for pair in PAIRS]
    numbers = ((LOSS, 3), (BLEU, 1))
    assert cells[1:] == [group.cell(*each) for group in groups for each in numbers]


def ahead(one, another):
    """By how much, in loss and BLEU, of the same seeds."""
    return another.differences(one, LOSS), one.differences(another, BLEU)


def wins(leads):
    return all(lead.mean() > 2 * lead.std() for lead in leads)


def leads(pair, row="**causal RePE**", rival=None):
    """By how much a model is ahead, in loss and BLEU, of the best rival or of one."""
    ours = contestant(row, pair)
    rivals = [contestant(each, pair) for each in RIVALS]
    rival = rival or min(rivals, key=lambda group: mean(group, LOSS))
    sizes = [mean(group, "parameters") for group in (ours, *rivals)]
    assert max(sizes) <= 1.02 * min(sizes) and "tied" in rival.run.label
    return ahead(ours, rival)


@pytest.mark.parametrize("pair", PAIRS)
def test_causal_repe_wins_the_small_texts_by_the_rule(pair):
    for row in ("**causal RePE**", "old causal RePE"):
        found = leads(pair, row)
        assert wins(found) == (pair != "pt_to_en")
        assert all((lead > 0).all() for lead in found)


@pytest.mark.parametrize("pair", PAIRS)
def test_causal_repe_beats_the_whole_models_by_the_rule(pair):
    for row in ("**causal RePE**", "old causal RePE"):
        for whole in WHOLE:
            assert wins(ahead(contestant(row, pair), contestant(whole, pair)))


def test_what_is_said_of_causal_repe_has_the_numbers_of_the_runs():
    page = " ".join(CAUSAL.read_text("utf-8").split())
    ours, before = "**causal RePE**", "old causal RePE"
    gains = [
        spread(contestant(before, p).differences(contestant(ours, p), LOSS), 3, "+")
        for p in PAIRS
    ]
    assert "worth {} nats on az_to_en, {} on gl_to_en and {} on".format(*gains) in page
    loss, bleu = leads("pt_to_en")
    assert f"by {spread(loss, 2)} nats and {spread(bleu, 1)} BLEU on average" in page
    of_rival, of_lead = [], []
    for pair in PAIRS[:2]:
        cut = by_model("contest_2", pair)["cut-1"]
        of_rival += [cut.cell(LOSS, 3), cut.cell(BLEU, 1)]
        assert wins(found := leads(pair, rival=cut))
        of_lead += [spread(found[0], 3), spread(found[1], 1)]
    said = "With 0.1 it has {} and BLEU {} there, and {} and {} on gl_to_en."
    assert said.format(*of_rival) in page
    said = "ahead of these by {} nats and {} BLEU, and by {} and {}, so it still wins"
    assert said.format(*of_lead) in page
    sizes = [
        mean(contestant(row, pair), "parameters")
        / mean(contestant(ours, pair), "parameters")
        for row in WHOLE
        for pair in PAIRS
    ]
    assert f"models, {min(sizes):.1f} to {max(sizes):.1f} times its size?" in page
    late = groups(RESULTS / "ablation" / "standin_pt_to_en")["baseline", 128]
    (run,) = late.table["run"]
    (there,) = (row["val_loss_per_token"] for row in run.log if row["step"] == 4050)
    here = mean(contestant(ours, "pt_to_en"), CHOSEN_BY)
    said = f"it validates at {there:.2f} in the same steps, causal RePE at {here:.2f}."
    end = run.log[-1]["val_loss_per_token"]
    assert f"{said} After twice the steps the baseline is at {end:.2f}." in page
    chosen = {
        run.name: run.numbers[CHOSEN_BY]
        for name in ("contest_2_choice", "repaired")
        for run in measured(name, "pt_to_en")
    }
    early = chosen["baseline-cut-tied-qk.high.0"] - chosen["values-1.higher.0"]
    after = mean(contestant("tied baseline", "pt_to_en"), CHOSEN_BY) - here
    said = f"{early:.2f} in the validation loss after two epochs, and {after:.2f} after"
    assert said in page


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


@pytest.mark.parametrize("cells", tables(POSITIONS, "positions"), ids=lambda c: c[0])
def test_positions_have_the_numbers_of_the_runs(cells):
    groups = [best("positions", text).get(cells[0]) for text in POSITIONS_TEXTS]
    found = [
        [f"{mean(g, LOSS):.3f}", f"{mean(g, BLEU):.1f}"] if g else [] for g in groups
    ]
    assert cells[1:] == sum(found, [])


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
        widths = [mean(found[f"concat-{p}"], LOSS) for p in ("tokens", 32, 16, 8)]
        assert widths == sorted(widths)
        pairs = [ahead(found[f"{m}-tokens"], found[f"{m}-states"]) for m in methods]
        gains.append([[lead.mean() for lead in pair] for pair in pairs])
    loss, bleu = ahead(found["untied-tokens"], ours)  # on gl_to_en
    assert f"by {spread(loss, 3)}, and a BLEU lower by {spread(-bleu, 1)}." in page
    losses, bleus = zip(*leads_of_rotary)
    said = "by {} on az_to_en, {} on the embedded corpus and {} on gl_to_en"
    assert said.format(*losses) in page
    assert "BLEU differs by {}, {} and {}.".format(*bleus) in page
    both = either - {"add-tokens", "relative-tokens"} | {"rival", "concat-8"}
    assert beaten[0] & beaten[1] == both
    assert beaten[0] == either | {"rival", "concat-16", "concat-8"}
    assert set.intersection(*beaten) == both
    states = {f"{m}-states" for m in methods[:3]}
    assert beaten[2] == both | {"concat-16", "relative-tokens", *states}
    losses, bleus = zip(*(zip(*each) for each in gains[1:]))
    said = "{:.2f} to {:.2f} on the embedded corpus and {:.2f} to {:.2f} on gl_to_en,"
    assert said.format(*(n(each) for each in losses for n in (min, max))) in page
    told = min(bleus[0]), max(bleus[0]), max(bleus[1])
    assert "and raise BLEU by {:.0f} to {:.0f} and 0 to {:.0f}.".format(*told) in page
    assert round(min(bleus[1]), 1) == 0  # without positions
    small = dict(zip(methods, gains[0]))
    assert all(0.9 < small[m][1] < 1.4 for m in ("concat", "rotary", "add"))
    assert [m for m in methods if small[m][0] < 0] == ["untied", *methods[4:]]


def test_what_is_said_of_positions_on_the_longer_text_is_so():
    page = " ".join(POSITIONS.read_text("utf-8").split())
    *small, found = (by_model("positions", text) for text in POSITIONS_TEXTS)
    ours, rival = found["concat-tokens"], found["rival"]
    assert {len(group.table) for group in found.values()} == {2}
    orders = [sorted(each, key=lambda m: mean(each[m], LOSS)) for each in small]
    others = {*small[0]} - {"concat-tokens", "rival"}
    ranked = sorted(others, key=lambda m: sum(order.index(m) for order in orders))
    assert {*found} == {"concat-tokens", "rival", *ranked[:4]}
    assert not any(wins(ahead(g, ours)) for g in found.values() if g is not ours)
    loss, bleu = ahead(found["rotary-tokens"], ours)
    said = f"loss by {spread(loss, 3)}, and BLEU differs by {spread(bleu, 1, '+')}."
    assert said in page
    loss, bleu = ahead(ours, rival)
    said = f"by {spread(loss, 3)} nats and {spread(bleu, 1)} BLEU, too unevenly to win."
    assert f"It leads the rival {said}" in page and not wins((loss, bleu))
    beaten = [m for m, g in found.items() if g is not ours and wins(ahead(ours, g))]
    assert beaten == ["rotary-states"]
    deviations = [
        f"{max(group.table[name].std() for group in each.values()):.{digits}f}"
        for each in (*small, found)
        for name, digits in ((LOSS, 3), (BLEU, 1))
    ]
    said = "at most {} and {}, {} and {}, {} and {}, and {} and {}."
    assert said.format(*deviations) in page


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
    assert (len(gains), round(min(gains), 2), round(max(gains), 2)) == (7, 0.03, 0.3)
    middle = {model: found[1] for model, found in losses.items()}
    first, second, *_ = sorted(middle, key=middle.get)
    assert first == "rotary-tokens"
    assert round(middle["concat-tokens"] - middle[first], 2) == 0.24
    assert round(middle[second] - middle[first], 2) == 0.17
    near = [f"{m}-{v}" for m in ("alibi", "relative") for v in ("tokens", "states")]
    assert all(abs(middle[m] - middle["concat-tokens"]) < 0.08 for m in near)
    assert max(found[2].bleu for found in lengths.values()) < 2.95
    best = sorted(losses, key=lambda model: losses[model][2])[:2]
    assert best == ["relative-states", "alibi-states"]


def test_what_is_said_of_the_cost_of_positions_is_so():
    page = " ".join(POSITIONS.read_text("utf-8").split())
    rows = benchmark("positions")["side_by_side"]
    ours = rows["positions:concat-tokens"]["seconds"]
    share = {
        name.partition(":")[2]: f"{np.median(np.divide(row['seconds'], ours)):.2f}"
        for name, row in rows.items()
    }
    for one, other in ("rotary", "untied"), ("alibi", "relative"), ("add", "none"):
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
    small, longer = (best("families", t)[cells[0]] for t in ("embedded", "pt_to_en"))
    products = scientific(mean(longer, "train_flops"))
    assert cells[1:4] == [products, small.cell(BLEU, 1), longer.cell(BLEU, 1)]


@functools.cache
def benchmark(name):
    return json.loads((RESULTS / "benchmark" / name / "results.json").read_text())


@pytest.mark.parametrize("cells", tables(SPEED, "ratios"), ids=lambda row: row[0])
def test_the_page_of_speed_has_the_medians_of_the_rounds(cells):
    model, peer = cells[0].split(": ")
    row = benchmark(model)["training"][model][peer]
    names = "step", "epoch", "memory", "start_up"
    rounds = (np.divide(row["measured"][name], row["ours"][name]) for name in names)
    assert cells[1:] == [f"{np.median(each):.2f}" for each in rounds]


@pytest.mark.parametrize("cells", tables(SPEED, "single"), ids=lambda row: row[0])
def test_the_page_of_speed_has_the_times_of_single_sentences(cells):
    searches = benchmark("decoding_one_at_a_time")["searches"].values()
    both = [
        (search["reprt"]["seconds"], search[cells[0]]["seconds"]) for search in searches
    ]
    assert cells[1:] == [f"{np.median(np.divide(t, o)):.2f}" for o, t in both]
