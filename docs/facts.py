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
import math
import re
from pathlib import Path

import numpy as np

import reprt
from reprt.analysis.cost import scientific
from reprt_lab import paper
from reprt_lab.pages.controls import difference_and_p_value, holm
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

# How many pairs the English-French training text of WMT'14 has.
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
METHODS = ("concat", "rotary", "untied", "add", "relative", "alibi", "none")
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
# The rivals of the first contest, in the order of RIVALS.
FIRST_RIVALS = ("baseline-cut-tied-qk", "baseline-narrow-qk", "modern")
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
# How the departures of readings are written.
PLACES = "['embeddings', 'attention_weights', 'feed_forward_output', 'values']"
PADDED = "model.padding_in_statistics = True"


@functools.cache
def groups(folder: str) -> dict[tuple[str, int | None], Group]:
    """Returns the models of an experiment on one text, by label and m."""
    runs = [run for run in read_texts(RESULTS / folder)[0] if run.metrics]
    models = {}
    for group in group_runs(runs_table(runs)):
        models[group.label, group.run.settings.schedule_dim] = group
    return models


@functools.cache
def measured(experiment: str, pair: str):
    """Returns the runs on a text that have a loss to be chosen by."""
    for runs in read_texts(RESULTS / experiment):
        if pair in runs[0].text:
            return [run for run in runs if PREFIX in run.numbers]


@functools.cache
def best(experiment: str, pair: str) -> dict[str, Group]:
    """Returns every model on a text at the rate that the validation split chose."""
    runs = []
    for run in measured(experiment, pair):
        # Runs that were trained on short sentences only are about lengths.
        if not run.settings.text.train_tokens:
            runs.append(run)
    return {group.label: group for group in choose(runs_table(runs))}


def by_model(experiment: str, pair: str) -> dict[str, Group]:
    """Returns what `best` does, by the models' names in the recipe."""
    models = best(experiment, pair)
    return {group.run.model: group for group in models.values()}


def numbers_of(experiment: str, pair: str, name: str) -> dict[str, dict]:
    """Returns a number of every run on a text, by the runs' names."""
    runs = measured(experiment, pair)
    return {run.name: run.numbers[name] for run in runs}


def contestant(row: str, pair: str) -> Group | None:
    """Returns the runs of a row of the contest's table on a text."""
    fixed_names = FULL_SIZE | TIED
    tenths_of_dropout = 1 if pair == "pt_to_en" else 2
    if row in fixed_names:
        name = fixed_names[row]
    else:
        name = f"{EQUAL_SIZE[row]}-{tenths_of_dropout}"
    return by_model("contest_2", pair).get(name)


def ahead(group: Group, other: Group):
    """Returns by how much one leads, in loss and BLEU, by the seeds that both have."""
    return other.differences(group, LOSS), group.differences(other, BLEU)


def leads(pair: str, row: str = OURS, rival: str = "tied baseline"):
    """Returns by how much a row of the contest's table leads another."""
    return ahead(contestant(row, pair), contestant(rival, pair))


def wins(leads) -> bool:
    """Whether both leads are larger than two of their standard deviations."""
    return all(lead.mean() > 2 * lead.std() for lead in leads)


def lead(leads) -> Fact:
    """Returns both leads, as prose has them."""
    loss, bleu = leads
    return [spread(loss, 3), spread(bleu, 1)]


@functools.cache
def benchmark(name: str):
    path = RESULTS / "benchmark" / name / "results.json"
    return json.loads(path.read_text())


def ratio(values, divisors) -> float:
    """Returns the median of the ratios of a benchmark's rounds."""
    return float(np.median(np.divide(values, divisors)))


def interval(differences, digits: int) -> str:
    """Returns a mean and its 95 % interval, without signs of plus."""
    return difference_and_p_value(differences, digits)[0].replace("+", "")


def percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


# --- Facts.


def leak_facts() -> Facts:
    az_groups = {label: group for (label, _), group in groups("leak").items()}
    baseline = az_groups["baseline"]
    without_norm = az_groups["RePE without TokenNorm"]
    published = az_groups["RePE as published"]
    padded = az_groups["RePE as published, padding counted"]
    differences = without_norm.differences(baseline, PREFIX)
    share = without_norm.mean("parameters") / baseline.mean("parameters")
    run = without_norm.run
    longer_groups = groups(ABLATIONS["longer text"])
    longer_prefix = longer_groups["RePE, prefix statistics", 128]
    longer_baseline = longer_groups["baseline", 128]
    longer_published = longer_groups["RePE as published", 128]
    loss = longer_prefix.differences(longer_baseline, PREFIX).mean()
    bleu = longer_baseline.differences(longer_prefix, BLEU).mean()
    longer_without = longer_groups["RePE without TokenNorm", 128]
    without_loss = longer_without.differences(longer_baseline, PREFIX).mean()
    without_bleu = longer_baseline.differences(longer_without, BLEU).mean()
    return {
        "leak.published": [gap_of(published, baseline, 2)],
        "leak.padded": [gap_of(padded, baseline, 2)],
        "leak.without": [spread(differences, 3, "+")],
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
        "longer.behind": [f"{loss:.3f}", f"{bleu:.1f}"],
        "longer.without": [f"{without_loss:.3f}", f"{without_bleu:.1f}"],
        "longer.bleu.published": [f"{longer_published.mean(BLEU):.2f}"],
        "longer.bleu.prefix": [f"{longer_prefix.mean(BLEU):.1f}"],
        "longer.bleu.baseline": [f"{longer_baseline.mean(BLEU):.1f}"],
    }


def gap_of(group: Group, other: Group, digits: int) -> str:
    """Returns how far a group's prefix loss is above another's, paired by seed."""
    return f"{group.differences(other, PREFIX).mean():.{digits}f}"


def paper_facts() -> Facts:
    baseline_seconds, _ = paper.FIGURE_3B["baseline"]
    repe_seconds, _ = paper.FIGURE_3B["repe"]
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
        "paper.seconds": [f"{repe_seconds:,.0f}", f"{baseline_seconds:,.0f}"],
        "paper.time": [f"{repe_seconds / baseline_seconds:.2f}"],
        "paper.times": [
            f"{min(times.values()):.1f}",
            f"{max(times.values()):.1f}",
        ],
        "paper.gain.training": [gains["train_loss"]],
        "paper.gain.validation": [gains["val_loss"]],
        "paper.lower": [str(len(lower_pairs())), str(len(paper.TABLE_1))],
    }


def papers_times() -> dict[str, float]:
    """Returns how many times as fast RePE is in Table 1, by pair."""
    times = {}
    for pair, models in paper.TABLE_1.items():
        seconds = models["repe"]["seconds_an_epoch"]
        times[pair] = models["baseline"]["seconds_an_epoch"] / seconds
    return times


def ten_epochs() -> set[str]:
    """Returns the pairs on which both models had ten epochs in Table 1."""
    pairs = set()
    for pair, models in paper.TABLE_1.items():
        if models["repe"]["epochs"] == models["baseline"]["epochs"] == 10:
            pairs.add(pair)
    return pairs


def claims_facts() -> Facts:
    """What the paper's Table 1 says of its claims."""
    times = papers_times()
    pairs, ten_epochs_pairs = lower_pairs(), ten_epochs()
    # These name the pairs that are outside of the claims.
    other_times, small_gains, fewer_epochs = [], [], []
    for pair, time in times.items():
        if not 2 <= time <= 4:
            other_times.append(f"{pair} {time:.2f}")
        repe = paper.TABLE_1[pair]["repe"]
        baseline = paper.TABLE_1[pair]["baseline"]
        gains = []
        for loss in ("train_loss", "val_loss"):
            gains.append(baseline[loss] - repe[loss])
        if pair in pairs and max(gains) < 0.1:
            small_gains.append(pair)
        epochs = int(12 * 3600 // repe["seconds_an_epoch"])
        if repe["epochs"] < min(epochs, 10):
            fewer_epochs.append(f"{pair} {epochs} for {repe['epochs']}")
    sizes = paper.PARAMETERS["baseline"] / paper.PARAMETERS["repe"]
    return {
        "claims.times": [
            f"{min(times.values()):.2f}",
            f"{max(times.values()):.2f}",
            ", ".join(other_times),
        ],
        "claims.lower": [
            str(len(pairs)),
            ", ".join(small_gains),
            str(len(pairs - ten_epochs_pairs)),
        ],
        "claims.ten": [
            str(len(ten_epochs_pairs)),
            str(len(ten_epochs_pairs & pairs)),
        ],
        "claims.fewer": [f"{sizes:.2f}", f"{times['pt_to_en']:.2f}"],
        "claims.epochs": [", ".join(fewer_epochs)],
    }


def lower_pairs() -> set[str]:
    """Returns the pairs on which both of RePE's losses are lower in Table 1."""
    pairs = set()
    for pair, models in paper.TABLE_1.items():
        repe, baseline = models["repe"], models["baseline"]
        if (
            repe["train_loss"] < baseline["train_loss"]
            and repe["val_loss"] < baseline["val_loss"]
        ):
            pairs.add(pair)
    return pairs


def nearest_az() -> dict[str, Group]:
    """Returns our models of Table 1 on az_to_en, beside the paper's numbers."""
    for runs in read_texts(RESULTS / "table1"):
        if runs[0].pair == "az_to_en":
            models = nearest_to_paper(run for run in runs if run.finished)
    for model, group in models.items():
        reference = group_of_paper("az_to_en", model)
        models[model] = group._replace(reference=reference)
    return models


def table1_facts() -> Facts:
    columns = {
        "training": gap("train_loss", 2),
        "validation": gap("val_loss", 2),
    }
    facts = {}
    for model, group in nearest_az().items():
        gaps = cells(group, columns, group.reference).values()
        facts[f"table.{model}"] = [text.lstrip("+-") for text in gaps]
    return facts


@functools.cache
def reading_groups() -> dict[str, list[Group]]:
    return readings_of_each(read_texts(RESULTS / "readings"), "az_to_en")


def readings() -> dict[tuple[str, ...], float]:
    """Returns each reading's distance on az_to_en, by the preset and departures."""
    distances = {}
    for preset, preset_groups in reading_groups().items():
        for group in preset_groups:
            if group.run.text == AZ_TO_EN:
                reading = preset, *sorted(group.run.departures)
                distances[reading] = distance(group)
    return distances


def largest_distances(seeds: int = 1) -> list[str]:
    """Returns the largest of four distances of readings of both models, by seeds."""
    distances = []
    for row in readings_of_both(reading_groups(), AZ_TO_EN):
        if int(row["seeds"]) >= seeds:
            distances.append(row["largest distance"])
    return distances


def readings_facts() -> Facts:
    smallest: dict[str, float] = {}
    for reading, loss_distance in readings().items():
        model = reading[0]
        other_distance = smallest.get(model, loss_distance)
        smallest[model] = min(loss_distance, other_distance)
    first, _, third, *_ = largest_distances(seeds=3)
    return {
        "readings.alone": [f"{smallest[model]:.2f}" for model in paper.LABELS],
        "readings.both": [first, third],
    }


def size_facts() -> Facts:
    """By how much concatenated positions make a model larger."""
    embedded_groups = groups(ABLATIONS["embedded corpus"])
    concatenated = embedded_groups["only concatenated positions", 128]
    none = embedded_groups["RePE's size, none of its changes", 128]
    sizes = {}
    for position in ("concat", "add"):
        model = reprt.models.build(
            "repe",
            7765,
            7010,
            position=position,
            embedding_norm="none",
            value="states",
        )
        sizes[position] = model.count_params()
    share = concatenated.mean("parameters") / none.mean("parameters")
    large_share = sizes["concat"] / sizes["add"]
    return {"concat.size": [percent(share - 1), percent(large_share - 1)]}


def first_run_facts() -> Facts:
    seed_groups = {}
    for (label, _), group in groups("embedded_corpus/seeds").items():
        seed_groups[label] = group
    baseline = seed_groups["baseline"]
    causal = seed_groups["causal RePE"]
    published = seed_groups["RePE as published"]
    first_baseline = groups("embedded_corpus")["baseline", None]
    bleus = [*baseline.table[BLEU], *first_baseline.table[BLEU]]
    losses, equal_bleus = [], []
    for (label, _), group in groups("embedded_corpus/equal_rates").items():
        losses += [group.cell(FORCED, 3), group.cell(PREFIX, 3)]
        equal_bleus.append(group.cell(BLEU, 1))
    return {
        "first.equal": losses,
        "first.equal.bleu": equal_bleus,
        "first.seeds": [
            baseline.cell(BLEU, 1),
            causal.cell(BLEU, 1),
            published.cell(BLEU, 1),
        ],
        "first.bleu": [
            f"{math.floor(min(bleus))}–{math.ceil(max(bleus))}",
            f"{published.mean(BLEU):.0f}",
            f"{causal.mean(BLEU):.0f}",
        ],
    }


def language_facts() -> Facts:
    generated, longer = (
        groups(place)["RePE's three changes", None] for place in LANGUAGE_MODELS
    )
    forced_perplexity = np.exp(generated.table[FORCED]).mean()
    perplexities = np.exp(generated.table[PREFIX]).round(-3)
    smaller, larger = sorted(np.exp(longer.table[PREFIX]) / 1e6)
    return {
        "language.forced": [f"{generated.mean(FORCED):.2f}"],
        "language.prefix": [generated.cell(PREFIX, 2)],
        "language.longer": [longer.cell(PREFIX, 1)],
        "language.perplexity.forced": [f"{forced_perplexity:.1f}"],
        "language.perplexity": [
            f"{perplexities.min():,.0f}",
            f"{perplexities.max():,.0f}",
        ],
        "language.perplexity.longer": [f"{smaller:.1f}", f"{larger:.1f}"],
    }


def contest_facts() -> Facts:
    smallest = {}
    for pair in SMALL_TEXTS:
        losses, bleus = [], []
        for rival in TIED:
            loss, bleu = leads(pair, rival=rival)
            losses.append(loss.mean())
            bleus.append(bleu.mean())
        smallest[pair] = [f"{min(losses):.2f}", f"{min(bleus):.1f}"]
    sizes = []
    for pair in PAIRS:
        size = contestant(OURS, pair).mean("parameters")
        for row in FULL_SIZE:
            sizes.append(contestant(row, pair).mean("parameters") / size)
    baselines = [contestant("full-size baseline", pair) for pair in SMALL_TEXTS]
    early_losses, last_losses = [], []
    for run in groups(ABLATIONS["longer text"])["baseline", 128].table["run"]:
        losses = {row["step"]: row[FORCED] for row in run.log}
        early_losses.append(losses[4050])
        last_losses.append(losses[8100])
    early_loss, last_loss = np.mean(early_losses), np.mean(last_losses)
    our_loss = contestant(OURS, "pt_to_en").mean(PREFIX)
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
        "contest.whole.bleu": [
            f"{group.mean(BLEU):.1f}" for group in baselines
        ],
        "contest.later": [
            f"{early_loss:.2f}",
            f"{our_loss:.2f}",
            f"{last_loss:.2f}",
        ],
        "contest.ended": [f"{end:%-d %B %Y at %H:%M}"],
    }


def dropout_facts() -> Facts:
    """What dropout on values does, and a dropout of 0.2."""
    gains = [leads(pair, rival=WITHOUT)[0] for pair in PAIRS]
    small_gains = []
    for pair in SMALL_TEXTS:
        losses = numbers_of("contest_2", pair, LOSS)
        gain = losses["only-states.high.11"] - losses["values-2.high.11"]
        small_gains.append(f"{abs(gain):.3f}")
    az_groups = [
        by_model("contest_1", "az_to_en")["qk-rms"],
        contestant(WITHOUT, "az_to_en"),
        contestant(OURS, "az_to_en"),
    ]
    tied = "tied baseline, dropout 0.1"
    return {
        "dropout.equal": small_gains,
        "dropout.longer": [spread(-gains[2], 3)],
        "dropout.small": [spread(gains[0], 3), spread(gains[1], 3)],
        "dropout.losses": [f"{group.mean(LOSS):.3f}" for group in az_groups],
        "dropout.without.az": lead(leads("az_to_en", WITHOUT, tied)),
        "dropout.without.gl": lead(leads("gl_to_en", WITHOUT, tied)),
    }


def rules_facts() -> Facts:
    """What weakens the contest's rules."""
    models = []
    for pair in ("az_to_en", "pt_to_en"):
        for run in measured("contest_2_choice", pair):
            models.append(run.model)
    without = [model for model in models if model.startswith("present")]
    with_values = [model for model in models if model.startswith("values")]
    candidates = without + with_values
    first_groups = by_model("contest_1", "gl_to_en")
    rivals = []
    for rival, name in zip(RIVALS, FIRST_RIVALS):
        rivals.append(f"{contestant(rival, 'gl_to_en').mean(LOSS):.3f}")
        rivals.append(f"{first_groups[name].mean(LOSS):.3f}")
    first_losses = numbers_of("contest_1", "az_to_en", PREFIX)
    losses = numbers_of("contest_2_choice", "az_to_en", PREFIX)
    hair = first_losses["baseline-cut-tied-qk.high.1"] - losses["cut-2.high.1"]
    # The leads on the longer text are those of the choice and of the contest.
    losses = numbers_of("contest_2_choice", "pt_to_en", PREFIX)
    losses |= numbers_of("repaired", "pt_to_en", PREFIX)
    our_loss = losses["values-1.higher.0"]
    choice_lead = losses["baseline-cut-tied-qk.high.0"] - our_loss
    our_loss = contestant(OURS, "pt_to_en").mean(PREFIX)
    rival_loss = contestant("tied baseline", "pt_to_en").mean(PREFIX)
    contest_lead = rival_loss - our_loss
    return {
        "rules.runs": [
            str(len(models)),
            str(len(candidates)),
            str(len(without)),
        ],
        "rules.rivals": rivals,
        "rules.hair": [f"{hair:.3f}"],
        "rules.lead": [f"{choice_lead:.2f}", f"{contest_lead:.2f}"],
    }


def statistics_facts() -> Facts:
    """Leads with their 95 % intervals."""
    az, gl, be = (
        by_model("statistics", pair) for pair in (*SMALL_TEXTS, "be_to_en")
    )
    facts = {}
    for name, models in (("az", az), ("gl", gl), ("be", be)):
        tied_leads = []
        # On gl_to_en the one named cut-2 has the dropout that was chosen there.
        for tied in TIED.values():
            loss, _ = ahead(models["concat-tokens"], models[tied])
            tied_leads.append(loss)
        smallest = min(tied_leads, key=np.mean)
        facts[f"statistics.tied.{name}"] = [interval(smallest, 3)]
    loss, bleu = ahead(az["rotary-states"], az["concat-tokens"])
    facts["statistics.rotary.states.az"] = [interval(loss, 3)]
    facts["statistics.rotary.states.az.bleu"] = [interval(bleu, 1)]
    facts["statistics.rotary.states.az.seeds"] = [str(len(loss))]
    loss, _ = ahead(gl["concat-tokens"], gl["rotary-states"])
    facts["statistics.causal.gl"] = [interval(loss, 3)]
    loss, bleu = ahead(be["concat-tokens"], be["rotary-states"])
    facts["statistics.causal.be"] = [interval(loss, 3)]
    facts["statistics.causal.be.bleu"] = [interval(bleu, 1)]
    for name, models in (("gl", gl), ("be", be)):
        loss, _ = ahead(models["rotary-tokens"], models["concat-tokens"])
        facts[f"statistics.rotary.tokens.{name}"] = [interval(loss, 3)]
    facts["statistics.rotary.tokens.p"] = [
        corrected_p_value("rotary-tokens", "gl_to_en")
    ]
    facts["statistics.causal.be.p"] = [
        corrected_p_value("rotary-states", "be_to_en")
    ]
    loss, less_bleu = ahead(be["concat-tokens"], be["cut-1"])
    facts["statistics.tied.be.less"] = [interval(loss, 3)]
    _, bleu = ahead(be["concat-tokens"], be["cut-2"])
    facts["statistics.tied.be.bleu"] = [
        interval(bleu, 1),
        interval(less_bleu, 1),
    ]
    _, bleu = ahead(be["concat-tokens"], be["untied-states"])
    facts["statistics.untied.be"] = [interval(bleu, 1)]
    loss, _ = ahead(az["untied-states"], az["concat-tokens"])
    facts["statistics.untied.az"] = [interval(loss, 3)]
    loss, _ = ahead(gl["concat-tokens"], gl["untied-states"])
    facts["statistics.untied.gl"] = [interval(loss, 3)]
    longer = by_model("statistics", "pt_to_en")
    loss, bleu = ahead(candidate("pt_to_en"), longer["rotary-states"])
    facts["statistics.longer"] = [interval(loss, 3), interval(-bleu, 1)]
    _, bleu = ahead(longer["untied-states"], candidate("pt_to_en"))
    facts["statistics.longer.untied"] = [interval(bleu, 1)]
    loss, bleu = ahead(candidate("pt_to_en"), longer["baseline"])
    facts["statistics.longer.full"] = [interval(loss, 3), interval(bleu, 1)]
    return facts


def candidate(pair: str) -> Group:
    """Returns causal RePE, at the rate that the rules give it on the longer text."""
    name = "values-1" if pair == "pt_to_en" else "concat-tokens"
    return by_model("statistics", pair)[name]


def corrected_p_value(model: str, text: str) -> str:
    """Returns the p-value of a loss beside causal RePE's, corrected over all texts."""
    p_values = {}
    for name in (*PAIRS, "be_to_en", "embedded"):
        group = by_model("statistics", name)[model]
        losses = group.differences(candidate(name), LOSS)
        _, p_values[name] = difference_and_p_value(losses, 3)
    corrected = holm([*p_values.values()])
    return f"{dict(zip(p_values, corrected))[text]:.2f}"


def values_gains(text: str) -> dict[str, list[float]]:
    """Returns what tokens as values gain, in loss and BLEU, by position method."""
    models = by_model("positions", text)
    gains = {}
    for method in METHODS:
        loss, bleu = ahead(
            models[f"{method}-tokens"], models[f"{method}-states"]
        )
        gains[method] = [loss.mean(), bleu.mean()]
    return gains


def positions_facts() -> Facts:
    az, embedded, gl, longer = (
        by_model("positions", text) for text in POSITIONS_TEXTS
    )
    facts = {}
    rotary_bleus = []
    for name, models in (("az", az), ("gl", gl), ("embedded", embedded)):
        loss, bleu = ahead(models["rotary-tokens"], models["concat-tokens"])
        facts[f"positions.rotary.{name}"] = [spread(loss, 3)]
        rotary_bleus.append(spread(bleu, 1, "+"))
    facts["positions.rotary.bleu"] = rotary_bleus
    loss, bleu = ahead(gl["untied-tokens"], gl["concat-tokens"])
    facts["positions.untied.gl"] = [spread(loss, 3), spread(-bleu, 1)]
    for name, text, models in (("az", "az_to_en", az), ("gl", "gl_to_en", gl)):
        tied = by_model("contest_2", text)["cut-1"]
        facts[f"positions.rival.{name}"] = lead(
            ahead(models["concat-tokens"], tied)
        )
    facts["positions.rival.gl.more"] = lead(
        ahead(gl["concat-tokens"], gl["rival"])
    )
    value_losses, value_bleus = [], []
    for text in ("embedded", "gl_to_en"):
        gains = values_gains(text).values()
        losses = [loss for loss, _ in gains]
        bleus = [bleu for _, bleu in gains]
        value_losses += [f"{min(losses):.2f}", f"{max(losses):.2f}"]
        value_bleus += [f"{abs(min(bleus)):.0f}", f"{max(bleus):.0f}"]
    facts["positions.values"] = value_losses + value_bleus
    loss, bleu = ahead(longer["rotary-tokens"], longer["concat-tokens"])
    facts["positions.rotary.longer"] = [spread(loss, 3), spread(bleu, 1, "+")]
    facts["positions.rival.longer"] = lead(
        ahead(longer["concat-tokens"], longer["rival"])
    )
    return facts | lengths_facts() | positions_cost_facts()


def losses_by_length() -> dict[str, list]:
    """Returns the results on each range of lengths, by model, shortest first."""
    ranges = {}
    for run in measured("positions", "gl_to_en"):
        if run.settings.text.train_tokens:
            ranges[run.model] = run.metrics.test_by_length
    return ranges


def lengths_facts() -> Facts:
    ranges = losses_by_length()
    short_losses, middle_losses, long_bleus = {}, {}, []
    for model, (short, middle, long) in ranges.items():
        short_losses[model] = short.prefix_loss_per_token
        middle_losses[model] = middle.prefix_loss_per_token
        long_bleus.append(long.bleu)
    gains = []
    for method in METHODS:
        loss = short_losses[f"{method}-tokens"]
        gains.append(short_losses[f"{method}-states"] - loss)
    lowest, second_lowest, *_ = sorted(middle_losses.values())
    return {
        "lengths.sentences": [str(row.sentences) for row in ranges["rival"]],
        "lengths.values": [f"{min(gains):.2f}", f"{max(gains):.2f}"],
        "lengths.rotary": [
            f"{middle_losses['concat-tokens'] - lowest:.2f}",
            f"{second_lowest - lowest:.2f}",
        ],
        "lengths.bleu": [f"{max(long_bleus):.1f}"],
    }


def positions_steps() -> dict[str, str]:
    """Returns each position method's time of a step, in those of causal RePE."""
    rows = benchmark("positions")["side_by_side"]
    our_seconds = rows["positions:concat-tokens"]["seconds"]
    steps = {}
    for name, row in rows.items():
        model = name.removeprefix("positions:")
        steps[model] = f"{ratio(row['seconds'], our_seconds):.2f}"
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
    baseline_seconds = rows["baseline"]["seconds"]
    repe = ratio(rows["repe"]["seconds"], baseline_seconds)
    causal = ratio(rows["repe-causal"]["seconds"], baseline_seconds)
    programs = benchmark("joeynmt")["programs"]
    ours, joeynmt = programs["reprt train"], programs["joeynmt train"]
    losses = {}
    for (label, _), group in groups("speed_options").items():
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


def wmt14_estimate(stage: str, name: str) -> float:
    """Returns a number for WMT'14, on the line through the two largest texts."""
    pairs, more_pairs = 800_000, 2_000_000
    number = scale()[pairs, "bpe", stage][name]
    larger_number = scale()[more_pairs, "bpe", stage][name]
    slope = (larger_number - number) / (more_pairs - pairs)
    return larger_number + slope * (WMT14_PAIRS - more_pairs)


def scale_facts() -> Facts:
    memory = []
    for (pairs, vocabulary, _), row in scale().items():
        if (pairs, vocabulary) == (2_000_000, "bpe"):
            memory.append(row["peak_memory_bytes"])
    minutes = []
    for stage in ("reading", "encoding", "warm"):
        minutes.append(f"{wmt14_estimate(stage, 'seconds') / 60:.0f}")
    peak = wmt14_estimate("warm", "peak_memory_bytes")
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
    label, other_label = models.split(" − ")
    group = groups(ABLATIONS[text])[label, int(m)]
    other = groups(ABLATIONS[text])[other_label, int(m)]
    return [spread(group.differences(other, PREFIX), 3, "+")]


def table1_row(label: str, *_) -> Fact:
    models = {group.label: group for group in nearest_az().values()}
    row = []
    for group in (models[label].reference, models[label]):
        losses = [group.cell("train_loss", 2), group.cell("val_loss", 2)]
        row.append(" / ".join(losses))
    return row


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
        if group:
            row += [group.cell(LOSS, 3), group.cell(BLEU, 1)]
        else:
            row += ["–", "–"]
    return row


def leads_row(dropout: str, *_) -> Fact:
    rival = f"tied baseline, dropout {dropout}"
    row = []
    for pair in PAIRS:
        if contestant(rival, pair):
            row += lead(leads(pair, rival=rival))
        else:
            row += ["–", "–"]
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
        for number in ("train_loss_per_token", PREFIX):
            losses = numbers_of("contest_2", pair, number)
            row.append(f"{losses[name]:.3f}")
    return row


def positions_row(label: str, *_) -> Fact:
    row = []
    for text in POSITIONS_TEXTS:
        models = best("positions", text)
        group = models.get(label)
        if label == "rival, dropout 0.1 (contest)" and text != "embedded":
            group = by_model("contest_2", text)["cut-1"]
        for number, digits in ((LOSS, 3), (BLEU, 1)):
            if label == "largest standard deviation":
                tables = [model.table for model in models.values()]
                deviation = max(table[number].std() for table in tables)
                row.append(f"{deviation:.{digits}f}")
            elif group is not None:
                row.append(f"{group.mean(number):.{digits}f}")
            else:
                row.append("–")
    return row


def blog_row(label: str, *cells) -> Fact:
    group = best("families", "embedded")[label]
    longer = best("families", "pt_to_en")[label]
    operations = scientific(longer.mean("train_flops"))
    # What the blog reports stays as it is.
    blog_bleu = cells[-1]
    return [operations, group.cell(BLEU, 1), longer.cell(BLEU, 1), blog_bleu]


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
    for measure in ("step", "epoch", "memory", "start_up"):
        times = ratio(row["measured"][measure], row["ours"][measure])
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
        old_numbers = old.get(name, new[name])
        if len(old_numbers) != len(new[name]):
            raise ValueError(
                f"Expected {len(old_numbers)} number(s) of the fact {name}, as the "
                f"pages have them: {old_numbers}. Received: {new[name]}. Write the "
                f"new ones into the pages, and take the fact out of {FACTS.name}."
            )
        for old_number, number in zip(old_numbers, new[name]):
            # A line may break within a number such as 1 ± 2.
            words = re.escape(old_number).replace(r"\ ", r"\s+")
            pattern = re.compile(rf"(?<![\w.,]){words}(?!\w|[.,]\d)")
            match = pattern.search(block, place)
            if match is None:
                raise ValueError(
                    f"Expected {old_number}, of the fact {name}, in this text, behind "
                    "the facts that its comment names before. Received:\n"
                    f"{block.strip()}"
                )
            # A number that is the same keeps its line break.
            if number == old_number:
                number = match[0]
            block = block[: match.start()] + number + block[match.end() :]
            place = match.start() + len(number)
    return block


def renewed_table(table: re.Match) -> str:
    name, rows = table.groups()
    lines = []
    for line in rows.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        numbers = ROWS[name](*cells)
        cells[-len(numbers) :] = numbers
        lines.append(f"| {' | '.join(cells)} |\n")
    return table[0].removesuffix(rows) + "".join(lines)


def main():
    old = json.loads(FACTS.read_text()) if FACTS.exists() else {}
    new = compute_facts()
    # An error on any page leaves all files as they are.
    texts = {}
    for page in PAGES:
        texts[page] = renewed(page.read_text("utf-8"), old, new)
    for page, text in texts.items():
        page.write_text(text, "utf-8")
    text = json.dumps(new, ensure_ascii=False, indent=1)
    FACTS.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
