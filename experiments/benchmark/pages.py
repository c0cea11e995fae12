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
# These say once more what the times say, and are not divided by ours.
MEASURES = COMPARED | {
    "step_tokens": ("tokens/s, step", 1, "{:,.0f}"),
    "epoch_tokens": ("tokens/s, epoch", 1, "{:,.0f}"),
    # Of the model's own products, without padding, in that of square ones.
    "share": ("share of the products' rate", 1, "{:.0%}"),
}


def write(folder: Path, found: dict):
    """Writes `results.json` and `results.md`."""
    (folder / "results.json").write_text(json.dumps(found, indent=1) + "\n")
    (folder / "results.md").write_text(markdown(found) + "\n")


def markdown(found: dict) -> str:
    """Returns the page of what `results.json` has."""
    parts = [found["work"]] if "work" in found else []
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
        if found.get(section.__name__):
            parts += section(found)
    facts = {**found["provenance"], **found["versions"]}
    notes = "\n".join(f"- {name}: {value}" for name, value in facts.items())
    return "\n\n".join([*parts, "## Where, when and of what", notes])


def training(found):
    for model, peers in found["training"].items():
        others = {peer: row for peer, row in peers.items() if peer != OURS}
        ours = {
            name: [
                x for row in others.values() for x in row["ours"].get(name, ())
            ]
            for name in MEASURES
        }
        rows = {OURS: {"measured": ours}} | others
        yield f"## {model}"
        yield (
            f"Divided by {OURS} of the same round: median (quartiles). Above 1 is "
            "slower or larger than ours."
        )
        yield table(
            {COMPARED[name][0]: _ratio(name) for name in COMPARED}, others
        )
        yield "Values: median (quartiles)."
        yield table(
            {
                title: _value(name, factor, text)
                for name, (title, factor, text) in MEASURES.items()
                if any(row["measured"].get(name) for row in rows.values())
            },
            rows,
        )
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
        yield table(
            columns, {p: row for p, row in peers.items() if "losses" in row}
        )


def side_by_side(found):
    models = found["side_by_side"]
    first, *_ = models
    yield "## Our models side by side"
    yield (
        f"A training step's time divided by that of {first}: median (quartiles) over "
        "rounds, in which all took turns on the same batches."
    )

    def share(row):
        shares = _divided(row["seconds"], models[first]["seconds"])
        return "1" if row is models[first] else _spread(shares, "{:.3f}")

    parameters = {"parameters": lambda row: f"{row['parameters']:,}"}
    yield table(parameters | {"training step": share}, models, "model")


def commits(found):
    commit, models = found["commits"].values()
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


def searches(found):
    for search, peers in found["searches"].items():
        rows = {
            peer: (row["sentences"], _divided(row["tokens"], row["seconds"]))
            for peer, row in peers.items()
        }
        ours, tokens = rows[OURS][1], peers[OURS]["tokens"][0]
        yield f"## Translation, {search}"
        yield (
            "Median (quartiles) over rounds, in which all took turns; above 1 is "
            f"slower than {OURS}."
        )
        columns = {
            "sentences timed": lambda row: f"{row[0]:,}",
            f"time a token, {OURS} = 1": (
                lambda row: _spread(_divided(ours, row[1]), "{:.2f}")
            ),
            "tokens/s": lambda row: _spread(row[1], "{:,.0f}"),
            f"all {tokens:,} tokens": (
                lambda row: f"{tokens / np.median(row[1]):,.1f} s"
            ),
        }
        yield table(columns, rows)


def agreement(found):
    peers = found["agreement"]
    searches = dict.fromkeys(
        search for row in peers.values() for search in row["same"]
    )
    yield "## The same model and search"
    yield (
        f"Greatest difference from {OURS}, and how many translations are the same to "
        "the last token."
    )
    columns = {
        "log-probability of a given token": lambda row: f"{row['scores']:.1e}"
    }
    for search in searches:
        columns[search] = lambda row, of=search: row["same"].get(of, "–")
    yield table(columns, peers)


def growth(found):
    peers = found["growth"]
    yield "## As translations grow"
    yield (
        "Greedy, a step on average over translations that are all so long "
        f"({found['provenance']['growth_sentences']} sentences at once, initial "
        "weights, [END] forbidden). A step that costs the same however much has been "
        "translated makes columns that stay as they are."
    )

    def step(peer):
        return lambda n: _spread(peers[peer][n], "{:,.1f} ms", 1000 / int(n))

    lengths = {tokens: tokens for peer in peers.values() for tokens in peer}
    yield table({peer: step(peer) for peer in peers}, lengths, "tokens")


def start(found):
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
    yield table(columns, found["start"])


def programs(found):
    seconds = [row["seconds"] for row in found["programs"].values()]
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
    yield table(columns, found["programs"], "program")


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
    """The median and the quartiles of what was measured; a dash of nothing."""
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
