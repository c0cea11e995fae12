"""Everything that decides one run, as tables that can grow."""

import dataclasses
import math
import re
from collections.abc import Collection, Mapping
from typing import Any, NotRequired, TypedDict

from reprt.data.tokenizers.base import VocabularySettings
from reprt.data.tokenizers.registry import VOCABULARIES
from reprt.data.tokenizers.wordpiece import WordPieceSettings
from reprt.presets import preset, preset_settings
from reprt.schema import check, check_known, check_range, shown
from reprt.settings import (
    BELOW_ONE,
    LONGEST,
    TINY,
    as_table,
    member_settings,
)

FORMAT = 2
PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")
LOSS_SCALINGS = ("none", "dynamic")
MOST = 10**9
LARGEST_BATCH = 2**20
LARGEST_SEED = 2**32 - 1  # NumPy's


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextSettings:
    """The text.

    Args:
        pair: one of the 14 pairs, by TFDS's name, or another with the same layout.
        source: where the text comes from: `"auto"`, `"ted"`, `"embedded"`, `"wmt14"` or
            a path.
        max_tokens: longest input of either side, in tokens.
    """

    pair: str = "pt_to_en"
    source: str = "auto"
    max_tokens: int = 128

    def __post_init__(self):
        check_range("[text]", 1, LONGEST, max_tokens=self.max_tokens)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentencesSettings:
    """Batches of so many sentences.

    Args:
        name: `"sentences"`.
        size: sentences a step, over all replicas.
        by_length: whether sentences of similar length share a batch. It is faster, and
            not as published: batches are then not random.
    """

    name: str = "sentences"
    size: int = 64
    by_length: bool = False

    def __post_init__(self):
        check_range("[batching]", 1, LARGEST_BATCH, size=self.size)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokensSettings:
    """Batches of so many tokens, from sentences of similar length.

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
            float16 needs. A gradient that is not finite makes no update: it halves
            the scale instead. The scale doubles after 2,000 updates in a row.
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
class AdamWSettings(AdamSettings):
    """Adam with decoupled weight decay: each step also takes rate · decay of a weight.

    Biases, the norms' gains and shifts and attention's learnt scale do not decay;
    matrices and tables of embeddings do.

    Args:
        name: `"adamw"`.
        weight_decay: the share of a weight that goes in a step, by the step's rate.
            The default is PyTorch's.
        beta_1, beta_2, epsilon, loss_scaling: as in `AdamSettings`.
    """

    name: str = "adamw"
    weight_decay: float = 0.01

    def __post_init__(self):
        super().__post_init__()
        check_range("[optimizer]", 0, 1, weight_decay=self.weight_decay)


@dataclasses.dataclass(frozen=True, kw_only=True)
class InverseSqrtSettings:
    """Linear warm-up, then decay with the inverse square root of the step.

    Args:
        name: `"inverse_sqrt"`.
        warmup_steps: the paper's N_w, the step of the highest rate.
        dim: the paper's m; None for the model's own embedding width.
        peak: the highest rate, in place of the one that follows from m; None for m's.
    """

    name: str = "inverse_sqrt"
    warmup_steps: int = 4000
    dim: int | None = None
    peak: float | None = None

    def __post_init__(self):
        dim = 1 if self.dim is None else self.dim
        check_range("[schedule]", 1, MOST, warmup_steps=self.warmup_steps, dim=dim)
        if self.peak is None:
            return
        check_range("[schedule]", TINY, 1, peak=self.peak)
        if self.dim is not None:
            raise ValueError(
                "Expected 'dim' or 'peak' in [schedule], for the highest rate follows "
                f"from either. Received both: {self.dim} and {self.peak}."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CosineSettings:
    """Linear warm-up, then half a cosine down to the end of the run.

    Args:
        name: `"cosine"`.
        warmup_steps: the step of the highest rate.
        peak: the highest rate.
        floor: the rate at the end.
        steps: the step of the end; None for the run's own number of steps, all its
            epochs'.
    """

    name: str = "cosine"
    warmup_steps: int = 2000
    peak: float = 6e-4
    floor: float = 6e-5
    steps: int | None = None

    def __post_init__(self):
        check_range("[schedule]", 1, MOST, warmup_steps=self.warmup_steps)
        check_range("[schedule]", TINY, 1, peak=self.peak)
        check_range("[schedule]", 0, self.peak, floor=self.floor)
        if self.steps is not None:
            check_range("[schedule]", self.warmup_steps + 1, MOST, steps=self.steps)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How long and how exactly a model is trained; the defaults are section 3.1.

    Args:
        epochs: passes over the training text.
        steps: updates of the weights, instead of `epochs`; the last epoch may then be
            cut short. None for as many as the epochs have.
        hours: the training ends here if the epochs have not; an unfinished epoch
            does not count.
        precision: `"float32"`, or `"mixed_bfloat16"` or `"mixed_float16"` for products
            of matrices in bfloat16 or float16, where the hardware has them. Float16
            needs a dynamic loss scaling of `[optimizer]`.
        seed: of the weights, the dropout and the order of the text.
        deterministic: whether TensorFlow is held to operations that give the same
            bits each time.
        checkpoint_minutes: time between checkpoints within an epoch.
        average: the trained model is the mean of the last so many that were kept; 0
            for the model after the last epoch.
        keep_every: with `average`, steps from one model that is kept to the next; None
            for the steps of an epoch. The model of the last step is kept too.
        tensorboard: whether to log for TensorBoard as well.
        bleu: whether the prefix loss, and BLEU on the test split, are computed after
            training.
    """

    epochs: int = 10
    steps: int | None = None
    hours: float = 12.0
    precision: str = "float32"
    seed: int = 0
    deterministic: bool = True
    checkpoint_minutes: float = 5.0
    average: int = 0
    keep_every: int | None = None
    tensorboard: bool = False
    bleu: bool = True

    def __post_init__(self):
        steps = 1 if self.steps is None else self.steps
        check_range("[training]", 1, MOST, epochs=self.epochs, steps=steps)
        check_range("[training]", TINY, math.inf, hours=self.hours)
        minutes = self.checkpoint_minutes
        check_range("[training]", 0, math.inf, checkpoint_minutes=minutes)
        check_range("[training]", 0, LARGEST_SEED, seed=self.seed)
        check_range("[training]", 0, MOST, average=self.average)
        if self.keep_every is not None:
            check_range("[training]", 1, MOST, keep_every=self.keep_every)
            if not self.average:
                raise ValueError(
                    "Expected 'average' in [training] to be at least 1 where there is "
                    f"'keep_every'. Received: 0 and {self.keep_every}."
                )
        if self.precision not in PRECISIONS:
            raise ValueError(
                f"Expected 'precision' in [training] to be one of {PRECISIONS}. "
                f"Received: {self.precision!r}."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslationSettings:
    """The cross-entropy of the target's tokens.

    Args:
        name: `"translation"`.
        label_smoothing: the share of each label that is given to all of the target's
            ids alike. The losses that are logged are not smoothed.
    """

    name: str = "translation"
    label_smoothing: float = 0.0

    def __post_init__(self):
        smoothing = self.label_smoothing
        check_range("[objective]", 0, BELOW_ONE, label_smoothing=smoothing)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslationAndSourceSettings(TranslationSettings):
    """The source's cross-entropy too, for a model that scores it; its weight falls.

    In step s of S the source's mean cross-entropy has the weight λ(s), linear from 1 to
    `alpha` at s = `turn` · S, and from there to 0 at S.

    Args:
        name: `"translation_and_source"`.
        label_smoothing: that of the target alone.
        alpha: the weight where its slope changes.
        turn: the part of all steps after which it does.
    """

    name: str = "translation_and_source"
    alpha: float = 0.1
    turn: float = 0.25

    def __post_init__(self):
        super().__post_init__()
        check_range("[objective]", 0, 1, alpha=self.alpha)
        check_range("[objective]", TINY, BELOW_ONE, turn=self.turn)


class ShownAs(TypedDict, total=False):
    """How pages show a model; none of it changes what is computed."""

    label: str
    colour: str
    reference: bool


SHOWN_AS = tuple(ShownAs.__annotations__)
# What may change while a run stays the same: the text's place, because only its
# sha256 counts, and how pages show the model.
INDIFFERENT = ("text.source", *SHOWN_AS)


class RunTables(ShownAs):
    """What a run's file holds."""

    format: int
    name: str
    preset: str
    model: dict
    text: dict
    training: dict
    vocabulary: NotRequired[dict]
    batching: NotRequired[dict]
    optimizer: NotRequired[dict]
    schedule: NotRequired[dict]
    objective: NotRequired[dict]


# The tables of a run besides its model. Where there are several members, the table's
# `name` chooses; the first is the default.
TABLES: Mapping[str, tuple[type, ...]] = {
    "text": (TextSettings,),
    "training": (TrainingSettings,),
    "vocabulary": VOCABULARIES,
    "batching": (SentencesSettings, TokensSettings),
    "optimizer": (AdamSettings, AdamWSettings),
    "schedule": (InverseSqrtSettings, CosineSettings),
    "objective": (TranslationSettings, TranslationAndSourceSettings),
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
    return member_settings(TABLES[table], settings, where or f"[{table}]")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Everything that decides one model's training.

    Args:
        name: the run's name within its recipe.
        preset: the model that it is, or departs from.
        model: the architecture, of the settings class of the preset's family.
        text, training, vocabulary, batching, optimizer, schedule, objective: the
            tables.
        label: what pages call the model; None for its name in the recipe.
        colour: the model's in pictures, such as `"#0072b2"`; None for any.
        reference: whether pages give the other models' differences from this one.
    """

    name: str
    preset: str
    model: Any
    text: TextSettings
    training: TrainingSettings
    vocabulary: VocabularySettings = WordPieceSettings()
    batching: SentencesSettings | TokensSettings = SentencesSettings()
    optimizer: AdamSettings = AdamSettings()
    schedule: InverseSqrtSettings | CosineSettings = InverseSqrtSettings()
    objective: TranslationSettings = TranslationSettings()
    label: str | None = None
    colour: str | None = None
    reference: bool | None = None

    def __post_init__(self):
        if self.label is not None and not self.label.strip():
            raise ValueError(
                f"Expected a 'label' with a letter in it. Received: {self.label!r}."
            )
        if self.colour and not re.fullmatch("#[0-9a-f]{6}", self.colour):
            raise ValueError(
                "Expected 'colour' to be # and six digits of 0-9 and a-f, such as "
                f"'#0072b2'. Received: {self.colour!r}."
            )
        half, scaling = self.training.precision, self.optimizer.loss_scaling
        if half == "mixed_float16" and scaling != "dynamic":
            raise ValueError(
                "Expected 'loss_scaling' in [optimizer] to be 'dynamic' where "
                f"'precision' in [training] is {half!r}, in which small gradients are "
                f"rounded to 0. Received: {scaling!r}."
            )

    @property
    def schedule_dim(self) -> int | None:
        """The paper's m, from which the rate follows; None where its peak is given."""
        if isinstance(self.schedule, CosineSettings) or self.schedule.peak is not None:
            return None
        return self.schedule.dim or self.model.embedding_dim

    @property
    def evaluation_size(self) -> int:
        """Sentences a batch of what is measured once the model is trained."""
        tokens = isinstance(self.batching, TokensSettings)
        return SentencesSettings.size if tokens else self.batching.size

    @property
    def identity(self) -> "RunSettings":
        """The settings that change what is computed; names and places do not."""
        resolved: dict[str, Any] = {}
        if self.schedule_dim is not None:
            resolved["dim"] = self.schedule_dim
        unshown: dict[str, Any] = dict.fromkeys(SHOWN_AS)
        return dataclasses.replace(
            self,
            name="",
            **unshown,
            schedule=dataclasses.replace(self.schedule, **resolved),
            text=dataclasses.replace(self.text, source=""),
        )

    def as_tables(self) -> dict[str, Any]:
        """Returns the settings as TOML holds them: one that is None is left out."""
        return {"format": FORMAT, **as_table(self)}

    @classmethod
    def from_tables(cls, tables: Mapping[str, Any], where: str) -> "RunSettings":
        """Reads what `as_tables` returned.

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
        if tables["format"] != FORMAT:
            raise ValueError(
                f"Expected {where} to have format {FORMAT}. Received: "
                f"{tables['format']}, of another version of this package."
            )
        shown_as: dict[str, Any] = {key: tables.get(key) for key in SHOWN_AS}
        try:
            for part in tables["name"].split("."):
                check_name(part, "run")
            return cls(
                name=tables["name"],
                preset=tables["preset"],
                **shown_as,
                model=preset(tables["preset"], **tables["model"]),
                **{
                    table: table_settings(table, tables.get(table, {}))
                    for table in TABLES
                },
            )
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error


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


def differing(
    one: Mapping[str, Any], other: Mapping[str, Any], indifferent: Collection[str] = ()
) -> list[str]:
    """Returns the names whose values differ between two tables made `flat`.

    Args:
        one, other: the tables.
        indifferent: names that do not count.
    """
    return sorted(
        name
        for name in one.keys() | other.keys()
        if name not in indifferent and one.get(name) != other.get(name)
    )
