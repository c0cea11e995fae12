#!/usr/bin/env python
"""The numbers of prose, computed from runs: `python docs/facts.py` renews all pages.

A comment at the end of a paragraph, list item or table's row names the facts whose
numbers stand there, in their order:

    Its loss is 0.61 nats above the baseline's.<!--facts:leak.published-->

Whole tables have a comment above them, such as `<!-- contest -->`; their first cells
say of which runs a row is. `docs/facts.json` has all facts, as the pages have them now.
A sentence may be written anew as long as its numbers and its comment stay.
"""

import datetime
import functools
import json
import re
from pathlib import Path

import numpy as np

from reprt import models
from reprt.analysis.cost import scientific
from reprt_lab import paper
from reprt_lab.pages.controls import difference_and_p_value
from reprt_lab.pages.families import choose
from reprt_lab.pages.frame import (
    BLEU,
    FORCED,
    LOSS,
    PREFIX,
    Group,
    cells,
    gap,
    group_of_paper,
    group_runs,
    nearest_to_paper,
    runs_table,
    spread,
)
from reprt_lab.pages.readings import (
    distance,
    readings_of_both,
    readings_of_each,
)
from reprt_lab.pages.runs import read_texts

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "experiments" / "results"
FACTS = REPOSITORY / "docs" / "facts.json"
PAGES = [
    REPOSITORY / "README.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
    *sorted(RESULTS.glob("**/notes.md")),
    REPOSITORY / "reprt_lab" / "pages" / "table1.md",
]

Fact = list[str]
Facts = dict[str, Fact]

# --- The runs that pages speak of.

# English-French, the training text.
WMT14_PAIRS = 40_800_000
SCALE_STAGES = (
    "reading",
    "learning",
    "encoding",
    "first_step",
    "cold",
    "warm",
)
PAIRS = ("az_to_en", "gl_to_en", "pt_to_en")
SMALL_TEXTS = PAIRS[:2]
POSITIONS_TEXTS = ("az_to_en", "embedded", "gl_to_en", "pt_to_en")
# The rows of the contest's tables, and the models.
CANDIDATES = {
    "**causal RePE**": "values",
    "causal RePE without value dropout": "present",
}
OURS, WITHOUT = CANDIDATES
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
EQUAL_SIZE = CANDIDATES | RIVALS
# The texts of the tables of paired differences, and the folders of their runs.
ABLATIONS = {
    "az_to_en": "ablation/az_to_en",
    "longer text": "ablation/standin_pt_to_en",
    "embedded corpus": "ablation/embedded_corpus",
    "embedded corpus, higher rates": "ablation/embedded_corpus_high_rates",
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
AZ_TO_EN = "TED-HRLR az_to_en"
LANGUAGE_MODELS = ("language_model", "language_model/longer")


@functools.cache
def groups(folder: str) -> dict[tuple[str, int | None], Group]:
    """Returns the models of an experiment on one text, by label and m."""
    runs = read_texts(RESULTS / folder)[0]
    systems = {}
    for group in group_runs(runs_table(run for run in runs if run.metrics)):
        systems[group.label, group.run.settings.schedule_dim] = group
    return systems


@functools.cache
def measured(experiment: str, pair: str):
    """Returns the runs on a text that have a loss to be chosen by."""
    for runs in read_texts(RESULTS / experiment):
        if pair in runs[0].text:
            return [run for run in runs if PREFIX in run.numbers]


@functools.cache
def best(experiment: str, pair: str) -> dict[str, Group]:
    """Returns every model on a text at the rate that the validation split chose."""
    whole = []
    for run in measured(experiment, pair):
        if not run.settings.text.train_tokens:
            whole.append(run)
    return {group.label: group for group in choose(runs_table(whole))}


def by_model(experiment: str, pair: str) -> dict[str, Group]:
    chosen = best(experiment, pair).values()
    return {group.run.model: group for group in chosen}


def numbers_of(experiment: str, pair: str, name: str) -> dict[str, dict]:
    """Returns a number of every run on a text, by the runs' names."""
    runs = measured(experiment, pair)
    return {run.name: run.numbers[name] for run in runs}


def contestant(row: str, pair: str) -> Group | None:
    """Returns the runs of a row of the contest's table on a text."""
    tenths = 1 if pair == "pt_to_en" else 2
    name = (FULL_SIZE | TIED).get(row) or f"{EQUAL_SIZE[row]}-{tenths}"
    return by_model("contest_2", pair).get(name)


def ahead(one: Group, other: Group):
    """Returns by how much one leads, in loss and BLEU, by the seeds that both have."""
    return other.differences(one, LOSS), one.differences(other, BLEU)


def leads(pair: str, row: str = OURS, rival: str = "tied baseline"):
    """Returns by how much a row of the contest's table leads another."""
    return ahead(contestant(row, pair), contestant(rival, pair))


def wins(leads) -> bool:
    """Whether both leads are larger than two of their standard deviations."""
    return all(lead.mean() > 2 * lead.std() for lead in leads)


def lead(leads) -> Fact:
    loss, bleu = leads
    return [spread(loss, 3), spread(bleu, 1)]


@functools.cache
def benchmark(name: str):
    path = RESULTS / "benchmark" / name / "results.json"
    return json.loads(path.read_text())


def ratio(ours, theirs) -> float:
    """Returns the median of the ratios of a benchmark's rounds."""
    return float(np.median(np.divide(ours, theirs)))


def interval(differences, digits: int) -> str:
    """Returns a mean and its 95 % interval, without signs of plus."""
    return difference_and_p_value(differences, digits)[0].replace("+", "")


def percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


# --- Facts.


def leak_facts() -> Facts:
    on_az = {label: group for (label, _), group in groups("leak").items()}
    baseline, ours = on_az["baseline"], on_az["RePE without TokenNorm"]
    published = on_az["RePE as published"]
    padded = on_az["RePE as published, padding counted"]
    longer = groups(ABLATIONS["longer text"])
    prefix, whole = (
        longer["RePE, prefix statistics", 128],
        longer["baseline", 128],
    )
    behind = prefix.differences(whole, PREFIX).mean()
    fewer = whole.differences(prefix, BLEU).mean()
    run = ours.run
    share = ours.mean("parameters") / baseline.mean("parameters")
    longer_published = longer["RePE as published", 128]
    return {
        "leak.published": [gap_of(published, baseline, 2)],
        "leak.padded": [gap_of(padded, baseline, 2)],
        "leak.without": [spread(ours.differences(baseline, PREFIX), 3, "+")],
        "leak.losses": [
            padded.cell(FORCED, 3).split()[0],
            padded.cell(PREFIX, 3).split()[0],
            baseline.cell(PREFIX, 3).split()[0],
        ],
        "leak.size": [percent(share)],
        "leak.steps": [
            f"{run.log[-1]['step']:.0f}",
            f"{run.settings.schedule.warmup_steps:,}",
        ],
        "longer.behind": [f"{behind:.3f}", f"{fewer:.1f}"],
        "longer.bleu.published": [f"{longer_published.mean(BLEU):.2f}"],
        "longer.bleu.prefix": [f"{prefix.mean(BLEU):.1f}"],
        "longer.bleu.baseline": [f"{whole.mean(BLEU):.1f}"],
    }


def gap_of(group: Group, other: Group, digits: int) -> str:
    """Returns how far a group's prefix loss is above another's, paired by seed."""
    return f"{group.differences(other, PREFIX).mean():.{digits}f}"


def paper_facts() -> Facts:
    (baseline, deviation), (seconds, _) = (
        paper.FIGURE_3B[model] for model in ("baseline", "repe")
    )
    times = papers_times()
    az = paper.TABLE_1["az_to_en"]
    gains = {}
    for loss in ("train_loss", "val_loss"):
        gains[loss] = f"{az['baseline'][loss] - az['repe'][loss]:.2f}"
    counts = paper.PARAMETERS
    return {
        "paper.parameters": [
            f"{counts['repe']:,}",
            f"{counts['baseline']:,}",
        ],
        "paper.seconds": [f"{seconds:,.0f}", f"{baseline:,.0f}"],
        "paper.time": [f"{seconds / baseline:.2f}"],
        "paper.times": [
            f"{min(times.values()):.1f}",
            f"{max(times.values()):.1f}",
        ],
        "paper.gain.training": [gains["train_loss"]],
        "paper.gain.validation": [gains["val_loss"]],
        "paper.lower": [str(len(lower_pairs())), str(len(paper.TABLE_1))],
    }


def papers_times() -> dict[str, float]:
    """Returns by what RePE is faster in Table 1, by pair."""
    times = {}
    for pair, both in paper.TABLE_1.items():
        ours, baseline = both["repe"], both["baseline"]
        times[pair] = baseline["seconds_an_epoch"] / ours["seconds_an_epoch"]
    return times


def ten_epochs() -> set[str]:
    """Returns the pairs on which both models had ten epochs in Table 1."""
    pairs = set()
    for pair, both in paper.TABLE_1.items():
        if both["repe"]["epochs"] == both["baseline"]["epochs"] == 10:
            pairs.add(pair)
    return pairs


def claims_facts() -> Facts:
    """What the paper's Table 1 says of its claims."""
    times = papers_times()
    lower, ten = lower_pairs(), ten_epochs()
    far, close, slack = [], [], []
    for pair, time in times.items():
        if not 2 <= time <= 4:
            far.append(f"{pair} {time:.2f}")
        ours, baseline = (
            paper.TABLE_1[pair]["repe"],
            paper.TABLE_1[pair]["baseline"],
        )
        gains = [
            baseline[loss] - ours[loss] for loss in ("train_loss", "val_loss")
        ]
        if pair in lower and max(gains) < 0.1:
            close.append(pair)
        epochs = int(12 * 3600 // ours["seconds_an_epoch"])
        if epochs > ours["epochs"] < 10:
            slack.append(f"{pair} {epochs} for {ours['epochs']}")
    fewer = paper.PARAMETERS["baseline"] / paper.PARAMETERS["repe"]
    return {
        "claims.times": [
            f"{min(times.values()):.2f}",
            f"{max(times.values()):.2f}",
            ", ".join(far),
        ],
        "claims.lower": [
            str(len(lower)),
            ", ".join(close),
            str(len(lower - ten)),
        ],
        "claims.ten": [str(len(ten)), str(len(ten & lower))],
        "claims.fewer": [f"{fewer:.2f}", f"{times['pt_to_en']:.2f}"],
        "claims.epochs": [", ".join(slack)],
    }


def lower_pairs() -> set[str]:
    """Returns the pairs on which both of RePE's losses are lower in Table 1."""
    pairs = set()
    for pair, both in paper.TABLE_1.items():
        if (
            both["repe"]["train_loss"] < both["baseline"]["train_loss"]
            and both["repe"]["val_loss"] < both["baseline"]["val_loss"]
        ):
            pairs.add(pair)
    return pairs


def nearest_az() -> dict[str, Group]:
    """Returns our models of Table 1 on az_to_en, beside the paper's numbers."""
    for runs in read_texts(RESULTS / "table1"):
        if runs[0].pair == "az_to_en":
            ours = nearest_to_paper(run for run in runs if run.finished)
    for model, group in ours.items():
        reference = group_of_paper("az_to_en", model)
        ours[model] = group._replace(reference=reference)
    return ours


def table1_facts() -> Facts:
    columns = {
        "training": gap("train_loss", 2),
        "validation": gap("val_loss", 2),
    }
    facts = {}
    for model, group in nearest_az().items():
        gaps = cells(group, columns, group.reference).values()
        facts[f"table.{model}"] = [gap.lstrip("+-") for gap in gaps]
    return facts


PLACES = "['embeddings', 'attention_weights', 'feed_forward_output', 'values']"
PADDED = "model.padding_in_statistics = True"


@functools.cache
def reading_groups() -> dict[str, list[Group]]:
    return readings_of_each(read_texts(RESULTS / "readings"), "az_to_en")


def readings() -> dict[tuple[str, ...], float]:
    """Returns each reading's distance on az_to_en, by the preset and departures."""
    distances = {}
    for preset, groups in reading_groups().items():
        for group in groups:
            if group.run.text == AZ_TO_EN:
                reading = preset, *sorted(group.run.departures)
                distances[reading] = distance(group)
    return distances


def largest_distances(seeds: int = 1) -> list[str]:
    """Returns the largest of four distances of readings of both models, by seeds."""
    rows = readings_of_both(reading_groups(), AZ_TO_EN)
    distances = []
    for row in rows:
        if int(row["seeds"]) >= seeds:
            distances.append(row["largest distance"])
    return distances


def readings_facts() -> Facts:
    distances = readings()
    alone = []
    for model in paper.LABELS:
        nearest = min(
            distances[reading] for reading in distances if reading[0] == model
        )
        alone.append(f"{nearest:.2f}")
    first, _, third, *_ = largest_distances(seeds=3)
    return {"readings.alone": alone, "readings.both": [first, third]}


def size_facts() -> Facts:
    """By how much concatenated positions make a model larger."""
    systems = groups(ABLATIONS["embedded corpus"])
    concatenated = systems["only concatenated positions", 128]
    none = systems["RePE's size, none of its changes", 128]
    sizes = {}
    for position in ("concat", "add"):
        model = models.build(
            "repe",
            7765,
            7010,
            position=position,
            embedding_norm="none",
            value="states",
        )
        sizes[position] = model.count_params()
    few = concatenated.mean("parameters") / none.mean("parameters")
    many = sizes["concat"] / sizes["add"]
    return {"concat.size": [percent(few - 1), percent(many - 1)]}


def first_run_facts() -> Facts:
    systems = {}
    for (label, _), group in groups("embedded_corpus/seeds").items():
        systems[label] = group
    baseline = groups("embedded_corpus")["baseline", None]
    bleus = [*systems["baseline"].table[BLEU], *baseline.table[BLEU]]
    ours, published = systems["causal RePE"], systems["RePE as published"]
    return {
        "first.seeds": [
            systems["baseline"].cell(BLEU, 1),
            ours.cell(BLEU, 1),
            published.cell(BLEU, 1),
        ],
        "first.bleu": [
            f"{min(bleus):.0f}–{max(bleus):.0f}",
            f"{published.mean(BLEU):.0f}",
            f"{ours.mean(BLEU):.0f}",
        ],
    }


def language_facts() -> Facts:
    generated, longer = (
        groups(place)["RePE's three changes", None] for place in LANGUAGE_MODELS
    )
    perplexity = np.exp(generated.table[FORCED]).mean()
    by_prefix = np.exp(generated.table[PREFIX]).round(-3)
    low, high = sorted(np.exp(longer.table[PREFIX]) / 1e6)
    return {
        "language.forced": [f"{generated.mean(FORCED):.2f}"],
        "language.prefix": [generated.cell(PREFIX, 2)],
        "language.longer": [longer.cell(PREFIX, 1)],
        "language.perplexity.forced": [f"{perplexity:.1f}"],
        "language.perplexity": [
            f"{by_prefix.min():,.0f}",
            f"{by_prefix.max():,.0f}",
        ],
        "language.perplexity.longer": [f"{low:.1f}", f"{high:.1f}"],
    }


def contest_facts() -> Facts:
    smallest = {}
    for pair in SMALL_TEXTS:
        both = [leads(pair, rival=rival) for rival in TIED]
        loss, bleu = (min(lead.mean() for lead in kind) for kind in zip(*both))
        smallest[pair] = [f"{loss:.2f}", f"{bleu:.1f}"]
    sizes = []
    for pair in PAIRS:
        size = contestant(OURS, pair).mean("parameters")
        for row in FULL_SIZE:
            sizes.append(contestant(row, pair).mean("parameters") / size)
    baselines = [contestant("full-size baseline", pair) for pair in SMALL_TEXTS]
    (late,) = groups(ABLATIONS["longer text"])["baseline", 128].table["run"]
    (there,) = (row[FORCED] for row in late.log if row["step"] == 4050)
    here = contestant(OURS, "pt_to_en").mean(PREFIX)
    ends = []
    for pair in SMALL_TEXTS:
        for row in EQUAL_SIZE:
            for run in contestant(row, pair).table["run"]:
                ends.append(run.metrics.finished[:16])
    end = datetime.datetime.fromisoformat(max(ends))
    return {
        "contest.az": smallest["az_to_en"],
        "contest.gl": smallest["gl_to_en"],
        "contest.sizes": [f"{min(sizes):.1f}", f"{max(sizes):.1f}"],
        "contest.warmup": [
            str(baselines[0].run.settings.schedule.warmup_steps)
        ],
        "contest.whole.bleu": [f"{g.mean(BLEU):.1f}" for g in baselines],
        "contest.later": [
            f"{there:.2f}",
            f"{here:.2f}",
            f"{late.log[-1][FORCED]:.2f}",
        ],
        "contest.ended": [f"{end:%-d %B %Y at %H:%M}"],
    }


def dropout_facts() -> Facts:
    """What dropout on values does, and a dropout of 0.2."""
    gains = [leads(pair, rival=WITHOUT)[0] for pair in PAIRS]
    equal = []
    for pair in SMALL_TEXTS:
        losses = numbers_of("contest_2", pair, LOSS)
        gain = losses["only-states.high.11"] - losses["values-2.high.11"]
        equal.append(f"{abs(gain):.3f}")
    before = by_model("contest_1", "az_to_en")["qk-rms"]
    losses = [
        before,
        contestant(WITHOUT, "az_to_en"),
        contestant(OURS, "az_to_en"),
    ]
    tied = "tied baseline, dropout 0.1"
    return {
        "dropout.equal": equal,
        "dropout.longer": [spread(-gains[2], 3)],
        "dropout.small": [spread(gains[0], 3), spread(gains[1], 3)],
        "dropout.losses": [f"{group.mean(LOSS):.3f}" for group in losses],
        "dropout.without.az": lead(leads("az_to_en", WITHOUT, tied)),
        "dropout.without.gl": lead(leads("gl_to_en", WITHOUT, tied)),
    }


def rules_facts() -> Facts:
    """What weakens the contest's rules."""
    chose = measured("contest_2_choice", "az_to_en")
    chose = [*chose, *measured("contest_2_choice", "pt_to_en")]
    ours = [r for r in chose if r.model.startswith(("values", "present"))]
    without = [run for run in ours if run.model.startswith("present")]
    before = by_model("contest_1", "gl_to_en")
    losses = []
    for rival, name in zip(RIVALS, FIRST_RIVALS):
        losses.append(f"{contestant(rival, 'gl_to_en').mean(LOSS):.3f}")
        losses.append(f"{before[name].mean(LOSS):.3f}")
    one = numbers_of("contest_1", "az_to_en", PREFIX)
    two = numbers_of("contest_2_choice", "az_to_en", PREFIX)
    hair = one["baseline-cut-tied-qk.high.1"] - two["cut-2.high.1"]
    chosen = numbers_of("contest_2_choice", "pt_to_en", PREFIX)
    chosen |= numbers_of("repaired", "pt_to_en", PREFIX)
    early = chosen["baseline-cut-tied-qk.high.0"] - chosen["values-1.higher.0"]
    ours_late = contestant(OURS, "pt_to_en").mean(PREFIX)
    late = contestant("tied baseline", "pt_to_en").mean(PREFIX) - ours_late
    return {
        "rules.runs": [str(len(chose)), str(len(ours)), str(len(without))],
        "rules.rivals": losses,
        "rules.hair": [f"{hair:.3f}"],
        "rules.lead": [f"{early:.2f}", f"{late:.2f}"],
    }


# The rivals of the first contest, in the order of RIVALS.
FIRST_RIVALS = ("baseline-cut-tied-qk", "baseline-narrow-qk", "modern")
METHODS = ("concat", "rotary", "untied", "add", "relative", "alibi", "none")


def statistics_facts() -> Facts:
    """Leads with their 95 % intervals."""
    az, gl = (by_model("statistics", pair) for pair in SMALL_TEXTS)
    facts = {}
    for name, systems in (("az", az), ("gl", gl)):
        tied_leads = []
        # On gl_to_en the one named cut-2 has the dropout that was chosen there.
        for tied in TIED.values():
            tied_leads.append(ahead(systems["concat-tokens"], systems[tied])[0])
        smallest = min(tied_leads, key=np.mean)
        facts[f"statistics.tied.{name}"] = [interval(smallest, 3)]
    loss, bleu = ahead(az["rotary-states"], az["concat-tokens"])
    facts["statistics.rotary.states.az"] = [interval(loss, 3)]
    facts["statistics.rotary.states.az.bleu"] = [interval(bleu, 1)]
    facts["statistics.rotary.states.az.seeds"] = [str(len(loss))]
    loss, _ = ahead(gl["concat-tokens"], gl["rotary-states"])
    facts["statistics.causal.gl"] = [interval(loss, 3)]
    loss, _ = ahead(gl["rotary-tokens"], gl["concat-tokens"])
    facts["statistics.rotary.tokens.gl"] = [interval(loss, 3)]
    return facts


def values_gains(text: str) -> dict[str, list[float]]:
    """Returns what tokens as values gain, in loss and BLEU, by position method."""
    systems = by_model("positions", text)
    gains = {}
    for method in METHODS:
        pair = ahead(systems[f"{method}-tokens"], systems[f"{method}-states"])
        gains[method] = [lead.mean() for lead in pair]
    return gains


def positions_facts() -> Facts:
    az, embedded, gl, longer = (
        by_model("positions", text) for text in POSITIONS_TEXTS
    )
    facts = {}
    differences = []
    for name, systems in (("az", az), ("gl", gl), ("embedded", embedded)):
        loss, bleu = ahead(systems["rotary-tokens"], systems["concat-tokens"])
        facts[f"positions.rotary.{name}"] = [spread(loss, 3)]
        differences.append(spread(bleu, 1, "+"))
    az_bleu, gl_bleu, embedded_bleu = differences
    facts["positions.rotary.bleu"] = [az_bleu, gl_bleu, embedded_bleu]
    loss, bleu = ahead(gl["untied-tokens"], gl["concat-tokens"])
    facts["positions.untied.gl"] = [spread(loss, 3), spread(-bleu, 1)]
    states = [
        ahead(az[f"{method}-states"], az["concat-tokens"])
        for method in ("rotary", "untied")
    ]
    facts["positions.states.loss"] = [spread(loss, 3) for loss, _ in states]
    facts["positions.states.bleu"] = [spread(-bleu, 1) for _, bleu in states]
    for text, systems in (("az_to_en", az), ("gl_to_en", gl)):
        tied = by_model("contest_2", text)["cut-1"]
        leading = ahead(systems["concat-tokens"], tied)
        facts[f"positions.rival.{text[:2]}"] = lead(leading)
    leading = ahead(gl["concat-tokens"], gl["rival"])
    facts["positions.rival.gl.more"] = lead(leading)
    by_loss, by_bleu = [], []
    for text in ("embedded", "gl_to_en"):
        losses, bleus = zip(*values_gains(text).values())
        by_loss += [f"{min(losses):.2f}", f"{max(losses):.2f}"]
        by_bleu += [f"{abs(min(bleus)):.0f}", f"{max(bleus):.0f}"]
    facts["positions.values"] = [*by_loss, *by_bleu]
    loss, bleu = ahead(longer["rotary-tokens"], longer["concat-tokens"])
    rotary = [spread(loss, 3), spread(bleu, 1, "+")]
    facts["positions.rotary.longer"] = rotary
    leading = ahead(longer["concat-tokens"], longer["rival"])
    facts["positions.rival.longer"] = lead(leading)
    return facts | lengths_facts() | positions_cost_facts()


def losses_by_length() -> dict[str, list]:
    """Returns what came out on each range of lengths, by model, shortest first."""
    lengths = {}
    for run in measured("positions", "gl_to_en"):
        if run.settings.text.train_tokens:
            lengths[run.model] = run.metrics.test_by_length
    return lengths


def lengths_facts() -> Facts:
    lengths = losses_by_length()
    short, middle = {}, {}
    for model, (first, second, _) in lengths.items():
        short[model] = first.prefix_loss_per_token
        middle[model] = second.prefix_loss_per_token
    gains = []
    for method in METHODS:
        gains.append(short[f"{method}-states"] - short[f"{method}-tokens"])
    lowest, second, *_ = sorted(middle.values())
    most = max(last.bleu for *_, last in lengths.values())
    return {
        "lengths.sentences": [str(p.sentences) for p in lengths["rival"]],
        "lengths.values": [f"{min(gains):.2f}", f"{max(gains):.2f}"],
        "lengths.rotary": [
            f"{middle['concat-tokens'] - lowest:.2f}",
            f"{second - lowest:.2f}",
        ],
        "lengths.bleu": [f"{most:.1f}"],
    }


def positions_steps() -> dict[str, str]:
    """Returns each position method's time of a step, in those of causal RePE."""
    rows = benchmark("positions")["side_by_side"]
    ours = rows["positions:concat-tokens"]["seconds"]
    steps = {}
    for name, row in rows.items():
        steps[name.partition(":")[2]] = f"{ratio(row['seconds'], ours):.2f}"
    return steps


def positions_cost_facts() -> Facts:
    steps = positions_steps()
    others = [steps["concat-states"]]
    for method in ("alibi", "relative", "add", "none"):
        others.append(steps[f"{method}-tokens"])
    return {
        "positions.steps": [
            steps["rotary-tokens"],
            min(others),
            max(others),
            steps["rival"],
        ]
    }


def speed_facts() -> Facts:
    rows = benchmark("models")["side_by_side"]
    baseline = rows["baseline"]["seconds"]
    repe = ratio(rows["repe"]["seconds"], baseline)
    causal = ratio(rows["repe-causal"]["seconds"], baseline)
    programs = benchmark("joeynmt")["programs"]
    ours, joeynmt = programs["reprt train"], programs["joeynmt train"]
    options = groups("speed_options")
    losses = {}
    for (label, _), group in options.items():
        losses[label] = group.cell(FORCED, 3)
    return {
        "speed.step": [f"{repe:.2f}"],
        "speed.steps": [f"{repe:.3f}", f"{causal:.3f}"],
        "speed.joeynmt": [
            f"{ours['seconds']:.0f}",
            f"{ours['steps']}",
            f"{joeynmt['steps']}",
            f"{ours['tokens_per_second']:,.0f}",
            f"{joeynmt['tokens_per_second']:,.0f}",
            f"{ours['validation_loss']:.2f}",
            f"{joeynmt['validation_loss']:.2f}",
        ],
        "speed.options": [
            losses["RePE in bfloat16"],
            losses["RePE, batches by length"],
        ],
    }


@functools.cache
def scale():
    """Returns what was measured of long texts, by size, vocabulary and stage."""
    path = RESULTS / "benchmark" / "scale.jsonl"
    rows = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        rows[row["pairs"], row["vocabulary"], row["stage"]] = row
    return rows


def of_wmt14(stage: str, name: str) -> float:
    """Returns a number for WMT'14, on the line through the two largest texts."""
    smaller, larger = 800_000, 2_000_000
    before, after = (
        scale()[pairs, "bpe", stage][name] for pairs in (smaller, larger)
    )
    slope = (after - before) / (larger - smaller)
    return after + slope * (WMT14_PAIRS - larger)


def scale_facts() -> Facts:
    memory = []
    for (pairs, vocabulary, _), row in scale().items():
        if (pairs, vocabulary) == (2_000_000, "bpe"):
            memory.append(row["peak_memory_bytes"])
    minutes = []
    for stage in ("reading", "encoding", "warm"):
        minutes.append(f"{of_wmt14(stage, 'seconds') / 60:.0f}")
    peak = of_wmt14("warm", "peak_memory_bytes")
    return {
        "scale.most": [f"{max(memory) / 2**30:.2f}"],
        "scale.wmt14": [*minutes, f"{peak / 2**30:.1f}"],
    }


def compute_facts() -> Facts:
    """Returns the numbers of each fact, as prose has them, by its name."""
    return {
        **leak_facts(),
        **paper_facts(),
        **claims_facts(),
        **table1_facts(),
        **readings_facts(),
        **size_facts(),
        **first_run_facts(),
        **language_facts(),
        **contest_facts(),
        **dropout_facts(),
        **rules_facts(),
        **statistics_facts(),
        **positions_facts(),
        **speed_facts(),
        **scale_facts(),
    }


# --- Rows of tables: their numbers, by the cells that they begin with.


def paired_row(models: str, text: str, m: str, *_) -> Fact:
    one, other = models.split(" − ")
    systems = groups(ABLATIONS[text])
    first, second = systems[one, int(m)], systems[other, int(m)]
    return [spread(first.differences(second, PREFIX), 3, "+")]


def table1_row(label: str, *_) -> Fact:
    (group,) = (g for g in nearest_az().values() if g.label == label)
    reference = group.reference
    return [
        f"{reference.cell('train_loss', 2)} / {reference.cell('val_loss', 2)}",
        f"{group.cell('train_loss', 2)} / {group.cell('val_loss', 2)}",
    ]


def language_row(label: str, *_) -> Fact:
    row = []
    for place in LANGUAGE_MODELS:
        group = groups(place)[label, None]
        row += [group.cell(FORCED, 3), group.cell(PREFIX, 3)]
    return row


def contest_row(label: str, *_) -> Fact:
    row = []
    for pair in PAIRS:
        group = contestant(label, pair)
        row += (
            [group.cell(LOSS, 3), group.cell(BLEU, 1)] if group else ["–"] * 2
        )
    return row


def leads_row(dropout: str, *_) -> Fact:
    rival = f"tied baseline, dropout {dropout}"
    row = []
    for pair in PAIRS:
        ran = contestant(rival, pair)
        row += lead(leads(pair, rival=rival)) if ran else ["–"] * 2
    return row


def why_row(dropped: str, *_) -> Fact:
    small, longer = WHY[dropped]
    runs = [
        ("az_to_en", f"{small}.high.11"),
        ("gl_to_en", f"{small}.high.11"),
        ("pt_to_en", f"{longer}.higher.11"),
    ]
    row = []
    for pair, name in runs:
        for loss in ("train_loss_per_token", PREFIX):
            row.append(f"{numbers_of('contest_2', pair, loss)[name]:.3f}")
    return row


def positions_row(label: str, *_) -> Fact:
    row = []
    for text in POSITIONS_TEXTS:
        systems = best("positions", text)
        group = systems.get(label)
        if label == "rival, dropout 0.1 (contest)" and text != "embedded":
            group = by_model("contest_2", text)["cut-1"]
        for number, digits in ((LOSS, 3), (BLEU, 1)):
            cell = "–"
            if group is not None:
                cell = f"{group.mean(number):.{digits}f}"
            if label == "largest standard deviation":
                most = max(g.table[number].std() for g in systems.values())
                cell = f"{most:.{digits}f}"
            row.append(cell)
    return row


def blog_row(label: str, *cells) -> Fact:
    small = best("families", "embedded")[label]
    longer = best("families", "pt_to_en")[label]
    products = scientific(longer.mean("train_flops"))
    *_, reported = cells
    return [products, small.cell(BLEU, 1), longer.cell(BLEU, 1), reported]


MODELS = {"RePE": "repe", "causal RePE": "repe-causal", "baseline": "baseline"}
PEERS = {
    "Keras' own layers": "plain_keras",
    "ours by `fit`": "reprt:fit",
    "ours in bfloat16": "reprt:bfloat16",
    "ours, batches by length": "reprt:bucketed",
    "ours on JAX": "reprt:jax",
    "keras-hub": "keras_hub",
    "PyTorch": "pytorch",
    "PyTorch, compiled": "pytorch:compiled",
}


def commits_row(label: str, *_) -> Fact:
    row = benchmark("commits")["commits"]["models"][MODELS[label]]
    milliseconds = []
    for when in ("now", "before"):
        milliseconds.append(f"{np.median(row[when]) * 1000:.0f}")
    return [*milliseconds, f"{ratio(row['now'], row['before']):.2f}"]


def ratios_row(label: str, *_) -> Fact:
    name, peer = label.split(": ")
    model = MODELS[name]
    row = benchmark(model)["training"][model][PEERS[peer]]
    cells = []
    for name in ("step", "epoch", "memory", "start_up"):
        times = ratio(row["measured"][name], row["ours"][name])
        cells.append(f"{times:.2f}")
    return cells


def single_row(peer: str, *_) -> Fact:
    cells = []
    for search in benchmark("decoding_one_at_a_time")["searches"].values():
        times = ratio(search[peer]["seconds"], search["reprt"]["seconds"])
        cells.append(f"{times:.2f}")
    return cells


def scale_row(pairs: str, vocabulary: str, *_) -> Fact:
    cells = []
    for stage in SCALE_STAGES:
        key = int(pairs.replace(",", "")), vocabulary.lower(), stage
        if key in scale():
            row = scale()[key]
            memory = row["peak_memory_bytes"] / 2**30
            cells.append(f"{row['seconds']:,.0f} s, {memory:.2f}")
        else:
            cells.append("not run")
    return cells


ROWS = {
    "paired": paired_row,
    "table1": table1_row,
    "language_model": language_row,
    "contest": contest_row,
    "leads": leads_row,
    "why": why_row,
    "positions": positions_row,
    "blog": blog_row,
    "commits": commits_row,
    "ratios": ratios_row,
    "single": single_row,
    "scale": scale_row,
}

# --- Pages.

COMMENT = re.compile(r"<!--facts:(.*?)-->")
TABLE = re.compile(r"<!-- (\w+) -->\n\n\|.*\n\|.*\n((?:\|.*\n)+)")


def renewed(text: str, old: Facts, new: Facts) -> str:
    """Returns a page in which the new numbers have taken the place of the old."""
    blocks = []
    for block in re.split(r"(?=\n\n|\n- |\n\|)", text):
        for names in COMMENT.findall(block):
            block = renewed_block(block, names.split(","), old, new)
        blocks.append(block)
    return TABLE.sub(renewed_table, "".join(blocks))


def renewed_block(block: str, names, old: Facts, new: Facts) -> str:
    """Returns a block, in which the numbers of facts stand in their order."""
    place = 0
    for name in names:
        if name not in new:
            raise ValueError(f"No fact is called {name!r}. Received: {block}")
        for before, after in zip(old.get(name, new[name]), new[name]):
            spaced = re.escape(before).replace(r"\ ", r"\s+")
            pattern = re.compile(rf"(?<![\w.,]){spaced}(?!\w|[.,]\d)")
            match = pattern.search(block, place)
            if match is None:
                raise ValueError(
                    f"Expected {before}, of the fact {name}, in this text, behind the "
                    f"facts that its comment names before. Received:\n{block.strip()}"
                )
            if before == after:
                after = match[0]
            block = block[: match.start()] + after + block[match.end() :]
            place = match.start() + len(after)
    return block


def renewed_table(table: re.Match) -> str:
    lines = []
    for line in table[2].splitlines():
        row = [cell.strip() for cell in line.strip("|").split("|")]
        numbers = ROWS[table[1]](*row)
        row[-len(numbers) :] = numbers
        lines.append(f"| {' | '.join(row)} |\n")
    return table[0].removesuffix(table[2]) + "".join(lines)


def main():
    old = json.loads(FACTS.read_text()) if FACTS.exists() else {}
    new = compute_facts()
    for page in PAGES:
        text = page.read_text("utf-8")
        page.write_text(renewed(text, old, new), "utf-8")
    text = json.dumps(new, ensure_ascii=False, indent=1)
    FACTS.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
