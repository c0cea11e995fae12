"""A recipe: one TOML file that says what is trained on what, and how."""

import dataclasses
import difflib
import itertools
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reprt.presets import PRESETS, preset
from reprt.settings import TransformerConfig, from_settings

PRECISIONS = ("float32", "mixed_bfloat16")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextSettings:
    """The text, and how it becomes ids.

    Args:
        pair: one of the 14 pairs, by TFDS's name, or another that is laid out alike.
        source: where the text comes from: `"auto"`, `"ted"`, `"embedded"` or a path.
        vocab_size: size aimed at for each WordPiece vocabulary.
        max_tokens: longest input of either side, in tokens.
    """

    pair: str = "pt_to_en"
    source: str = "auto"
    vocab_size: int = 8000
    max_tokens: int = 128

    def __post_init__(self):
        _check_positive(
            "[text]", vocab_size=self.vocab_size, max_tokens=self.max_tokens
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How a model is trained; the defaults are section 3.1 of the paper.

    Args:
        epochs: passes over the training text.
        hours: the training ends here if the epochs have not; an unfinished epoch
            does not count.
        batch_size: sentences a step, over all replicas.
        bucketing: whether sentences of like length share a batch. It is faster, but
            not what was published: batches are then not drawn at random.
        precision: `"float32"`, or `"mixed_bfloat16"` for products of matrices in
            bfloat16, where the hardware has them.
        warmup_steps: the schedule's N_w.
        schedule_dim: the schedule's m; None for the model's own embedding width, as
            the paper has it.
        seed: of the weights, the dropout and the order of the text.
        deterministic: whether TensorFlow is held to operations that give the same
            bits each time.
        checkpoint_minutes: time between checkpoints within an epoch.
        tensorboard: whether to log for TensorBoard as well.
        bleu: whether the trained model is made to search: the prefix loss, and BLEU on
            the test split.
    """

    epochs: int = 10
    hours: float = 12.0
    batch_size: int = 64
    bucketing: bool = False
    precision: str = "float32"
    warmup_steps: int = 4000
    schedule_dim: int | None = None
    seed: int = 0
    deterministic: bool = True
    checkpoint_minutes: float = 5.0
    tensorboard: bool = False
    bleu: bool = True

    def __post_init__(self):
        _check_positive(
            "[training]",
            epochs=self.epochs,
            hours=self.hours,
            batch_size=self.batch_size,
            warmup_steps=self.warmup_steps,
            schedule_dim=1 if self.schedule_dim is None else self.schedule_dim,
        )
        if self.precision not in PRECISIONS:
            raise ValueError(
                f"Expected 'precision' in [training] to be one of {PRECISIONS}. "
                f"Received: {self.precision!r}."
            )
        if not self.checkpoint_minutes >= 0 or self.seed < 0:  # nan is not, either
            raise ValueError(
                "Expected checkpoint_minutes and seed in [training] not to be "
                f"negative. Received: {self.checkpoint_minutes} and {self.seed}."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbeddedSettings:
    """What is different when the embedded corpus stands in for TED.

    Args:
        training: keys of `[training]` that take precedence there.
        model: fields of every model's architecture that do.
        leave_out: names of models that are not trained unless they are asked for.
    """

    training: dict = dataclasses.field(default_factory=dict)
    model: dict = dataclasses.field(default_factory=dict)
    leave_out: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialSettings:
    """What each model is trained with in turn: a run for every combination.

    Args:
        pairs: the pairs of languages, in the order in which they are trained on.
        seeds: the seeds.
        schedules: keys of `[training]`, by the name that the runs get from them.
    """

    pairs: list = dataclasses.field(default_factory=list)
    seeds: list = dataclasses.field(default_factory=list)
    schedules: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        _check_tables(self.schedules, tuple(self.schedules), "[trials.schedules]")
        if self.schedules and not self.seeds:
            raise ValueError(
                "Expected [trials] to have seeds where it has schedules, for a run is "
                "called MODEL.SCHEDULE.SEED; seeds = [0] will do. Received none."
            )
        if not all(isinstance(pair, str) for pair in self.pairs):
            raise ValueError(
                f"Expected the pairs of [trials] to be strings. Received: {self.pairs}."
            )
        for name, values in (("pairs", self.pairs), ("seeds", self.seeds)):
            if len(set(map(str, values))) < len(values):
                raise ValueError(
                    f"Expected the {name} of [trials] to differ. Received: {values}."
                )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Everything that decides one model's training.

    Args:
        name: the run's name within its recipe.
        preset: the model of the paper that it is, or departs from.
        model: the architecture.
        text: the text.
        training: the training.
    """

    name: str
    preset: str
    model: TransformerConfig
    text: TextSettings
    training: TrainingSettings

    @property
    def schedule_dim(self) -> int:
        return self.training.schedule_dim or self.model.embedding_dim

    @property
    def work(self) -> "RunSettings":
        """What is done, whatever it is called and wherever its text was found."""
        training = dataclasses.replace(self.training, schedule_dim=self.schedule_dim)
        text = dataclasses.replace(self.text, source="")
        return dataclasses.replace(self, name="", training=training, text=text)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    """A recipe as it stands in its file.

    Args:
        name: the file's name without its ending.
        settings: the file's tables, with whatever was set over them.
        overrides: what was set over them alone. It holds for every text, and so takes
            precedence over `[embedded]` as well.
    """

    name: str
    settings: Mapping[str, Any]
    overrides: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def text(self) -> TextSettings:
        return from_settings(TextSettings, self.settings.get("text", {}), "[text]")

    @property
    def pairs(self) -> list[str]:
        """The pairs of languages, one after the other."""
        return self.trials.pairs or [self.text.pair]

    @property
    def page(self) -> str:
        """What is written about the runs: the name of a page of `reprt.reports`."""
        return self.settings.get(
            "page", "comparison" if self.trials.seeds else "report"
        )

    @property
    def trials(self) -> TrialSettings:
        return from_settings(
            TrialSettings, self.settings.get("trials", {}), "[trials]"
        )

    def runs(
        self, embedded: bool, only: Sequence[str] = (), pair: str | None = None
    ) -> list[RunSettings]:
        """Returns the resolved settings of the recipe's runs on one pair.

        There is one for each model, or, with `[trials]`, one for each model, schedule
        and seed, named MODEL.SCHEDULE.SEED. Where two schedules come to the same for a
        model, the first stands for both; models of different names are all trained.

        Args:
            embedded: whether the text is the embedded corpus, for which the table
                `[embedded]` takes precedence.
            only: names of the runs to keep, or their beginnings up to a dot: `repe`
                keeps `repe.text.0`. Empty for all.
            pair: the pair; None for the first.

        Raises:
            ValueError: for an unknown or ill-typed key, or a model that is not there.
        """
        table = self.settings.get("embedded", {}) if embedded else {}
        special = from_settings(EmbeddedSettings, table, "[embedded]")
        shared = {
            **self.settings.get("training", {}),
            **_without(special.training, self.overrides.get("training", {})),
        }
        models = self.settings.get("models", {})
        _check_tables(models, tuple(models), "[models]")
        if not models:
            raise ValueError(f"The recipe {self.name!r} has no [models].")
        text = dataclasses.replace(self.text, pair=pair or self.pairs[0])
        seeds = [{"seed": seed} for seed in self.trials.seeds] or [{}]
        schedules = self.trials.schedules or {"": {}}
        by_hand = self.overrides.get("models", {})
        found: dict[tuple[str, RunSettings], RunSettings] = {}
        for seed, (schedule, settings), (name, model) in itertools.product(
            seeds, schedules.items(), models.items()
        ):
            for part in filter(None, (name, schedule)):
                if not re.fullmatch(r"[\w-]+", part):  # of the name of a folder
                    raise ValueError(
                        "Expected the names of models and schedules to be of letters, "
                        f"digits, - and _. Received: {part!r}."
                    )
            parts = (name, schedule, *map(str, seed.values()))
            run = self._run(
                ".".join(filter(None, parts)),
                f"[models.{name}]",
                {**model, **_without(special.model, by_hand.get(name, {}))},
                shared,
                {**settings, **seed},
                text,
            )
            found.setdefault((name, run.work), run)
        runs = list(found.values())
        if len({run.training.deterministic for run in runs}) > 1:
            raise ValueError(
                "Expected 'deterministic' to be the same for all models of a recipe, "
                "since TensorFlow has it for the whole process. Received both."
            )
        for each in (*only, *special.leave_out):
            if not _chosen(runs, [each]):
                raise ValueError(
                    f"The recipe {self.name!r} has the runs "
                    f"{', '.join(run.name for run in runs)}. Asked for: {each}."
                )
        if only:
            return _chosen(runs, only)
        left_out = _chosen(runs, special.leave_out)
        kept = [run for run in runs if run not in left_out]
        if not kept:
            raise ValueError(
                f"Expected 'leave_out' in [embedded] to leave some of the models "
                f"{', '.join(models)}. Received: {special.leave_out}."
            )
        return kept

    def _run(self, name, where, table, shared, trial, text) -> RunSettings:
        overrides = dict(table)
        own = overrides.pop("training", {})
        _check_tables({"training": own}, ("training",), where)
        preset_name = overrides.pop("preset", None)
        if preset_name not in tuple(PRESETS):
            raise ValueError(
                f"Expected 'preset' in {where} to be one of {tuple(PRESETS)}. "
                f"Received: {preset_name!r}."
            )
        model = preset(preset_name, **overrides)
        if text.max_tokens > model.max_length:
            raise ValueError(
                f"Expected 'max_tokens' in [text] to be at most the {model.max_length} "
                f"positions of {where}, its 'max_length'. Received: {text.max_tokens}."
            )
        return RunSettings(
            name=name,
            preset=preset_name,
            model=model,
            text=text,
            training=from_settings(
                TrainingSettings, {**shared, **own, **trial}, f"[training] of {where}"
            ),
        )


def _without(table, others):
    """The entries of a table that another does not have."""
    return {name: value for name, value in table.items() if name not in others}


def _chosen(runs, beginnings):
    """The runs whose names begin so, up to a dot."""
    beginnings = tuple(f"{each}." for each in beginnings)
    return [run for run in runs if f"{run.name}.".startswith(beginnings)]


def load_recipe(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """Reads a recipe.

    Args:
        path: a TOML file with the tables `[text]`, `[training]`, `[trials]`,
            `[models.NAME]` and `[embedded]`, and perhaps with `page`.
        overrides: settings over those of the file, such as `"training.epochs=2"`.

    Raises:
        ValueError: for a file that is missing or not TOML, an unknown table, or an
            override that is not of the form KEY=VALUE.

    Example:

    >>> recipe = load_recipe(Path("experiments/pt_to_en.toml"), ["training.epochs=2"])
    ... # doctest: +SKIP
    >>> [run.name for run in recipe.runs(embedded=True)]  # doctest: +SKIP
    ['baseline', 'repe']
    """
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(
            f"Cannot read the recipe {path}: {error.strerror}. A recipe is a file such "
            "as experiments/pt_to_en.toml."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"The recipe {path} is not valid TOML: {error}.") from error
    by_hand: dict[str, Any] = {}
    for override in overrides:
        _override(settings, override)
        _override(by_hand, override)
    tables = ("text", "training", "trials", "models", "embedded")
    _check_tables(
        {name: table for name, table in settings.items() if name != "page"},
        tables,
        str(path),
    )
    recipe = Recipe(name=path.stem, settings=settings, overrides=by_hand)
    # A mistake anywhere in the file is told before any work is done.
    for embedded in (False, True):
        recipe.runs(embedded)
    return recipe


def _override(settings, override: str):
    key, equals, value = override.partition("=")
    *tables, name = key.strip().split(".")
    if not equals or not name or not tables:
        raise ValueError(
            f"Expected an override such as training.epochs=2. Received: {override!r}."
        )
    table = settings
    for each in tables:
        table = table.setdefault(each, {})
        if not isinstance(table, dict):
            raise ValueError(f"Cannot set {key.strip()}: {each} is not a table.")
    try:
        table[name] = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        table[name] = value.strip()  # a bare word is a string


def _check_tables(settings, known, where):
    for name, table in settings.items():
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1, cutoff=0)
            raise ValueError(
                f"Unknown table [{name}] in {where}; the nearest known one is "
                f"[{nearest[0]}]. Known tables: {', '.join(known)}."
            )
        if not isinstance(table, dict):
            raise ValueError(
                f"Expected {name!r} in {where} to be a table. Received: {table!r}."
            )


def _check_positive(where, **numbers):
    for name, number in numbers.items():
        if not number > 0:
            raise ValueError(
                f"Expected {name!r} in {where} to be positive. Received: {number}."
            )
