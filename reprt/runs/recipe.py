"""A recipe: one TOML file that says what is trained on what, and how."""

import dataclasses
import itertools
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reprt.presets import PRESETS, preset
from reprt.reading import parse_toml, read_toml
from reprt.runs.run_settings import (
    FORMAT,
    SHOWN_AS,
    RunSettings,
    ShownAs,
    TextSettings,
    TranslationAndSourceSettings,
    check_name,
    table_settings,
)
from reprt.schema import check, check_known, shown
from reprt.settings import from_settings

# The recipes that travel with the package: those of experiments/, by a link.
SHIPPED = Path(__file__).parents[1] / "recipes"

# The tables that each model, and each text, may change.
OWN_TABLES = ("training", "batching", "optimizer", "schedule", "objective")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbeddedSettings:
    """What is different when the embedded corpus stands in for TED.

    Args:
        training, batching, optimizer, schedule, objective: keys of these tables that
            take precedence there.
        model: fields of every model's architecture that do.
        leave_out: names of models that are not trained unless they are asked for.
    """

    training: dict = dataclasses.field(default_factory=dict)
    batching: dict = dataclasses.field(default_factory=dict)
    optimizer: dict = dataclasses.field(default_factory=dict)
    schedule: dict = dataclasses.field(default_factory=dict)
    objective: dict = dataclasses.field(default_factory=dict)
    model: dict = dataclasses.field(default_factory=dict)
    leave_out: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialSettings:
    """What each model is trained with in turn: a run for every combination.

    Args:
        pairs: the pairs of languages, in the order in which they are trained on.
        seeds: the seeds.
        schedules: keys of `[schedule]`, by the name that the runs get from them.
    """

    pairs: list[str] = dataclasses.field(default_factory=list)
    seeds: list[int] = dataclasses.field(default_factory=list)
    schedules: dict[str, dict] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        if self.schedules and not self.seeds:
            raise ValueError(
                "Expected [trials] to have seeds where it has schedules, for a run is "
                "called MODEL.SCHEDULE.SEED; seeds = [0] will do. Received none."
            )
        for name, values in (("pairs", self.pairs), ("seeds", self.seeds)):
            if len(set(values)) < len(values):
                raise ValueError(
                    f"Expected the {name} of [trials] to differ. Received: {values}."
                )


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
        return table_settings("text", self.settings.get("text", {}))

    @property
    def vocabulary(self):
        return table_settings("vocabulary", self.settings.get("vocabulary", {}))

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
            table: {
                **self.settings.get(table, {}),
                **_without(getattr(special, table), self.overrides.get(table, {})),
            }
            for table in OWN_TABLES
        }
        models, by_hand = self._models()
        for what, names in (("model", models), ("schedule", self.trials.schedules)):
            for name in names:
                check_name(name, what)
        text = dataclasses.replace(self.text, pair=pair or self.pairs[0])
        seeds = [{"seed": seed} for seed in self.trials.seeds] or [{}]
        schedules = self.trials.schedules or {"": {}}
        references = [n for n, model in models.items() if model.get("reference")]
        if len(references) > 1:
            raise ValueError(
                "Expected one model of a recipe at most to have reference = true. "
                f"Received: {', '.join(references)}."
            )
        found: dict[tuple[str, RunSettings], RunSettings] = {}
        for seed, (schedule, settings), (name, model) in itertools.product(
            seeds, schedules.items(), models.items()
        ):
            parts = (name, schedule, *map(str, seed.values()))
            run = self._run(
                ".".join(filter(None, parts)),
                f"[models.{name}]",
                {**model, **_without(special.model, by_hand[name])},
                shared,
                {"schedule": settings, "training": seed},
                text,
            )
            found.setdefault((name, run.identity), run)
        runs = list(found.values())
        if len({run.training.deterministic for run in runs}) > 1:
            raise ValueError(
                "Expected 'deterministic' to be the same for all models of a recipe, "
                "since TensorFlow has it for the whole process. Received both."
            )
        for each in (*only, *special.leave_out):
            if not named(runs, [each]):
                raise ValueError(
                    f"The recipe {self.name!r} has the runs "
                    f"{', '.join(run.name for run in runs)}. Asked for: {each}."
                )
        if only:
            return named(runs, only)
        left_out = named(runs, special.leave_out)
        kept = [run for run in runs if run not in left_out]
        if not kept:
            raise ValueError(
                f"Expected 'leave_out' in [embedded] to leave some of the models "
                f"{', '.join(models)}. Received: {special.leave_out}."
            )
        return kept

    def _models(self) -> tuple[dict[str, dict], dict[str, set[str]]]:
        """The tables of the models, each with what it takes from the one it is like.

        With them, for each model, the names of what was set by hand.
        """
        tables = self.settings.get("models", {})
        check(tables, dict[str, dict], "[models]")
        if not tables:
            raise ValueError(f"The recipe {self.name!r} has no [models].")
        models: dict[str, dict] = {}
        by_hand: dict[str, set[str]] = {}
        for name, table in tables.items():
            own, above = dict(table), {}
            by_hand[name] = set(self.overrides.get("models", {}).get(name, {}))
            if "like" in own:
                like = own.pop("like")
                if like not in tuple(models):
                    raise ValueError(
                        f"Expected 'like' in [models.{name}] to be a model above it: "
                        f"{', '.join(models) or 'none'}. Received: {shown(like)}."
                    )
                above = _without(models[like], SHOWN_AS)
                by_hand[name] |= by_hand[like] - own.keys()
            models[name] = {**above, **own}
            for each in OWN_TABLES:
                under, over = above.get(each), own.get(each)
                if isinstance(under, dict) and isinstance(over, dict):
                    models[name][each] = under | over
        return models, by_hand

    def check_overrides(self):
        """Refuses what was set by hand if every run has its own value in its place."""
        models, _ = self._models()
        schedules = self.trials.schedules
        for table, name in (
            (table, name)
            for table in OWN_TABLES
            for name in self.overrides.get(table, {})
        ):
            if (table, name) == ("training", "seed") and self.trials.seeds:
                instead = "trials.seeds"
            elif (
                table == "schedule"
                and schedules
                and all(name in each for each in schedules.values())
            ):
                instead = f"trials.schedules.{next(iter(schedules))}.{name}"
            elif all(name in model.get(table, {}) for model in models.values()):
                instead = f"models.{next(iter(models))}.{table}.{name}"
            else:
                continue
            raise ValueError(
                f"Expected an override that changes a run of the recipe {self.name!r}, "
                f"such as {instead}. Received: {table}.{name}, in whose place every "
                "run has its own."
            )

    def _run(self, name, where, model, shared, trial, text) -> RunSettings:
        overrides = dict(model)
        preset_name = overrides.pop("preset", None)
        if preset_name not in tuple(PRESETS):
            raise ValueError(
                f"Expected 'preset' in {where} to be one of {tuple(PRESETS)}. "
                f"Received: {shown(preset_name)}."
            )
        shown_as = {key: overrides.pop(key) for key in SHOWN_AS if key in overrides}
        check(shown_as, ShownAs, where)
        tables = {}
        for table in OWN_TABLES:
            own = overrides.pop(table, {})
            check(own, dict, f"{table!r} in {where}")
            settings = {**shared[table], **own, **trial.get(table, {})}
            tables[table] = table_settings(table, settings, f"[{table}] of {where}")
        try:
            settings = preset(preset_name, **overrides)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error
        if text.max_tokens > settings.max_length:
            raise ValueError(
                f"Expected 'max_tokens' in [text] to be at most the "
                f"{settings.max_length} positions of {where}, its 'max_length'. "
                f"Received: {text.max_tokens}."
            )
        vocabulary = self.vocabulary
        if getattr(settings, "shared_embedding", False) and not vocabulary.joint:
            raise ValueError(
                f"Expected one vocabulary for the two sides of {where}, which have one "
                "embedding table (shared_embedding): [vocabulary] with name = 'bpe' "
                f"and shared = true. Received: name = {vocabulary.name!r}, one for "
                "each side."
            )
        scored = getattr(settings, "scores_source", False)
        if isinstance(tables["objective"], TranslationAndSourceSettings) and not scored:
            raise ValueError(
                f"The objective of {where}, 'translation_and_source', takes a model "
                "that scores its source, such as 'decoder-only'. Received: "
                f"{preset_name!r}."
            )
        batching = tables["batching"]
        if batching.name == "tokens" and batching.size < text.max_tokens:
            raise ValueError(
                f"Expected 'size' in [batching] of {where} to be at least the "
                f"'max_tokens' in [text], {text.max_tokens}, so that a batch has room "
                f"for any sentence. Received: {batching.size}."
            )
        return RunSettings(
            name=name,
            preset=preset_name,
            model=settings,
            text=text,
            vocabulary=vocabulary,
            **shown_as,
            **tables,
        )


def _without(table, others):
    """The entries of a table that another does not have."""
    return {name: value for name, value in table.items() if name not in others}


def named(runs, beginnings):
    """Returns the runs whose names begin so, up to a dot."""
    beginnings = tuple(f"{each}." for each in beginnings)
    return [run for run in runs if f"{run.name}.".startswith(beginnings)]


def shipped_recipes() -> dict[str, Path]:
    """Returns the files of the recipes that travel with the package, by their names.

    Example:

    >>> "pt_to_en" in shipped_recipes()
    True
    """
    return {path.stem: path for path in sorted(SHIPPED.glob("*.toml"))}


def load_recipe(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """Reads a recipe.

    Args:
        path: the name of a recipe of the package, or a TOML file with the tables
            `[text]`, `[vocabulary]`, `[batching]`, `[optimizer]`, `[schedule]`,
            `[objective]`, `[training]`, `[trials]`, `[models.NAME]` and `[embedded]`,
            and perhaps with `page`. A file comes before a name.
        overrides: settings over those of the file, such as `"training.epochs=2"`.

    Raises:
        ValueError: for an unknown name, a file that is missing or not TOML, an unknown
            table, or an override that is not of the form KEY=VALUE.

    Example:

    >>> recipe = load_recipe(Path("pt_to_en"), ["training.epochs=2"])
    >>> [run.name for run in recipe.runs(embedded=True)]
    ['baseline', 'repe', 'repe-causal']
    """
    shipped = shipped_recipes()
    try:
        settings = read_toml(path if path.is_file() else shipped.get(str(path), path))
    except OSError as error:
        raise ValueError(
            f"Cannot read the recipe {path}: {error.strerror}. Expected a TOML file or "
            f"one of the package's recipes: {', '.join(shipped)}."
        ) from error
    by_hand: dict[str, Any] = {}
    for override in overrides:
        _override(settings, override)
        _override(by_hand, override)
    tables = ("text", "vocabulary", *OWN_TABLES, "trials", "models", "embedded")
    if (received := settings.pop("format", FORMAT)) != FORMAT:
        raise ValueError(
            f"Expected the recipe {path} to have format {FORMAT}, or none. Received: "
            f"{shown(received)}. Other formats have keys in other places. Freeze the "
            "runs again to move them."
        )
    check({"page": "", **settings}["page"], str, f"'page' in {path}")
    for name, table in settings.items():
        if name != "page":
            check_known(name, tables, str(path))
            check(table, dict, f"{name!r} in {path}")
    recipe = Recipe(name=path.stem, settings=settings, overrides=by_hand)
    # A mistake anywhere in the file is reported before any work is done.
    for embedded in (False, True):
        recipe.runs(embedded)
    recipe.check_overrides()
    return recipe


def _override(settings, override: str):
    key, equals, value = override.partition("=")
    *tables, name = key.strip().split(".")
    signs = set(map(unicodedata.category, override))
    if not equals or not name or not tables or signs & {"Cc", "Cs"}:  # one line of text
        raise ValueError(
            "Expected an override such as training.epochs=2. "
            f"Received: {shown(override)}."
        )
    table = settings
    for each in tables:
        table = table.setdefault(each, {})
        if not isinstance(table, dict):
            raise ValueError(
                f"Cannot set {key.strip()}: {each} is not a table. "
                f"Received: {shown(table)}."
            )
    try:
        table[name] = parse_toml(f"value = {value}", override)["value"]
    except ValueError as error:
        if not isinstance(error.__cause__, tomllib.TOMLDecodeError):
            raise
        table[name] = value.strip()  # a bare word is a string
