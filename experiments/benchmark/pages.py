"""The page of a benchmark: tables that are made of its results only."""

import json
from pathlib import Path

import numpy as np
from peers.settings import OURS

# Each measure's column, what its values are multiplied by, and how they are printed.
COMPARED = {
    "step": ("training step", 1000, "{:,.0f} ms"),
    "epoch": ("epoch", 1, "{:,.2f} s"),
    "pipeline": ("input, a batch", 1000, "{:,.2f} ms"),
    "memory": ("peak memory", 2**-20, "{:,.0f} MiB"),
    "import": ("import", 1, "{:,.2f} s"),
    "build": ("build", 1, "{:,.2f} s"),
    "first_step": ("first step", 1, "{:,.2f} s"),
    "start_up": ("start-up in all", 1, "{:,.2f} s"),
}
# The measures that are added here are not divided by ours: times say the same.
MEASURES = COMPARED | {
    "step_tokens": ("tokens/s, step", 1, "{:,.0f}"),
    "epoch_tokens": ("tokens/s, epoch", 1, "{:,.0f}"),
    # How fast the model's own products are, without padding, beside square ones.
    "share": ("share of the products' rate", 1, "{:.0%}"),
}


def write(folder: Path, results: dict):
    """Writes `results.json` and `results.md`."""
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "results.md").write_text(markdown(results) + "\n")


def markdown(results: dict) -> str:
    """Returns the page of what `results.json` has."""
    parts = [results["work"]] if "work" in results else []
    for section in (
        training,
        side_by_side,
        commits,
        searches,
        agreement,
        growth,
        start,
        programs,
    ):
        if results.get(section.__name__):
            parts += section(results)
    facts = {**results["provenance"], **results["versions"]}
    notes = "\n".join(f"- {name}: {value}" for name, value in facts.items())
    return "\n\n".join([*parts, "## Where, when and of what", notes])


def training(results):
    for model, peers in results["training"].items():
        others = {peer: row for peer, row in peers.items() if peer != OURS}
        our_values = {name: [] for name in MEASURES}
        for row in others.values():
            for name, values in our_values.items():
                values += row["ours"].get(name, ())
        rows = {OURS: {"measured": our_values}, **others}
        yield f"## {model}"
        yield (
            f"Divided by {OURS} of the same round: median (quartiles). Above 1 is "
            "slower or larger than ours."
        )
        columns = {
            title: _ratio(name) for name, (title, *_) in COMPARED.items()
        }
        yield table(columns, others)
        yield "Values: median (quartiles)."
        columns = {}
        for name, (title, factor, text) in MEASURES.items():
            if any(row["measured"].get(name) for row in rows.values()):
                columns[title] = _value(name, factor, text)
        yield table(columns, rows)
        yield "The same weights, no dropout: relative differences of the losses."
        columns = {
            "parameters": lambda row: f"{row['parameters']:,}",
            "first loss": lambda row: f"{row['first_loss']:.6f}",
            f"from {OURS}": lambda row: f"{row['first_loss_difference']:.1e}",
            "training losses": lambda row: (
                f"{row['losses'][0]:.4f} to {row['losses'][-1]:.4f}"
            ),
            "at most from the reference": lambda row: (
                f"{row['losses_difference']:.1e}"
            ),
        }
        rows = {peer: row for peer, row in peers.items() if "losses" in row}
        yield table(columns, rows)


def side_by_side(results):
    models = results["side_by_side"]
    first, *_ = models
    yield "## Our models side by side"
    yield (
        f"A training step's time divided by that of {first}: median (quartiles) over "
        "rounds, in which all took turns on the same batches."
    )

    def share(row):
        if row is models[first]:
            return "1"
        shares = _divided(row["seconds"], models[first]["seconds"])
        return _spread(shares, "{:.3f}")

    columns = {
        "parameters": lambda row: f"{row['parameters']:,}",
        "training step": share,
    }
    yield table(columns, models, "model")


def commits(results):
    commit = results["commits"]["before"]
    models = results["commits"]["models"]
    yield f"## A step now and at {commit}"
    yield (
        "Median (quartiles) over rounds, in which both took turns on the same batches; "
        "below 1 is faster now."
    )
    columns = {
        "now": lambda row: _spread(row["now"], "{:,.0f} ms", 1000),
        commit: lambda row: _spread(row["before"], "{:,.0f} ms", 1000),
        f"now / {commit}": lambda row: _spread(
            _divided(row["now"], row["before"]), "{:.3f}"
        ),
    }
    yield table(columns, models, "model")


def searches(results):
    for search, peers in results["searches"].items():
        rows = {}
        for peer, row in peers.items():
            rates = _divided(row["tokens"], row["seconds"])
            rows[peer] = {"sentences": row["sentences"], "rates": rates}
        our_rates = rows[OURS]["rates"]
        tokens = peers[OURS]["tokens"][0]
        yield f"## Translation, {search}"
        yield (
            "Median (quartiles) over rounds, in which all took turns; above 1 is "
            f"slower than {OURS}."
        )
        columns = {
            "sentences timed": lambda row: f"{row['sentences']:,}",
            f"time a token, {OURS} = 1": lambda row: _spread(
                _divided(our_rates, row["rates"]), "{:.2f}"
            ),
            "tokens/s": lambda row: _spread(row["rates"], "{:,.0f}"),
            f"all {tokens:,} tokens": lambda row: (
                f"{tokens / np.median(row['rates']):,.1f} s"
            ),
        }
        yield table(columns, rows)


def agreement(results):
    peers = results["agreement"]
    yield "## The same model and search"
    yield (
        f"Greatest difference from {OURS}, and how many translations are the same to "
        "the last token."
    )

    def count(search):
        return lambda row: row["same"].get(search, "–")

    columns = {
        "log-probability of a given token": lambda row: f"{row['scores']:.1e}"
    }
    for row in peers.values():
        for search in row["same"]:
            columns[search] = count(search)
    yield table(columns, peers)


def growth(results):
    peers = results["growth"]
    yield "## As translations grow"
    yield (
        "Greedy, a step on average over translations that are all so long "
        f"({results['provenance']['growth_sentences']} sentences at once, initial "
        "weights, [END] forbidden). A step that costs the same however much has been "
        "translated makes columns that stay as they are."
    )

    def step(peer):
        return lambda tokens: _spread(
            peers[peer][tokens], "{:,.1f} ms", 1000 / int(tokens)
        )

    columns = {peer: step(peer) for peer in peers}
    lengths = {}
    for times in peers.values():
        for tokens in times:
            lengths[tokens] = tokens
    yield table(columns, lengths, "tokens")


def start(results):
    yield "## Start"
    yield (
        "Not part of the times above. The first translation is that of one sentence, "
        "greedily, in which graphs are made."
    )
    columns = {
        "import": lambda row: f"{row['import']:.2f} s",
        "build": lambda row: f"{row['build']:.2f} s",
        "first translation": lambda row: f"{row['first']:.2f} s",
        "peak memory": lambda row: f"{row['memory'] / 2**20:,.0f} MiB",
    }
    yield table(columns, results["start"])


def programs(results):
    seconds = [row["seconds"] for row in results["programs"].values()]
    yield "## Whole programs"
    yield (
        f"Each trained for {max(seconds):,.0f} s on the same text and vocabularies, "
        "start-up not counted. The loss is per token, of the validation text."
    )
    columns = {
        "steps": lambda row: f"{row['steps']:,}",
        "target tokens/s": lambda row: f"{row['tokens_per_second']:,.0f}",
        "validation loss": lambda row: f"{row['validation_loss']:.3f}",
    }
    yield table(columns, results["programs"], "program")


def _ratio(name):
    return lambda row: _spread(
        _divided(row["measured"].get(name, ()), row["ours"].get(name, ())),
        "{:.2f}",
    )


def _value(name, factor, text):
    return lambda row: _spread(row["measured"].get(name, ()), text, factor)


def _divided(values, divisors):
    return [value / divisor for value, divisor in zip(values, divisors)]


def _spread(values, text, factor=1):
    """Returns the median and the quartiles of values, or a dash without any."""
    if not values:
        return "–"
    median, low, high = np.percentile(values, (50, 25, 75)) * factor
    return f"{text} ({text} – {text})".format(median, low, high)


def table(columns, rows, first="peer"):
    """Returns a table of named rows; a column is a title and what makes its cells."""
    lines = [[first, *columns], ["---", *["--:" for _ in columns]]]
    for name, row in rows.items():
        lines.append([str(name), *(cell(row) for cell in columns.values())])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
