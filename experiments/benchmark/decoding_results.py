"""What the decoding benchmark has found, and the two files of it."""

import json
import os
from pathlib import Path

from results import quartiles, spread, table


class Results:
    """All of it, written again whenever something is added.

    Args:
        folder: where `results.json` and `results.md` go.
        ours: the peer that the others' time is divided by.
        work: what was translated, in a sentence.
        provenance: where, when and of what.
    """

    def __init__(self, folder: Path, ours: str, work: str, provenance: dict):
        self.folder, self.ours, self.work = folder, ours, work
        self.provenance = provenance
        self.peers: dict[str, dict] = {}
        self.rows: dict[tuple[int, str], dict] = {}
        self.growth: dict[str, dict[int, list[float]]] = {}

    def note(self, peer: str, **facts):
        """Sets facts of a peer, e.g. its versions."""
        self.peers.setdefault(peer, {}).update(facts)

    def add(self, beam_size: int, peer: str, seconds: float, tokens: int, **facts):
        """Adds a round's time for so many tokens."""
        row = self.rows.setdefault(
            (beam_size, peer),
            {"beam_size": beam_size, "peer": peer, "seconds": [], "tokens": []},
        )
        row.update(facts)
        row["seconds"].append(seconds)
        row["tokens"].append(tokens)

    def add_growth(self, peer: str, tokens: int, seconds: float):
        """Adds the time of translations that are all so long."""
        of_peer = self.growth.setdefault(peer, {})
        of_peer.setdefault(tokens, []).append(seconds)

    def write(self):
        """Writes both files; neither is ever seen half written."""
        rows = [
            {
                **row,
                "tokens_a_second": quartiles(self._speeds(row)),
                "ratio": self._ratio(row),
            }
            for row in self.rows.values()
        ]
        found = {
            "ours": self.ours,
            "work": self.work,
            "provenance": self.provenance,
            "peers": self.peers,
            "rows": rows,
            "growth": self.growth,
        }
        text = json.dumps(found, indent=1)
        for name, content in (("results.json", text), ("results.md", self.markdown())):
            part = self.folder / f"{name}.part"
            part.write_text(content + "\n")
            os.replace(part, self.folder / name)

    def markdown(self) -> str:
        """Returns the tables."""
        beam_sizes = dict.fromkeys(beam_size for beam_size, _ in self.rows)
        speeds = [part for size in beam_sizes for part in self._of_beam(size)]
        growth = self._of_growth() if self.growth else []
        parts = [self.work, *speeds, *self._agreement(), *growth]
        return "\n\n".join([*parts, *self._start(), self._footnote()])

    def _of_beam(self, beam_size):
        rows = [row for row in self.rows.values() if row["beam_size"] == beam_size]
        ours = self.rows[beam_size, self.ours]
        lines = [
            [
                row["peer"],
                f"{row['sentences']:,}",
                spread(self._ratio(row), "{:.2f}".format),
                spread(quartiles(self._speeds(row)), "{:,.0f}".format),
                f"{ours['tokens'][0] / quartiles(self._speeds(row))[1]:,.1f} s",
            ]
            for row in rows
        ]
        titles = ["peer", "sentences timed", f"time a token, {self.ours} = 1"]
        titles += ["tokens/s", f"all {ours['tokens'][0]:,} tokens"]
        name = "greedy" if beam_size == 1 else f"{beam_size} beams"
        return [
            f"## Translation, {name}",
            f"Median (quartiles) over rounds, in which all took turns; above 1 is "
            f"slower than {self.ours}.",
            table(titles, lines),
        ]

    def _agreement(self):
        found = {
            peer: facts["agreement"]
            for peer, facts in self.peers.items()
            if "agreement" in facts
        }
        if not found:
            return []
        searches = dict.fromkeys(key for each in found.values() for key in each["same"])
        lines = [
            [
                peer,
                f"{each['scores']:.1e}",
                *(each["same"].get(search, "–") for search in searches),
            ]
            for peer, each in found.items()
        ]
        titles = ["peer", "log-probability of a given token", *searches]
        return [
            "## The same model and search",
            f"Greatest difference from {self.ours}, and how many translations are the "
            "same to the last token.",
            table(titles, lines),
        ]

    def _of_growth(self):
        lengths = dict.fromkeys(n for found in self.growth.values() for n in found)
        lines = [
            [
                f"{tokens}",
                *(
                    spread(
                        quartiles([1000 * s / tokens for s in found.get(tokens, ())]),
                        "{:,.1f} ms".format,
                    )
                    for found in self.growth.values()
                ),
            ]
            for tokens in lengths
        ]
        return [
            "## As translations grow",
            "Greedy, a step on average over translations that are all so long "
            f"({self.provenance['growth_sentences']} sentences at once, initial "
            "weights, [END] forbidden). A step that costs the same however much has "
            "been translated makes columns that stay as they are.",
            table(["tokens", *self.growth], lines),
        ]

    def _start(self):
        lines = [
            [
                peer,
                *(f"{facts[name]:.2f} s" for name in ("import", "build", "first")),
                f"{facts['memory'] / 2**20:,.0f} MiB" if "memory" in facts else "–",
            ]
            for peer, facts in self.peers.items()
            if "first" in facts
        ]
        if not lines:
            return []
        titles = ["peer", "import", "build", "first translation", "peak memory"]
        return [
            "## Start",
            "Not part of the times above. The first translation is that of one "
            "sentence, greedily, in which graphs are made.",
            table(titles, lines),
        ]

    def _footnote(self):
        notes = [f"- {name}: {value}" for name, value in self.provenance.items()]
        notes += [
            f"- {peer}: {facts['versions']}" for peer, facts in self.peers.items()
        ]
        return "## Where, when and of what\n\n" + "\n".join(notes)

    @staticmethod
    def _speeds(row):
        return [n / seconds for n, seconds in zip(row["tokens"], row["seconds"])]

    def _ratio(self, row):
        """Quartiles of ours' tokens a second by the peer's, of the same round."""
        ours = self._speeds(self.rows[row["beam_size"], self.ours])
        pairs = zip(ours, self._speeds(row))
        return quartiles([of_ours / theirs for of_ours, theirs in pairs])
