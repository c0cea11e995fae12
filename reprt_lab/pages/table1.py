"""The paper's Table 1, with ours beside it."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

from reprt.analysis.scores import shown_on
from reprt.data.corpora.ted import PAIRS
from reprt_lab import paper
from reprt_lab.pages.frame import Group, by_settings, nearest
from reprt_lab.pages.tables import markdown, plain
from reprt_lab.records import Run

MODELS = paper.LABELS
# What the paper prints of each model, with how many digits, and our name for it.
PRINTED = {"epochs": 0, "train_loss": 2, "val_loss": 2, "seconds_an_epoch": 0}
HEAD = ("epochs", "training loss", "validation loss", "seconds an epoch")
BEYOND = {
    "val_loss_per_token": ("validation loss, teacher-forced", 3),
    "val_prefix_loss_per_token": ("validation loss, prefix", 3),
    **{
        each.key: (each.name, each.pages["table1"])
        for each in shown_on("table1")
    },
    "parameters": ("parameters", 0),
    "tokens_per_second": ("target tokens a second", 0),
    "seconds_an_epoch": ("seconds an epoch", 1),
}


def page_values(
    texts: Sequence[Sequence[Run]], settings, out: Path
) -> dict[str, str]:
    pairs = by_pair(texts)
    groups = [
        group for found in pairs.values() for text in found for group in text
    ]
    lines = [line for pair in pairs for line in _lines(pair, pairs[pair])]
    departures = dict.fromkeys(
        f"- \\* {plain(run.label)} on {plain(run.text)}: {', '.join(run.departures)}"
        for run, _ in groups
        if run.departures
    )
    if departures:
        departures = {"Settings that are not the paper's:\n": None} | departures
    head = ["pair", "train", "dev", ""]
    head += [f"{name}: {column}" for name in MODELS.values() for column in HEAD]
    return {
        "table": markdown([dict(zip(head, line)) for line in lines], "lrrl"),
        "beyond": markdown([_beyond(group) for group in groups], "ll"),
        "departures": "\n".join(departures),
    }


def by_pair(texts: Sequence[Sequence[Run]]) -> Mapping[str, list[list[Group]]]:
    """Returns the groups on each text by pair, those of Table 1 in its order first."""
    pairs: dict[str, list[list[Group]]] = {pair: [] for pair in PAIRS}
    for runs in texts:
        begun = [run for run in runs if run.log]
        groups = by_settings(run for run in begun if run.metrics)
        for run in (run for run in begun if not run.metrics):
            groups += by_settings(
                [run]
            )  # which has other epochs than the others
        if groups:
            pairs.setdefault(groups[0].run.pair, []).append(groups)
    return pairs


def _lines(pair: str, texts: Sequence[Sequence[Group]]) -> list[list[str]]:
    """The lines of one pair: its name, both sizes, whose, the cells of both models."""
    lines = []
    if pair in paper.TABLE_1:
        sizes = [f"{size:,}" for size in (PAIRS[pair].train, PAIRS[pair].dev)]
        theirs = [
            f"{paper.TABLE_1[pair][model][name]:,.{digits}f}"
            for model in MODELS
            for name, digits in PRINTED.items()
        ]
        lines.append([pair, *sizes, "paper", *theirs])
    for groups in texts or [[]]:
        ours, name = nearest(groups), "" if lines else pair
        whose = (
            "ours*"
            if any(run.departures for run, _ in ours.values())
            else "ours"
        )
        cells = [cell for model in MODELS for cell in _cells(ours.get(model))]
        if (
            groups and not groups[0].run.manifest.official_text
        ):  # it is named then
            pairs = groups[0].run.manifest.sentence_pairs
            whose += f", on {groups[0].run.text}: not comparable"
            sizes = [f"{pairs[split]:,}" for split in ("train", "dev")]
            lines.append([name, *sizes, whose, *cells])
            continue
        lines.append([name, "", "", whose, *cells])
        if ours:
            places = itertools.product(MODELS, PRINTED)
            gaps = [_gap(pair, ours, model, name) for model, name in places]
            lines.append(["", "", "", "ours − paper", *gaps])
    return lines


def _cells(group: Group | None) -> list[str]:
    if group is None:
        return ["not run", *["–"] * (len(PRINTED) - 1)]
    epochs = sorted({*group.table["epochs"]})
    several = "–".join(map(str, epochs[:: max(1, len(epochs) - 1)]))
    state = "" if group.run.metrics else " so far"
    return [
        several + state,
        *(group.cell(name, digits) for name, digits in [*PRINTED.items()][1:]),
    ]


def _gap(pair: str, ours: Mapping[str, Group], model: str, name: str) -> str:
    theirs = paper.TABLE_1.get(pair, {}).get(model)
    if name == "seconds_an_epoch" or model not in ours or not theirs:
        return "–"  # the hardware is another
    return f"{ours[model].table[name].mean() - theirs[name]:+.{PRINTED[name]}f}"


def _beyond(group: Group) -> dict[str, str]:
    return {
        "text": group.run.text,
        "model": group.run.label + ("*" if group.run.departures else ""),
        "seeds": str(len(group.table)),
        **{
            head: group.cell(name, digits)
            for name, (head, digits) in BEYOND.items()
        },
    }
