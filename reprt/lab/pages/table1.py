"""The paper's Table 1, with ours beside it."""

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from reprt.data.corpora.ted import PAIRS
from reprt.files import write_text
from reprt.lab import paper
from reprt.lab.pages.frame import Group, as_csv, by_settings, nearest, runs_table
from reprt.lab.pages.tables import latex, markdown, plain
from reprt.lab.records import Run

MODELS = paper.LABELS
# What the paper prints of each model, with how many digits, and our name for it.
PRINTED = {"epochs": 0, "train_loss": 2, "val_loss": 2, "seconds_an_epoch": 0}
HEAD = ("epochs", "training loss", "validation loss", "seconds an epoch")
CLAIMS = "the paper says", "its Table 1 says"
BEYOND = {
    "val_loss_per_token": ("validation loss, teacher-forced", 3),
    "val_prefix_loss_per_token": ("validation loss, prefix", 3),
    "test_bleu": ("BLEU", 2),
    "test_chrf": ("chrF", 2),
    "parameters": ("parameters", 0),
    "tokens_per_second": ("target tokens a second", 0),
    "seconds_an_epoch": ("seconds an epoch", 1),
}


def page_values(texts: Sequence[Sequence[Run]], settings, out: Path) -> dict[str, str]:
    pairs = by_pair(texts)
    groups = [group for found in pairs.values() for text in found for group in text]
    lines = [line for pair in pairs for line in _lines(pair, pairs[pair])]
    departures = dict.fromkeys(
        f"- \\* {plain(run.label)} on {plain(run.text)}: {run.departures}"
        for run, _ in groups
        if run.departures
    )
    if departures:
        departures = {"Settings that are not the paper's:\n": None} | departures
    head = ["pair", "train", "dev", ""]
    head += [f"{name}: {column}" for name in MODELS.values() for column in HEAD]
    runs = [run for group in groups for run in group.table["run"]]
    write_text(out / "table1.csv", as_csv(runs_table(runs)))
    write_text(out / "table1.tex", _latex(lines))
    return {
        "table": markdown([dict(zip(head, line)) for line in lines], "lrrl"),
        "beyond": markdown([_beyond(group) for group in groups], "ll"),
        "departures": "\n".join(departures),
        "claims": markdown(
            [dict(zip(CLAIMS, each)) for each in _claims().items()], "ll"
        ),
    }


def by_pair(texts: Sequence[Sequence[Run]]) -> Mapping[str, list[list[Group]]]:
    """Returns the groups on each text by pair, those of Table 1 in its order first."""
    pairs: dict[str, list[list[Group]]] = {pair: [] for pair in PAIRS}
    for runs in texts:
        begun = [run for run in runs if run.log]
        groups = by_settings(run for run in begun if run.metrics)
        for run in (run for run in begun if not run.metrics):
            groups += by_settings([run])  # which has other epochs than the others
        if groups:
            pairs.setdefault(groups[0].run.pair, []).append(groups)
    return pairs


def published(pair: str, model: str) -> dict[str, float]:
    """Returns the paper's numbers by our names; none of other pairs and models."""
    result = paper.TABLE_1.get(pair, {}).get(model)
    return dict(vars(result)) if result else {}


def _claims() -> dict[str, str]:
    theirs = {pair: (r["baseline"], r["repe"]) for pair, r in paper.TABLE_1.items()}
    times = {p: b.seconds_an_epoch / r.seconds_an_epoch for p, (b, r) in theirs.items()}
    far = [f"{pair} {t:.2f}" for pair, t in times.items() if not 2 <= t <= 4]
    gaps = {
        pair: (r.train_loss - b.train_loss, r.val_loss - b.val_loss)
        for pair, (b, r) in theirs.items()
    }
    lower = [pair for pair, gap in gaps.items() if max(gap) < 0]
    close = [pair for pair in lower if min(gaps[pair]) > -0.1]
    ten = [pair for pair, (b, r) in theirs.items() if b.epochs == r.epochs == 10]
    slack = [
        f"{pair} {epochs} for {r.epochs}"
        for pair, (_, r) in theirs.items()
        if (epochs := int(12 * 3600 // r.seconds_an_epoch)) > r.epochs < 10
    ]
    of_parameters = paper.PARAMETERS["baseline"] / paper.PARAMETERS["repe"]
    return {
        "an epoch takes “two to four times” less on all fourteen pairs": (
            f"{min(times.values()):.2f} to {max(times.values()):.2f} times; outside "
            f"two to four: {', '.join(far)}"
        ),
        "both losses are lower on thirteen pairs": (
            f"on {len(lower)}: by less than 0.1 on {', '.join(close)}, and after more "
            f"epochs than the baseline's on {len({*lower} - {*ten})}"
        ),
        "of “thirteen additional” pairs seven had ten epochs of both models, and six "
        "of them lower losses": (
            f"{len(ten)} of all fourteen, pt_to_en among them, and "
            f"{len({*ten} & {*lower})} lower"
        ),
        "“roughly a threefold parameter reduction”, and of the time nearly so": (
            f"{of_parameters:.2f} times fewer parameters on pt_to_en, and "
            f"{times['pt_to_en']:.2f} times less time"
        ),
        "the epochs are those of 12 hours, at most ten": (
            f"RePE's seconds allow more: {', '.join(slack)}"
        ),
    }


def _lines(pair: str, texts: Sequence[Sequence[Group]]) -> list[list[str]]:
    """The lines of one pair: its name, both sizes, whose, the cells of both models."""
    lines = []
    if pair in paper.TABLE_1:
        sizes = [f"{size:,}" for size in (PAIRS[pair].train, PAIRS[pair].dev)]
        theirs = [
            f"{published(pair, model)[name]:,.{digits}f}"
            for model in MODELS
            for name, digits in PRINTED.items()
        ]
        lines.append([pair, *sizes, "paper", *theirs])
    for groups in texts or [[]]:
        ours, name = nearest(groups), "" if lines else pair
        whose = "ours*" if any(run.departures for run, _ in ours.values()) else "ours"
        cells = [cell for model in MODELS for cell in _cells(ours.get(model))]
        if groups and not groups[0].run.manifest.official_text:  # it is named then
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
    epochs = dict.fromkeys(sorted(group.table["epochs"]))
    several = "–".join(map(str, [*epochs][:: max(1, len(epochs) - 1)]))
    state = "" if group.run.metrics else " so far"
    return [
        several + state,
        *(group.cell(name, digits) for name, digits in [*PRINTED.items()][1:]),
    ]


def _gap(pair: str, ours: Mapping[str, Group], model: str, name: str) -> str:
    theirs = published(pair, model)
    if name == "seconds_an_epoch" or model not in ours or not theirs:
        return "–"  # the hardware is another
    return f"{ours[model].table[name].mean() - theirs[name]:+.{PRINTED[name]}f}"


def _beyond(group: Group) -> dict[str, str]:
    return {
        "text": group.run.text,
        "model": group.run.label + ("*" if group.run.departures else ""),
        "seeds": str(len(group.table)),
        **{head: group.cell(name, digits) for name, (head, digits) in BEYOND.items()},
    }


def _latex(lines: Sequence[Sequence[str]]) -> str:
    head = ["pair", "train", "dev", "", *("epochs", "train", "val", "s/epoch") * 2]
    above, rule, body = latex(head, lines, "lrrl").partition("\\midrule\n")
    spans = " & ".join(
        rf"\multicolumn{{{len(PRINTED)}}}{{c}}{{{name}}}" for name in MODELS.values()
    )
    above = above.replace("\\toprule\n", f"\\toprule\n& & & & {spans} \\\\\n")
    body = re.sub(r"\n (?=\S)", "\n\\\\addlinespace\n ", body)  # before a pair
    return f"% \\usepackage{{booktabs}}\n{above}{rule}{body}\n"
