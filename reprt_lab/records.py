"""What a run leaves behind, typed, and what pages ask of it."""

import statistics
from operator import attrgetter
from pathlib import Path
from typing import Any, get_args

import pydantic
from pydantic import Field

from reprt.analysis.scores import Score, on_corpus_tokens
from reprt.files import file_lock, read_text
from reprt.models.presets import PRESETS
from reprt.settings import Settings, in_one_line
from reprt.training.settings import (
    TABLES,
    RunSettings,
    RunTables,
    TrainingSettings,
)
from reprt_lab.recipe import Look

Epoch = dict[str, float]
# Faults of settings that have changed since: a value is no choice any more, or no
# longer goes with another. All other faults are damage.
OUTDATED = {"choice", "literal_error", "value_error"}
# Settings that are no departure from the paper, whatever they are.
NO_DEPARTURES = {
    "text.pair",
    "text.source",
    "training.deterministic",
    "training.keep_every",
    "training.seed",
}


class Record(Settings):
    """What was written down once: a key that is no longer known is kept."""

    model_config = pydantic.ConfigDict(extra="allow")

    @pydantic.model_validator(mode="before")
    @classmethod
    def _check_keys(cls, values):
        return values


class Table(Record):
    """A table of a run's settings, as it was written down."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _lists_are_tuples(cls, values):
        if not isinstance(values, dict):
            # It is refused.
            return values
        values = dict(values)
        for name, value in values.items():
            if isinstance(value, list):
                values[name] = tuple(value)
        return values


class WrittenSettings(RunTables, Record):
    """What was asked of a run, as its files have it.

    Today's settings may have changed since. A setting that is newer than the run has
    its default. Keys, presets, names and choices that are gone stay, and tell runs
    apart.
    """

    @pydantic.model_validator(mode="before")
    @classmethod
    def _every_table(cls, values):
        if not isinstance(values, dict):
            # It is refused.
            return values
        tables: dict[str, Any] = {**dict.fromkeys(TABLES, {}), **values}
        for name in tables.keys() - cls.model_fields.keys():
            tables[name] = Table.model_validate(tables[name])
        return tables

    @pydantic.field_validator("model", *TABLES, mode="before")
    @classmethod
    def _read_table(cls, values, field):
        table = Table.model_validate(values)
        if field.field_name == "model":
            defaults = PRESETS.get(field.data.get("preset"))
        else:
            defaults = _default_table(
                field.field_name, getattr(table, "name", None)
            )
        if defaults is None:
            return table
        values = {**dict(defaults), **dict(table)}
        known = {name: values[name] for name in type(defaults).model_fields}
        try:
            values |= dict(type(defaults).model_validate(known))
        except pydantic.ValidationError as error:
            if any(fault["type"] not in OUTDATED for fault in error.errors()):
                raise
        return Table.model_validate(values)

    @property
    def departures(self) -> list[str]:
        """The settings that are not those of the preset and of the paper.

        Of a preset that is gone, all settings of the model are.
        """
        defaults = {
            table: RunSettings.model_fields[table].default for table in TABLES
        }
        defaults["model"] = PRESETS.get(self.preset)
        # The paper's m is the width of the model's own embedding.
        defaults["schedule"] = defaults["schedule"].changed(
            dim=self.model.embedding_dim
        )
        departures = []
        for table, values in self.identity:
            if not isinstance(values, Settings):
                continue
            for name, value in values:
                key = f"{table}.{name}"
                same = value in (None, getattr(defaults.get(table), name, None))
                if same or key in NO_DEPARTURES:
                    continue
                if isinstance(value, tuple):
                    value = list(value)
                departures.append(f"{key} = {value}")
        return departures


def _default_table(table: str, name: str | None) -> Settings | None:
    """Returns a table of today by its name and defaults; None if the name is gone."""
    annotation: Any = RunSettings.model_fields[table].annotation
    for kind in get_args(annotation) or [annotation]:
        defaults = kind()
        if name in (None, getattr(defaults, "name", None)):
            return defaults
    return None


class Start(Record):
    """What a run was begun or continued with."""

    time: str
    command: str
    commit: str | None = None
    """None where the package is no checkout."""
    hardware: str
    backend: str = "tensorflow"
    python: str
    versions: dict[str, str | None]
    devices: list[str] = []
    weights_from: dict[str, str] | None = None
    """The path and the sha256 of the model whose weights it has taken."""


class Manifest(Record):
    """What a run was made on."""

    text: str
    text_sha256: str
    source_vocabulary_sha256: str
    target_vocabulary_sha256: str
    origin: str | None = None
    official_text: bool
    sentence_pairs: dict[str, int]
    unknown: dict[str, dict[str, float]] | None = None
    """The share of unknown pieces by split and side."""
    tokens: dict[str, dict[str, float]] | None = None
    """The mean number of tokens of a sentence by split and side."""
    cut: dict[str, float] | None = None
    """The share of pairs longer than `max_tokens`, by split."""
    pieces: dict[str, int] | None = None
    """The size of each side's vocabulary."""
    looks_ahead: bool = False
    """What the model says of its decoder once it is built."""
    starts: list[Start] = []

    @property
    def hashes(self) -> tuple[str, str, str]:
        """Those of the text and of both vocabularies."""
        return (
            self.text_sha256,
            self.source_vocabulary_sha256,
            self.target_vocabulary_sha256,
        )


class LengthResult(Record):
    """What came out on the pairs of some lengths of the test split."""

    longest: int | None = None
    """Most tokens of the longer input, or None; the entry before has shorter pairs."""
    sentences: int
    prefix_loss_per_token: float
    bleu: float | None = None


class Metrics(Record):
    """What came out of a run. Results that were not asked for are None."""

    parameters: int
    parameters_without_tables: int | None = None
    train_source_tokens: int | None = None
    train_target_tokens: int | None = None
    train_flops: int | None = None
    peak_memory_bytes: int | None = None
    epochs: int
    out_of_time: bool = False
    averaged_models: list[str] = []
    best_step: int | None = None
    """The step of the best model, where it is the trained one."""
    stopped_early: bool = False
    """Whether training ended because no better model came."""
    val_loss: float | None = None
    """Of a mean of models, or the best, like the next; the log has those of epochs."""
    val_loss_per_token: float | None = None
    finished: str
    val_prefix_loss: float | None = None
    val_prefix_loss_per_token: float | None = None
    test_prefix_loss_per_token: float | None = None
    test_by_length: list[LengthResult] = []
    test_bleu: float | None = None
    test_bleu_signature: str | None = None
    test_scores: list[Score] = []
    examples: list[dict[str, str]] = []


class Run(Record):
    """One run, live or frozen."""

    settings: WrittenSettings
    manifest: Manifest
    log: list[Epoch]
    steps: list[Epoch] = []
    """The rows of `steps.csv`."""
    metrics: Metrics | None = None
    """None while it is unfinished."""
    look: Look = Field(default=Look(), exclude=True)
    """How the page shows it."""
    lock: Path | None = Field(default=None, exclude=True)
    """The file that a process which works on it holds locked."""
    checkpoint_step: int = Field(default=0, exclude=True)
    """The step of its newest checkpoint."""

    model_config = pydantic.ConfigDict(
        allow_inf_nan=True,
        ser_json_inf_nan="constants",
    )

    name = property(attrgetter("settings.name"))
    seed = property(attrgetter("settings.training.seed"))
    pair = property(attrgetter("settings.text.pair"))
    text = property(attrgetter("manifest.text"))
    looks_ahead = property(attrgetter("manifest.looks_ahead"))

    @property
    def model(self) -> str:
        """The model's name in its recipe."""
        return self.name.split(".")[0]

    @property
    def schedule(self) -> str:
        return ".".join(self.name.split(".")[1:-1])

    @property
    def label(self) -> str:
        return self.look.label or self.model

    @property
    def finished(self) -> bool:
        return bool(self.metrics and self.log)

    @property
    def state(self) -> str:
        """How far an unfinished run is, and whether it goes on."""
        step = self.checkpoint_step
        for row in (*self.log, *self.steps):
            step = max(step, int(row.get("step", 0)))
        epochs, training = str(len(self.log)), self.settings.training
        steps = f"{step:,}"
        if training.steps:
            steps += f" of {training.steps:,}"
        else:
            epochs += f" of {training.epochs}"
        activity = "was interrupted"
        if self.lock:
            with file_lock(self.lock, wait=False) as free:
                activity = activity if free else "is in training"
        return f"{self.name} {activity}, after {epochs} epochs, at step {steps}"

    @property
    def departures(self) -> list[str]:
        """The settings that are not the paper's; hours, if they made a difference."""
        hours = self.settings.training.hours
        default_hours = TrainingSettings().hours
        departures = self.settings.departures
        ran_out_of_time = self.metrics is not None and self.metrics.out_of_time
        seconds = sum(row["train_seconds"] for row in self.log)
        mattered = ran_out_of_time or seconds > default_hours * 3600
        if hours != default_hours and mattered:
            return [*departures, f"training.hours = {hours}"]
        return departures

    @property
    def rate(self) -> str:
        """What its learning rate follows from, in short."""
        if self.settings.schedule_dim is not None:
            return f"m = {self.settings.schedule_dim}"
        schedule = self.settings.schedule
        peak = getattr(schedule, "peak", None)
        if peak is None:
            return schedule.name
        return f"{schedule.name} from {peak:g}"

    @property
    def whole_epochs(self) -> list[Epoch]:
        """The log's rows of epochs that `training.steps` did not cut."""
        tokens = max((row["train_tokens"] for row in self.log), default=0)
        return [row for row in self.log if row["train_tokens"] == tokens]

    @property
    def numbers(self) -> dict[str, float]:
        """What was measured. An epoch's time is the median, which forgets a pause."""
        numbers: dict[str, Any] = {}
        if self.log:
            times = [row["train_seconds"] for row in self.whole_epochs]
            seconds = statistics.median(times)
            numbers.update(self.log[-1])
            numbers["train_seconds"] = sum(
                row["train_seconds"] for row in self.log
            )
            numbers["seconds_an_epoch"] = seconds
            tokens = self.whole_epochs[0]["train_tokens"]
            numbers["tokens_per_second"] = tokens / seconds
        if self.metrics:
            numbers.update(self.metrics.model_dump(exclude_none=True))
            scores = on_corpus_tokens(self.metrics.test_scores)
            for name, score in scores.items():
                numbers[f"test_{name.lower()}"] = score.value
        return {**numbers, "epochs": len(self.log)}


def read_records(path: Path) -> list[Run]:
    """Reads a frozen experiment; a `ValueError` names a damaged line."""
    records = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        try:
            records.append(Run.model_validate_json(line))
        except pydantic.ValidationError as error:
            raise ValueError(
                in_one_line(error, f"line {number} of {path}")
            ) from None
    return records
