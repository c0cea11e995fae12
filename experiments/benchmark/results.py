"""What has been measured: rows, their ratios to ours, and the two files of them."""

import json
import os
from pathlib import Path

import numpy as np

# Each measure: the column's title, and how a value is printed.
MEASURES = {
    "step": ("training step", lambda s: f"{1000 * s:,.0f} ms"),
    "epoch": ("epoch", lambda s: f"{s:,.2f} s"),
    "pipeline": ("input, a batch", lambda s: f"{1000 * s:,.2f} ms"),
    "memory": ("peak memory", lambda b: f"{b / 2**20:,.0f} MiB"),
    "import": ("import", lambda s: f"{s:,.2f} s"),
    "build": ("build", lambda s: f"{s:,.2f} s"),
    "first_step": ("first step", lambda s: f"{s:,.2f} s"),
    "start_up": ("start-up in all", lambda s: f"{s:,.2f} s"),
    "step_tokens": ("tokens/s, step", lambda n: f"{n:,.0f}"),
    "epoch_tokens": ("tokens/s, epoch", lambda n: f"{n:,.0f}"),
    # Of the model's own products, without padding, in that of square ones.
    "share": ("share of the products' rate", lambda share: f"{share:.0%}"),
}


class Results:
    """Rows, one a model and peer, written again whenever something is added.

    Args:
        folder: where `results.json` and `results.md` go.
        ours: the peer that the others are divided by.
        provenance: what every row names beside its peer's versions.
    """

    def __init__(self, folder: Path, ours: str, provenance: dict):
        self.folder, self.ours, self.provenance = folder, ours, provenance
        self.rows: dict[tuple[str, str], dict] = {}
        self.side_by_side: dict[str, list[float]] = {}

    def note(self, model: str, peer: str, **facts):
        """Sets facts of a row, e.g. `parameters`."""
        row = self.rows.setdefault(
            (model, peer),
            {
                **{"model": model, "peer": peer, **self.provenance},
                **{"measured": {}, "ours": {}},
            },
        )
        row.update(facts)

    def add(self, model: str, peer: str, of_ours: bool, **values: float):
        """Adds a repetition's values to a peer's row, or ours beside it."""
        lists = [self.rows[model, peer]["ours" if of_ours else "measured"]]
        if of_ours:
            lists.append(self.rows[model, self.ours]["measured"])
        for measure, value in values.items():
            for measured in lists:
                measured.setdefault(measure, []).append(value)

    def add_side_by_side(self, model: str, seconds: float):
        """Adds a round of our own models, which took turns on the same batches."""
        self.side_by_side.setdefault(model, []).append(seconds)

    def write(self):
        """Writes both files; neither is ever seen half written."""
        rows = [{**row, "summary": self._summary(row)} for row in self.rows.values()]
        found = {"ours": self.ours, "rows": rows, "side_by_side": self.side_by_side}
        text = json.dumps(found, indent=1)
        for name, content in (("results.json", text), ("results.md", self.markdown())):
            part = self.folder / f"{name}.part"
            part.write_text(content + "\n")
            os.replace(part, self.folder / name)

    def _summary(self, row):
        return {
            measure: {
                "value": quartiles(values),
                "ratio": self._ratio(row, measure),
            }
            for measure, values in row["measured"].items()
        }

    def _ratio(self, row, measure):
        """Quartiles of this row's values, each divided by ours of the same round."""
        pairs = zip(row["measured"].get(measure, ()), row["ours"].get(measure, ()))
        return quartiles([value / of_ours for value, of_ours in pairs])

    def markdown(self) -> str:
        """Returns the tables: ratios to ours, the values, and the agreement."""
        # Models that were only compared with each other have no table of their own.
        models = dict.fromkeys(
            model
            for (model, _), row in self.rows.items()
            if row["measured"] or "losses" in row
        )
        parts = [self._tables(model) for model in models]
        return "\n\n".join([*parts, *self._models(), self._footnote()])

    def _models(self):
        if not self.side_by_side:
            return []
        first, *_ = self.side_by_side
        rows = []
        for model, seconds in self.side_by_side.items():
            shares = [ours / of for ours, of in zip(seconds, self.side_by_side[first])]
            found = spread(quartiles(shares), "{:.3f}".format)
            parameters = self.rows[model, self.ours]["parameters"]
            rows.append([model, f"{parameters:,}", found if model != first else "1"])
        return [
            "## Our models side by side",
            f"A training step's time divided by that of {first}: median (quartiles) "
            "over rounds, in which all took turns on the same batches.",
            table(["model", "parameters", "training step"], rows),
        ]

    def _tables(self, model):
        rows = [row for row in self.rows.values() if row["model"] == model]
        present = [
            measure
            for measure in MEASURES
            if any(measure in row["measured"] for row in rows)
        ]
        titles = ["peer", *(MEASURES[measure][0] for measure in present)]
        # The others say once more what the times say.
        once_more = ("step_tokens", "epoch_tokens", "share")
        compared = [measure for measure in present if measure not in once_more]
        compared_titles = ["peer", *(MEASURES[measure][0] for measure in compared)]
        ratios = [
            [
                row["peer"],
                *(spread(self._ratio(row, m), "{:.2f}".format) for m in compared),
            ]
            for row in rows
            if row["peer"] != self.ours
        ]
        values = [
            [
                row["peer"],
                *(
                    spread(quartiles(row["measured"].get(m, ())), MEASURES[m][1])
                    for m in present
                ),
            ]
            for row in rows
        ]
        agreement = [
            [
                row["peer"],
                f"{row['parameters']:,}",
                f"{row['first_loss']:.6f}",
                f"{row['first_loss_difference']:.1e}",
                f"{row['losses'][0]:.4f} to {row['losses'][-1]:.4f}",
                f"{row['losses_difference']:.1e}",
            ]
            for row in rows
            if "losses_difference" in row
        ]
        agreement_titles = [
            "peer",
            "parameters",
            "first loss",
            f"from {self.ours}",
            "training losses",
            "at most from the reference",
        ]
        return "\n\n".join(
            [
                f"## {model}",
                f"Divided by {self.ours} of the same round: median (quartiles). Above "
                "1 is slower or larger than ours.",
                table(compared_titles, ratios),
                "Values: median (quartiles).",
                table(titles, values),
                "The same weights, no dropout: relative differences of the losses.",
                table(agreement_titles, agreement),
            ]
        )

    def _footnote(self):
        notes = [f"- {name}: {value}" for name, value in self.provenance.items()]
        versions = {row["peer"]: row.get("versions") for row in self.rows.values()}
        notes += [f"- {peer}: {found}" for peer, found in versions.items()]
        return "## Where, when and of what\n\n" + "\n".join(notes)


def quartiles(values) -> list[float] | None:
    """Returns the first quartile, the median and the third; None of no values."""
    if not len(values):
        return None
    return [float(x) for x in np.percentile(values, (25, 50, 75))]


def spread(found, printed):
    if found is None:
        return "–"
    low, median, high = map(printed, found)
    return f"{median} ({low} – {high})"


def table(titles, rows):
    lines = [titles, ["---", *["--:"] * (len(titles) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
