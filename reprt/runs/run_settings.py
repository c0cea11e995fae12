"""Everything that decides one run, as tables that can grow."""

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

from reprt.presets import preset, preset_settings
from reprt.schema import check, check_known, check_range, shown
from reprt.settings import (
    BELOW_ONE,
    LONGEST,
    TINY,
    as_table,
    from_settings,
    migrated_model,
)

FORMAT = 2
PRECISIONS = ("float32", "mixed_bfloat16")
LOSS_SCALINGS = ("none", "dynamic")
MOST = 10**9
LARGEST_VOCABULARY = LARGEST_BATCH = 2**20
LARGEST_SEED = 2**32 - 1  # NumPy's

# Keys that format 1 had in another table.
MOVED = {
    "text.vocab_size": "vocabulary.size",
    "training.batch_size": "batching.size",
    "training.bucketing": "batching.by_length",
    "training.warmup_steps": "schedule.warmup_steps",
    "training.schedule_dim": "schedule.dim",
}
# Parts of a batch, with the same sums; sentences are packed instead.
DROPPED = ("training.micro_batches",)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextSettings:
    """The text.

    Args:
        pair: one of the 14 pairs, by TFDS's name, or another that is laid out alike.
        source: where the text comes from: `"auto"`, `"ted"`, `"embedded"` or a path.
        max_tokens: longest input of either side, in tokens.
    """

    pair: str = "pt_to_en"
    source: str = "auto"
    max_tokens: int = 128

    def __post_init__(self):
        check_range("[text]", 1, LONGEST, max_tokens=self.max_tokens)


@dataclasses.dataclass(frozen=True, kw_only=True)
class WordPieceSettings:
    """A WordPiece vocabulary for each side, learnt on the training text.

    Args:
        name: `"wordpiece"`.
        size: how many pieces are aimed at.
    """

    name: str = "wordpiece"
    size: int = 8000

    def __post_init__(self):
        check_range("[vocabulary]", 1, LARGEST_VOCABULARY, size=self.size)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentencesSettings:
    """Batches of so many sentences.

    Args:
        name: `"sentences"`.
        size: sentences a step, over all replicas.
        by_length: whether sentences of like length share a batch. It is faster, but
            not what was published: batches are then not drawn at random.
    """

    name: str = "sentences"
    size: int = 64
    by_length: bool = False

    def __post_init__(self):
        check_range("[batching]", 1, LARGEST_BATCH, size=self.size)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokensSettings:
    """Batches of so many tokens, of sentences of like length.

    Args:
        name: `"tokens"`.
        size: the most tokens of a step on either side, over all replicas. Padding
            counts: n sentences, the longest of which has l tokens, are n · l.
    """

    name: str = "tokens"
    size: int = 4096

    def __post_init__(self):
        check_range("[batching]", 1, LARGEST_BATCH, size=self.size)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdamSettings:
    """Adam, with the paper's constants as defaults.

    Args:
        name: `"adam"`.
        beta_1, beta_2: decay of the first and the second moment.
        epsilon: added to the root of the second moment.
        loss_scaling: `"none"`, or `"dynamic"` for gradients of a scaled loss, which
            float16 needs.
    """

    name: str = "adam"
    beta_1: float = 0.9
    beta_2: float = 0.98
    epsilon: float = 1e-9
    loss_scaling: str = "none"

    def __post_init__(self):
        check_range("[optimizer]", TINY, 1 / TINY, epsilon=self.epsilon)
        decays = {"beta_1": self.beta_1, "beta_2": self.beta_2}
        check_range("[optimizer]", 0, BELOW_ONE, **decays)
        if self.loss_scaling not in LOSS_SCALINGS:
            raise ValueError(
                f"Expected 'loss_scaling' in [optimizer] to be one of {LOSS_SCALINGS}. "
                f"Received: {self.loss_scaling!r}."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class InverseSqrtSettings:
    """Linear warm-up, then decay with the inverse square root of the step.

    Args:
        name: `"inverse_sqrt"`.
        warmup_steps: the paper's N_w, the step of the highest rate.
        dim: the paper's m; None for the model's own embedding width.
    """

    name: str = "inverse_sqrt"
    warmup_steps: int = 4000
    dim: int | None = None

    def __post_init__(self):
        dim = 1 if self.dim is None else self.dim
        check_range("[schedule]", 1, MOST, warmup_steps=self.warmup_steps, dim=dim)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How long and how exactly a model is trained; the defaults are section 3.1.

    Args:
        epochs: passes over the training text.
        steps: updates of the weights, in the place of `epochs`, of which the last may
            then be part of one; None for as many as the epochs have.
        hours: the training ends here if the epochs have not; an unfinished epoch
            does not count.
        precision: `"float32"`, or `"mixed_bfloat16"` for products of matrices in
            bfloat16, where the hardware has them.
        seed: of the weights, the dropout and the order of the text.
        deterministic: whether TensorFlow is held to operations that give the same
            bits each time.
        checkpoint_minutes: time between checkpoints within an epoch.
        tensorboard: whether to log for TensorBoard as well.
        bleu: whether the trained model is made to search: the prefix loss, and BLEU on
            the test split.
    """

    epochs: int = 10
    steps: int | None = None
    hours: float = 12.0
    precision: str = "float32"
    seed: int = 0
    deterministic: bool = True
    checkpoint_minutes: float = 5.0
    tensorboard: bool = False
    bleu: bool = True

    def __post_init__(self):
        steps = 1 if self.steps is None else self.steps
        check_range("[training]", 1, MOST, epochs=self.epochs, steps=steps)
        check_range("[training]", TINY, math.inf, hours=self.hours)
        minutes = self.checkpoint_minutes
        check_range("[training]", 0, math.inf, checkpoint_minutes=minutes)
        check_range("[training]", 0, LARGEST_SEED, seed=self.seed)
        if self.precision not in PRECISIONS:
            raise ValueError(
                f"Expected 'precision' in [training] to be one of {PRECISIONS}. "
                f"Received: {self.precision!r}."
            )


class RunTables(TypedDict):
    """What a run's file holds, of any format."""

    format: NotRequired[int]
    name: str
    preset: str
    model: dict
    text: dict
    training: dict
    vocabulary: NotRequired[dict]
    batching: NotRequired[dict]
    optimizer: NotRequired[dict]
    schedule: NotRequired[dict]


# The tables of a run besides its model. Where there are several members, the table's
# `name` chooses; the first is the default.
TABLES: Mapping[str, tuple[type, ...]] = {
    "text": (TextSettings,),
    "training": (TrainingSettings,),
    "vocabulary": (WordPieceSettings,),
    "batching": (SentencesSettings, TokensSettings),
    "optimizer": (AdamSettings,),
    "schedule": (InverseSqrtSettings,),
}


def table_settings(table: str, settings: Mapping[str, Any], where: str = ""):
    """Returns one table of a run, its member chosen by name.

    Args:
        table: one of `TABLES`.
        settings: its keys; what is left out gets its default.
        where: how the table is called in messages; `[table]` by default.

    Raises:
        ValueError: for an unknown name or key, or a value that is not allowed.

    Example:

    >>> table_settings("schedule", {"dim": 128}).warmup_steps
    4000
    """
    where = where or f"[{table}]"
    members = {getattr(member, "name", None): member for member in TABLES[table]}
    name = settings.get("name", next(iter(members)))
    if name not in tuple(members):  # any object may stand there
        raise ValueError(
            f"Expected 'name' in {where} to be one of {tuple(members)}. "
            f"Received: {shown(name)}."
        )
    for key in settings:
        if moved := MOVED.get(f"{table}.{key}"):
            into, new = moved.split(".")
            raise ValueError(
                f"Unknown key {key!r} in {where}: it is {new!r} in [{into}] now."
            )
    return from_settings(members[name], settings, where)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Everything that decides one model's training.

    Args:
        name: the run's name within its recipe.
        preset: the model that it is, or departs from.
        model: the architecture, of the settings class of the preset's family.
        text, training, vocabulary, batching, optimizer, schedule: the tables.
    """

    name: str
    preset: str
    model: Any
    text: TextSettings
    training: TrainingSettings
    vocabulary: WordPieceSettings = WordPieceSettings()
    batching: SentencesSettings | TokensSettings = SentencesSettings()
    optimizer: AdamSettings = AdamSettings()
    schedule: InverseSqrtSettings = InverseSqrtSettings()

    @property
    def schedule_dim(self) -> int:
        return self.schedule.dim or self.model.embedding_dim

    @property
    def evaluation_size(self) -> int:
        """Sentences a batch of what is measured once the model is trained."""
        tokens = isinstance(self.batching, TokensSettings)
        return SentencesSettings.size if tokens else self.batching.size

    @property
    def identity(self) -> "RunSettings":
        """What is done, whatever it is called and wherever its text was found."""
        return dataclasses.replace(
            self,
            name="",
            schedule=dataclasses.replace(self.schedule, dim=self.schedule_dim),
            text=dataclasses.replace(self.text, source=""),
        )

    def as_tables(self) -> dict[str, Any]:
        """Returns the settings as TOML holds them: one that is None is left out."""
        return {"format": FORMAT, **as_table(self)}

    @classmethod
    def from_tables(cls, tables: Mapping[str, Any], where: str) -> "RunSettings":
        """Reads what `as_tables` returned, now or in an earlier version.

        A setting that is newer than the tables gets its default, under which a run
        does what it did before there was the setting.

        Args:
            tables: the tables.
            where: how they are called in messages.

        Raises:
            ValueError: if something is missing, unknown or not allowed.
        """
        check(tables, RunTables, where)
        for table in tables:
            check_known(table, tuple(RunTables.__annotations__), where)
        tables = migrated(tables, where)
        try:
            for part in tables["name"].split("."):
                check_name(part, "run")
            return cls(
                name=tables["name"],
                preset=tables["preset"],
                model=preset(tables["preset"], **tables["model"]),
                **{
                    table: table_settings(table, tables.get(table, {}))
                    for table in TABLES
                },
            )
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error


def migrated(tables: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Returns the tables of a run in the present format.

    Args:
        tables: of any format up to the present one; without a number, format 1.
        where: how they are called in messages.

    Raises:
        ValueError: for a later format.
    """
    written = tables.get("format", 1)
    if type(written) is not int or not 1 <= written <= FORMAT:
        raise ValueError(
            f"Expected {where} to have a format from 1 to {FORMAT}. Received: "
            f"{written!r}, which a later version of this package may read."
        )
    new = {
        name: dict(value) if isinstance(value, dict) else value
        for name, value in tables.items()
        if name != "format"
    }
    if written < 2:
        for old, moved in MOVED.items():
            table, key = old.split(".")
            if key in new.get(table, {}):
                into, name = moved.split(".")
                new.setdefault(into, {})[name] = new[table].pop(key)
        for old in DROPPED:
            table, key = old.split(".")
            new.get(table, {}).pop(key, None)
        if "model" in new:
            new["model"] = migrated_model(new["model"])
    return new


def check_name(name: str, what: str):
    """Checks a name that is to be a part of the name of a folder.

    Args:
        name: the name.
        what: whose it is, for the message.

    Raises:
        ValueError: if it is empty or long, or has other signs than those of words.
    """
    if not re.fullmatch(r"[\w-]{1,64}", name):
        raise ValueError(
            f"Expected the name of a {what} to be of 1 to 64 letters, digits, - and _. "
            f"Received: {shown(name)}."
        )


def usual_settings(name: str) -> dict[str, Any]:
    """Returns the tables of a preset's run that departs from nothing.

    Args:
        name: the preset's name.
    """
    return {
        "model": as_table(preset_settings(name)),
        **{table: as_table(table_settings(table, {})) for table in TABLES},
    }


def flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns nested tables as one, with names such as `training.seed`."""
    entries: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            entries |= flat(value, f"{prefix}{name}.")
        else:
            entries[f"{prefix}{name}"] = value
    return entries
