"""An experiment's runs in a few files, from which each comes back as it was.

| file | what it holds |
|---|---|
| `recipe.toml` | the settings that runs have in common, by table and by model |
| `runs.csv` | a row a run: the settings that differ, its starts, its results |
| `epochs.csv` | a row an epoch of each run |
| `provenance.json` | the texts and vocabularies, the starts, the scores' signatures |
| `examples.csv` | translations of the embedded corpus, if there are any |

A frozen experiment is there to be given away. Sentences of other texts belong to their
authors, so they stay in the run folders.
"""

import collections
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from reprt.data.corpora import embedded
from reprt.files import write_text
from reprt.reading import read_csv, read_json, read_toml
from reprt.lab.pages.tables import csv_text
from reprt.lab.records import Manifest, Metrics, epoch_of
from reprt.training.settings import SHOWN_AS, flat
from reprt.schema import check, shown

RECIPE, RUNS, EPOCHS = "recipe.toml", "runs.csv", "epochs.csv"
PROVENANCE, EXAMPLES = "provenance.json", "examples.csv"
HEADER = "# What the runs have in common; what differs is in runs.csv.\n\n"
OF_MODEL = ("preset", *SHOWN_AS)  # besides its architecture
OF_RUN = ("looks_ahead", "origin")  # what may differ between manifests on one text
SCORE = "test_scores."  # begins the columns of scores: test_scores.METRIC.FORM


class Shared(TypedDict):
    """What `provenance.json` holds."""

    texts: dict[str, dict]
    starts: list[dict]
    signatures: list[dict[str, str]]


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

    recipe, settings = _in_common([run.settings for run in runs])
    if page is not None:
        recipe = {"page": page, **recipe}
    shared: dict[str, Any] = {"texts": {}, "starts": [], "signatures": []}
    rows: dict[tuple, dict[str, Any]] = {}
    epochs, examples = [], []
    for run, own in zip(runs, settings):
        key = {"text": run.manifest["text"], "run": run.name}
        results, translations = _as_columns(run, shared["signatures"])
        row = {**key, **own, **_whence(run, shared), **results}
        if rows.setdefault(tuple(key.values()), row) is not row:
            raise ValueError(
                f"Expected one run called {run.name!r} on {key['text']}, to be frozen "
                f"in {folder}. Received two."
            )
        epochs += [
            {**key, **{n: int(v) if v.is_integer() else v for n, v in epoch.items()}}
            for epoch in run.log
        ]
        if key["text"] == embedded.NAME:
            examples += [{**key, **example} for example in translations]
    write_text(folder / RECIPE, HEADER + tomli_w.dumps(recipe))
    write_text(folder / RUNS, _csv(rows.values()))
    write_text(folder / EPOCHS, _csv(epochs))
    found = json.dumps(shared, indent=1, ensure_ascii=False)
    write_text(folder / PROVENANCE, f"{found}\n")
    (folder / EXAMPLES).unlink(missing_ok=True)
    if examples:
        write_text(folder / EXAMPLES, _csv(examples))


def read_frozen(folder: Path) -> list[Record]:
    """Returns the runs of a frozen experiment, in the order of `runs.csv`.

    Raises:
        OSError: if one of its files cannot be read.
        ValueError: if one of them is damaged, or does not fit the others.
    """
    recipe = read_toml(folder / RECIPE)
    models = recipe.get("models", {})
    check(models, dict[str, dict], f"'models' in {folder / RECIPE}")
    shared = read_json(folder / PROVENANCE, Shared)
    logs, examples = _by_run(folder / EPOCHS), _by_run(folder / EXAMPLES)
    records = []
    for (text, name), rows in _by_run(folder / RUNS).items():
        where = f"run {shown(name)} on {shown(text)} in {folder / RUNS}"
        if rows[1:]:
            raise ValueError(f"Expected the {where} once. Received it more often.")
        values = {column: _value(cell) for column, cell in rows[0].items()}
        cells = {column: value for column, value in values.items() if value != ""}
        own = {column: cells.pop(column) for column in [*filter(_is_setting, cells)]}
        times = str(cells.pop("started", "")).split("; ")
        numbers = cells.pop("starts", None)
        check(numbers, list[int], f"'starts' of the {where}")
        starts = [_known_one(shared["starts"], number, where) for number in numbers]
        if starts and len(times) != len(starts):
            raise ValueError(
                f"Expected 'started' of the {where} to have {len(starts)} times. "
                f"Received: {shown(times)}."
            )
        manifest = {
            "text": text,
            **_known_one(shared["texts"], text, where),
            "starts": [{"time": time, **start} for time, start in zip(times, starts)],
            **{column: cells.pop(column) for column in OF_RUN if column in cells},
        }
        check(manifest, Manifest, f"the {where}, with {PROVENANCE},")
        if "looks_ahead" not in manifest:
            raise ValueError(f"Missing in the {where}: 'looks_ahead'.")
        log = [
            epoch_of(epoch, f"epoch {number} of the {where}, in {EPOCHS},")
            for number, epoch in enumerate(logs[text, name], 1)
        ]
        metrics = None
        if cells:
            signed = {}
            if "signatures" in cells:
                number = cells.pop("signatures")
                signed = _known_one(shared["signatures"], number, where)
            metrics = _as_metrics(cells, log, signed, where)
            if examples[text, name]:
                metrics["examples"] = [
                    {column: _value(cell) for column, cell in example.items()}
                    for example in examples[text, name]
                ]
            check(metrics, Metrics, f"the results of the {where}")
        model = _known_one(models, _model(name), where)
        settings = _settings(recipe, model, name, own, where)
        if metrics and metrics["epochs"] != len(log):  # the last rows can get lost
            raise ValueError(
                f"Expected {EPOCHS} to have {metrics['epochs']} epochs of the {where}. "
                f"Received: {len(log)}."
            )
        records.append(Record(settings, manifest, log, metrics))
    return records


def _known_one(known, name, where):
    """What a row names by its key, or its number."""
    keys = range(len(known)) if isinstance(known, list) else known.keys()
    if isinstance(name, bool) or name not in tuple(keys):
        raise ValueError(
            f"Expected the {where} to name one of {tuple(keys)}. "
            f"Received: {shown(name)}."
        )
    return known[name]


def _in_common(
    all_settings: Sequence[Mapping[str, Any]],
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A recipe with what is common, and for each run the settings that are its own."""
    runs = [flat(settings) for settings in all_settings]
    by_model: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        by_model.setdefault(_model(run["name"]), []).append(run)
    tables = {n: v for n, v in _agreed(runs).items() if not _of_model(n)}
    models = {
        model: {n: v for n, v in _agreed(own).items() if _of_model(n)}
        for model, own in by_model.items()
    }
    recipe = _nested(tables) | {
        "models": {
            model: {name.removeprefix("model."): value for name, value in own.items()}
            for model, own in models.items()
        }
    }
    differing = [
        {n: v for n, v in run.items() if n not in tables | models[_model(run["name"])]}
        for run in runs
    ]
    names = dict.fromkeys(n for own in differing for n in own if n != "name")
    return recipe, [{name: own.get(name) for name in names} for own in differing]


def _settings(
    recipe: Mapping[str, Any],
    of_model: Mapping[str, Any],
    name: str,
    own: Mapping[str, Any],
    where: str,
) -> dict[str, Any]:
    """A run's settings: those of its recipe and model, and its own."""
    model = {
        key if key in OF_MODEL else f"model.{key}": value
        for key, value in of_model.items()
    }
    tables = {k: v for k, v in recipe.items() if k not in ("page", "models")}
    return _nested({"name": name, **model, **flat(tables), **own}, where)


def _agreed(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The settings that all runs have alike."""
    return {
        name: value
        for name, value in runs[0].items()
        if name != "name" and all(run.get(name) == value for run in runs)
    }


def _model(run: str) -> str:
    """The name of a run's model in its recipe."""
    return run.split(".")[0]


def _of_model(setting: str) -> bool:
    return setting in OF_MODEL or setting.startswith("model.")


def _is_setting(column: str) -> bool:
    return column in OF_MODEL or "." in column and not column.startswith(SCORE)


def _whence(run: Record, shared: dict[str, Any]) -> dict[str, Any]:
    """The columns of a run's manifest; what runs share of it is added to `shared`."""
    text = dict(run.manifest)
    name, starts = text.pop("text"), text.pop("starts")
    own = {key: text.pop(key) for key in OF_RUN if key in text}
    found = {key: own[key] for key in ("origin",) if key in own}
    known = shared["texts"].setdefault(name, text | found)
    if {key: value for key, value in known.items() if key != "origin"} != text:
        raise ValueError(
            f"Expected one text called {name!r}, with one pair of vocabularies. "
            "Received two: freeze their runs apart."
        )
    if own.get("origin") == known.get("origin"):  # and was not found in another place
        own.pop("origin", None)
    numbers = [
        _index(shared["starts"], {n: v for n, v in start.items() if n != "time"})
        for start in starts
    ]
    times = "; ".join(start["time"] for start in starts)
    return {**own, "starts": numbers, "started": times}


def _as_columns(run: Record, signatures: list[Any]) -> tuple[dict[str, Any], Any]:
    """A run's results as columns, and its translations."""
    known = _known(run.log)
    del known["epochs"]  # by which it is seen that a log is whole
    cells = {n: v for n, v in (run.metrics or {}).items() if known.get(n) != v}
    translations, signed = cells.pop("examples", ()), {}
    if "test_bleu_signature" in cells:
        signed["test_bleu"] = cells.pop("test_bleu_signature")
    for score in cells.pop("test_scores", ()):
        column = f"{SCORE}{score['metric']}.{score['form']}"
        cells[column], signed[column] = score["value"], score["signature"]
    if signed:
        cells["signatures"] = _index(signatures, signed)
    return cells, translations


def _as_metrics(cells, log, signed, where) -> dict[str, Any]:
    """The results of which `_as_columns` made columns."""
    signed, metrics = dict(signed), _known(log)
    if "test_bleu" in signed:
        metrics["test_bleu_signature"] = signed.pop("test_bleu")
    if signed:
        metrics["test_scores"] = []
        for column, signature in signed.items():
            metric, dot, form = column.removeprefix(SCORE).partition(".")
            if not dot or column not in cells:
                raise ValueError(f"Missing in the {where}: {shown(column)}.")
            score = {"metric": metric, "form": form, "value": cells.pop(column)}
            metrics["test_scores"].append({**score, "signature": signature})
    return metrics | cells


def _known(log: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """The results that a log tells."""
    return {
        "epochs": len(log),
        "total_train_seconds": sum(row["train_seconds"] for row in log),
        "last_epoch": log[-1] if log else {},
    }


def _nested(entries: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """The reverse of `flat`."""
    tables: dict[str, Any] = {}
    for name, value in entries.items():
        *path, last = name.split(".")
        table = tables
        for each in path:
            table = table.setdefault(each, {})
            check(table, dict, f"{each!r} of the {where}")
        table[last] = value
    return tables


def _index(found: list[Any], item: Any) -> int:
    """The place of an item among those found, to which it is added if it is new."""
    if item not in found:
        found.append(item)
    return found.index(item)


def _csv(rows) -> str:
    return csv_text([{name: _cell(row[name]) for name in row} for row in rows])


def _cell(value: Any) -> str:
    """A value as JSON has it, but words without their quotes, and None as nothing."""
    if value is None or isinstance(value, str) and _value(value) == value:
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _value(cell: str) -> Any:
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return cell


def _by_run(path: Path) -> Mapping[tuple[str, str], list[dict[str, str]]]:
    """The rows of a file by text and run; none if there is no file."""
    found = collections.defaultdict(list)
    for row in read_csv(path) if path.exists() else ():
        missing = [column for column in ("text", "run") if column not in row]
        if missing:
            raise ValueError(f"Missing in {path}: {', '.join(missing)}.")
        names = _value(row.pop("text")), _value(row.pop("run"))
        check(names, tuple[str, ...], f"'text' and 'run' in {path}")
        found[names].append(row)
    return found
