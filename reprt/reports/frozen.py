"""An experiment's runs in four files, from which each comes back as it was.

| file | what it holds |
|---|---|
| `recipe.toml` | the settings that runs have in common, by table and by model |
| `runs.csv` | a row a run: the settings that differ, its results, where it started |
| `epochs.csv` | a row an epoch of each run |
| `provenance.json` | the texts and vocabularies, the starts, the scores' signatures |
| `examples.csv` | translations, if there are any |
"""

import collections
import csv
import dataclasses
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reprt.reports.files import write_text
from reprt.reports.tables import csv_text

RECIPE, RUNS, EPOCHS = "recipe.toml", "runs.csv", "epochs.csv"
PROVENANCE, EXAMPLES = "provenance.json", "examples.csv"
HEADER = "# What the runs have in common; what differs is in runs.csv.\n\n"
KEY = ("text", "run")
STARTS = ("starts", "started")  # their numbers in provenance.json, and their times
EXAMPLE = ("source", "reference", "translation")
OF_RUN = ("looks_ahead", "origin")  # of the manifest, what may be the run's own
SCORE = "test_scores."  # begins the columns of scores: test_scores.METRIC.TEXT


@dataclasses.dataclass(frozen=True)
class Record:
    """What the files of one run say.

    Attributes:
        settings: its settings, as tables.
        manifest: where and with what it was run.
        log: a row for each finished epoch.
        metrics: its results, or None while it is unfinished.
    """

    settings: Mapping[str, Any]
    manifest: Mapping[str, Any]
    log: Sequence[Mapping[str, float]]
    metrics: Mapping[str, Any] | None

    @property
    def name(self) -> str:
        return self.settings["name"]


def is_frozen(folder: Path) -> bool:
    """Returns whether a folder holds a frozen experiment."""
    return (folder / RUNS).exists()


def write_frozen(runs: Sequence[Record], folder: Path, page: str | None = None):
    """Writes the files of a frozen experiment.

    Args:
        runs: its runs, on one text or several.
        folder: the folder.
        page: the recipe's `page`; None for its own choice.

    Raises:
        ValueError: if two texts, or two runs on one text, have the same name.
    """
    import tomli_w

    recipe, differing = _common([run.settings for run in runs])
    if page is not None:
        recipe = {"page": page, **recipe}
    provenance = _Provenance()
    rows: dict[tuple[str, str], dict[str, str]] = {}
    epochs, examples = [], []
    for run, settings in zip(runs, differing):
        about, starts = provenance.add(run)
        results, signatures, translations = _taken_apart(run)
        if signatures:
            results["signatures"] = _index(provenance.signatures, signatures)
        cells = {**settings, **about, **results}
        key = {"text": run.manifest["text"], "run": run.name}
        if tuple(key.values()) in rows:
            raise ValueError(
                f"Expected one run called {run.name!r} on {key['text']}, to be frozen "
                f"in {folder}. Received two."
            )
        row = {name: _cell(value) for name, value in cells.items()}
        rows[tuple(key.values())] = {**key, **row, **starts}
        epochs += [
            {**key, **{name: _number(number) for name, number in epoch.items()}}
            for epoch in run.log
        ]
        examples += [{**key, **example} for example in translations]
    write_text(folder / RECIPE, HEADER + tomli_w.dumps(recipe))
    write_text(folder / RUNS, csv_text(_columns_of_runs(rows.values()), rows.values()))
    write_text(folder / EPOCHS, csv_text(_columns(epochs) or KEY, epochs))
    found = json.dumps(dataclasses.asdict(provenance), indent=1, ensure_ascii=False)
    write_text(folder / PROVENANCE, f"{found}\n")
    if examples:
        write_text(folder / EXAMPLES, csv_text([*KEY, *EXAMPLE], examples))


@dataclasses.dataclass(frozen=True)
class _Provenance:
    """What many runs share of where they come from, each thing once."""

    texts: dict[str, Any] = dataclasses.field(default_factory=dict)
    starts: list[Any] = dataclasses.field(default_factory=list)
    signatures: list[Any] = dataclasses.field(default_factory=list)

    def add(self, run: Record) -> tuple[dict[str, Any], dict[str, str]]:
        """Returns the cells of a run: what of its manifest is its own; its starts."""
        text = dict(run.manifest)
        name, starts = text.pop("text"), text.pop("starts")
        own = {key: text.pop(key) for key in ("looks_ahead",) if key in text}
        known = self.texts.setdefault(name, text)
        if known["origin"] != text["origin"]:  # the same text, found elsewhere
            own["origin"] = text["origin"]
        if known != {**text, "origin": known["origin"]}:
            raise ValueError(
                f"Expected one text called {name!r}, with one pair of vocabularies. "
                "Received two: freeze their runs apart."
            )
        times = [start["time"] for start in starts]
        numbers = [str(_index(self.starts, _without_time(start))) for start in starts]
        return own, dict(zip(STARTS, (" ".join(numbers), "; ".join(times))))


def read_frozen(folder: Path) -> list[Record]:
    """Returns the runs of a frozen experiment, in the order of `runs.csv`."""
    recipe = tomllib.loads((folder / RECIPE).read_text(encoding="utf-8"))
    recipe.pop("page", None)
    provenance = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
    logs, examples = _by_run(folder / EPOCHS), _by_run(folder / EXAMPLES)
    records = []
    for row in _rows(folder / RUNS):
        text, name = (row.pop(column) for column in KEY)
        numbers, times = (row.pop(column) for column in STARTS)
        cells = {column: _value(cell) for column, cell in row.items() if cell}
        manifest = {
            "text": text,
            **provenance["texts"][text],
            "starts": [
                {"time": time, **provenance["starts"][int(number)]}
                for time, number in zip(times.split("; "), numbers.split())
            ],
            **{column: cells.pop(column) for column in OF_RUN if column in cells},
        }
        own = {column: cells.pop(column) for column in list(cells) if _is_setting(column)}
        log = [
            {column: float(cell) for column, cell in epoch.items() if cell}
            for epoch in logs[text, name]
        ]
        if "signatures" in cells:
            cells["signatures"] = provenance["signatures"][cells["signatures"]]
        metrics = _put_together(cells, log, examples[text, name]) if cells else None
        records.append(Record(_settings(recipe, name, own), manifest, log, metrics))
    return records


def _common(
    all_settings: Sequence[Mapping[str, Any]],
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Settings as a recipe has them, and for each run those that the recipe lacks."""
    flat = [dict(_flat(settings)) for settings in all_settings]
    by_model = collections.defaultdict(list)
    for settings in flat:
        by_model[_model(settings["name"])].append(settings)
    recipe: dict[str, Any] = {}
    for name, value in _agreed(flat).items():
        if not _of_model(name):
            _set(recipe, name, value)
    recipe["models"] = {}
    for model, own in by_model.items():
        recipe["models"][model] = {
            name.removeprefix("model."): value
            for name, value in _agreed(own).items()
            if _of_model(name)
        }
    there = [dict(_flat(_settings(recipe, each["name"], {}))) for each in flat]
    return recipe, [
        {name: value for name, value in each.items() if known.get(name) != value}
        for each, known in zip(flat, there)
    ]


def _settings(
    recipe: Mapping[str, Any], name: str, own: Mapping[str, Any]
) -> dict[str, Any]:
    """A run's settings: those of its recipe and model, and its own."""
    tables = {table: value for table, value in recipe.items() if table != "models"}
    model = dict(recipe["models"][_model(name)])
    preset = {"preset": model.pop("preset")} if "preset" in model else {}
    settings: dict[str, Any] = {"name": name, **preset}
    for column, value in [*_flat({"model": model, **tables}), *own.items()]:
        _set(settings, column, value)
    return settings


def _of_model(name: str) -> bool:
    return name == "preset" or name.startswith("model.")


def _model(run: str) -> str:
    """The name of a run's model in its recipe."""
    return run.split(".")[0]


def _agreed(all_settings):
    """The settings that are the same in all, and there in all."""
    first = all_settings[0]
    return {
        name: value
        for name, value in first.items()
        if name != "name"
        and all(name in each and each[name] == value for each in all_settings)
    }


def _taken_apart(run: Record) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """A run's results as columns, the signatures of its scores, its translations."""
    if run.metrics is None:
        return {}, {}, ()
    known = _known(run.log)
    cells = {
        name: value
        for name, value in run.metrics.items()
        if known.get(name) != value
    }
    translations = cells.pop("examples", ())
    signatures = {}
    if "test_bleu_signature" in cells:
        signatures["test_bleu"] = cells.pop("test_bleu_signature")
    for score in cells.pop("test_scores", ()):
        column = f"{SCORE}{score['metric']}.{score['text']}"
        cells[column], signatures[column] = score["value"], score["signature"]
    return cells, signatures, translations


def _put_together(cells, log, examples) -> dict[str, Any]:
    """The reverse of `_taken_apart`."""
    signatures = cells.pop("signatures", {})
    metrics = {
        **_known(log), **{n: v for n, v in cells.items() if not n.startswith(SCORE)}
    }
    if "test_bleu" in signatures:
        metrics["test_bleu_signature"] = signatures["test_bleu"]
    scores = [
        dict(zip(("metric", "text"), column.removeprefix(SCORE).split(".")))
        | {"value": cells[column], "signature": signature}
        for column, signature in signatures.items()
        if column.startswith(SCORE)
    ]
    if scores:
        metrics["test_scores"] = scores
    if examples:
        metrics["examples"] = examples
    return metrics


def _known(log) -> dict[str, Any]:
    """The results that a log tells."""
    return {
        "epochs": len(log),
        "total_train_seconds": sum(row["train_seconds"] for row in log),
        "last_epoch": log[-1] if log else {},
    }


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _set(tables: dict[str, Any], name: str, value: Any):
    """Sets a value in nested tables by a name such as `training.seed`."""
    *path, last = name.split(".")
    for each in path:
        tables = tables.setdefault(each, {})
    tables[last] = value


def _index(found: list[Any], item: Any) -> int:
    """The place of an item among those found, to which it is added if it is new."""
    if item not in found:
        found.append(item)
    return found.index(item)


def _cell(value: Any) -> str:
    """A value as a CSV file has it: as JSON does, but words without their quotes."""
    if isinstance(value, str) and _value(value) == value != "":
        return value
    return json.dumps(value, ensure_ascii=False)


def _value(cell: str) -> Any:
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def _without_time(start: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in start.items() if name != "time"}


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(value)


def _columns(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """All names, in the order in which they first come up."""
    return list(dict.fromkeys(name for row in rows for name in row))


def _columns_of_runs(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The text and the name, then settings, then results, then starts."""
    names = _columns(rows)
    settings = [name for name in names if _is_setting(name)]
    results = [n for n in names if n not in (*KEY, *settings, *STARTS)]
    return [*KEY, *settings, *results, *STARTS]


def _is_setting(column: str) -> bool:
    return column == "preset" or "." in column and not column.startswith(SCORE)


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _by_run(path: Path) -> dict[tuple[str, str], list[dict[str, str]]]:
    found = collections.defaultdict(list)
    for row in _rows(path):
        found[row.pop("text"), row.pop("run")].append(row)
    return found
