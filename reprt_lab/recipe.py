"""A recipe: one TOML file that says what is trained on what, and how."""

import itertools
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
from pydantic import Field

from reprt.constants import TEXTS
from reprt.data.tokenizers.registry import Vocabulary
from reprt.data.tokenizers.wordpiece import WordPieceSettings
from reprt.files import expanded, read_toml
from reprt.models.presets import PRESETS
from reprt.settings import Settings, check_known, in_one_line
from reprt.training.settings import (
    FILES,
    BatchingTable,
    ObjectiveTable,
    OptimizerTable,
    Preset,
    RunSettings,
    ScheduleTable,
    TextSettings,
    TrainingSettings,
)

# The recipes that travel with the package: those of experiments/, by a link.
SHIPPED = Path(__file__).parent / "recipes"

Page = Literal[
    "report",
    "comparison",
    "controls",
    "families",
    "figure3",
    "language_model",
    "positions",
    "readings",
    "table1",
]
# The folder of such a page holds the folders of several texts.
ON_SEVERAL_TEXTS = ("controls", "families", "positions", "readings", "table1")


def _keys_of(kind: Any) -> Any:
    """A table with any of a type's keys, checked once all tables are merged."""
    schema = pydantic.TypeAdapter(kind).json_schema()
    references = [each["$ref"] for each in schema.get("anyOf", [])]
    members = [schema["$defs"][each.split("/")[-1]] for each in references] or [
        schema
    ]
    keys: dict[str, Any] = {}
    for member in reversed(
        members
    ):  # the first is the default, and has the last word
        keys |= member["properties"]
    if names := [
        member["properties"]["name"]["const"] for member in members[1:]
    ]:
        del keys["name"]["const"]
        keys["name"]["enum"] = [keys["name"]["default"], *names]
    of_table = {
        "type": "object",
        "properties": keys,
        "additionalProperties": False,
    }
    return Annotated[dict[str, Any], pydantic.WithJsonSchema(of_table)]


class OwnTables(Settings):
    """The tables that hold for all models, or for one."""

    training: _keys_of(TrainingSettings) = {}  # type: ignore[valid-type]
    batching: _keys_of(BatchingTable) = {}  # type: ignore[valid-type]
    optimizer: _keys_of(OptimizerTable) = {}  # type: ignore[valid-type]
    schedule: _keys_of(ScheduleTable) = {}  # type: ignore[valid-type]
    objective: _keys_of(ObjectiveTable) = {}  # type: ignore[valid-type]


# Those that every model may change.
OWN_TABLES = (*OwnTables.model_fields, "model")


class ModelTable(OwnTables):
    """A preset, what differs from it, and what differs from the recipe's tables."""

    model_config = pydantic.ConfigDict(extra="allow")

    preset: Preset

    @pydantic.model_validator(mode="before")
    @classmethod
    def _known(cls, values):
        if isinstance(values, dict):
            usual: Any = PRESETS.get(str(values.get("preset")), PRESETS["repe"])
            known = (*cls.model_fields, *type(usual).model_fields)
            for key in values:
                check_known(key, known)
        return values


class Trials(Settings):
    """What each model is trained with in turn: a run for every combination."""

    pairs: list[str] = []
    """The pairs of languages, in the order in which they are trained on."""
    seeds: list[int] = []
    """The seeds."""
    schedules: dict[str, _keys_of(ScheduleTable)] = {}  # type: ignore[valid-type]
    """Keys of `[schedule]`, by the name that the runs get from them."""

    @pydantic.model_validator(mode="after")
    def _name_the_runs(self):
        if self.schedules and not self.seeds:
            raise ValueError(
                "Expected 'seeds' where there are 'schedules', for a run is called "
                "MODEL.SCHEDULE.SEED; seeds = [0] will do. Received none."
            )
        return self


class Look(Settings):
    """How a page shows a model."""

    label: Annotated[str, Field(min_length=1)] | None = None
    """What it calls the model; by default its name in the recipe."""
    colour: Annotated[str, Field(pattern="^#[0-9a-f]{6}$")] | None = None
    """The model's in pictures, such as `"#0072b2"`; those without one are left out,
    unless none has one."""


class PageSettings(Settings):
    """The page on the runs; nothing here changes what is computed."""

    name: Page | None = None
    """By default `"report"`, or `"comparison"` where there are trials."""
    reference: str | None = None
    """The model from which `families` and `positions` give the others' differences."""
    comparisons: list[
        Annotated[list[str], Field(min_length=2, max_length=2)]
    ] = []
    """The pairs of models that `controls` compares."""
    models: dict[str, Look] = {}
    """How the page shows each model."""


class RecipeFile(OwnTables):
    """What a recipe's file holds."""

    text: TextSettings = TextSettings()
    vocabulary: Vocabulary = WordPieceSettings()
    model: dict[str, Any] = {}
    """Settings of every model."""
    models: Annotated[dict[str, ModelTable], Field(min_length=1)]
    trials: Trials = Trials()
    page: PageSettings = PageSettings()
    fallback: str | None = None
    """The recipe that is run instead where TED is wanted and not there."""


class Recipe(RecipeFile):
    """A recipe's file, and what was set by hand.

    Where a key is set more than once, the last of these counts: the recipe's table, the
    model's, the trial's, and what was set by hand.
    """

    name: str
    """The file's name without its ending."""
    overrides: list[str] = []
    """What `--set` says."""
    by_hand: dict[str, dict[str, Any]] = {}
    """The part of it on tables that models may change, for all models or for one."""

    @pydantic.model_validator(mode="after")
    def _about_its_models(self):
        if dotted := [name for name in self.models if "." in name]:
            raise ValueError(
                "Expected models' names without dots, which part MODEL.SCHEDULE.SEED. "
                f"Received: {', '.join(dotted)}."
            )
        compared = itertools.chain(*self.page.comparisons)
        reference = filter(None, [self.page.reference])
        for each in (*self.page.models, *reference, *compared):
            check_known(each, self.models)
        by_hand = self.by_hand, *self.by_hand.get("models", {}).values()
        if self.trials.seeds and any(
            "seed" in t.get("training", {}) for t in by_hand
        ):
            raise ValueError(
                "Expected trials.seeds instead of training.seed, for every run has a "
                "seed of its own."
            )
        if self.trials.pairs and any(
            _key_and_value(each)[0] == ["text", "pair"]
            for each in self.overrides
        ):
            raise ValueError(
                "Expected --pair instead of text.pair, for the recipe has trials.pairs."
            )
        return self

    @property
    def pairs(self) -> list[str]:
        return self.trials.pairs or [self.text.pair]

    @property
    def page_name(self) -> str:
        return self.page.name or (
            "comparison" if self.trials.seeds else "report"
        )

    def runs(
        self, only: Sequence[str] = (), pair: str | None = None
    ) -> list[RunSettings]:
        """Returns the settings of the recipe's runs on one pair, or on the first.

        There is one for each model, or, with `[trials]`, one for each model, schedule
        and seed, named MODEL.SCHEDULE.SEED. Where two schedules come to the same for a
        model, the first stands for both. `only` keeps runs by the beginnings of their
        names, up to a dot.
        """
        text = self.text.changed(pair=pair or self.pairs[0])
        seeds: list[dict] = [{"seed": seed} for seed in self.trials.seeds] or [
            {}
        ]
        schedules = self.trials.schedules or {"": {}}
        found: dict[tuple[str, RunSettings], RunSettings] = {}
        for seed, (schedule, rates), (name, model) in itertools.product(
            seeds, schedules.items(), self.models.items()
        ):
            trial = {"schedule": rates, "training": seed}
            own = {**dict(model), "model": model.model_extra or {}}
            said = self.by_hand.get("models", {}).get(name, {})
            said = said | {
                "model": {k: said[k] for k in own["model"] if k in said}
            }
            model_table = f"[models.{name}] of {self.name}"
            layers = [  # the last counts
                (self.name, dict(self)),
                (model_table, own),
                (f"[trials] of {self.name}", trial),
                (f"--set of {self.name}", self.by_hand),
                (f"--set models.{name} of {self.name}", said),
            ]
            tables: dict[str, dict[str, Any]] = {
                table: {} for table in OWN_TABLES
            }
            for table in OWN_TABLES:
                for _, layer in layers:
                    tables[table] |= layer.get(table, {})
            for asked in (layer.get("training", {}) for _, layer in layers):
                if {
                    "epochs",
                    "steps",
                } & asked.keys():  # the last of either counts
                    tables["training"]["steps"] = asked.get("steps")
            parts = filter(None, (name, schedule, *map(str, seed.values())))
            settings = {
                "name": ".".join(parts),
                "preset": model.preset,
                "text": text,
                "vocabulary": self.vocabulary,
                **tables,
            }
            try:
                run = RunSettings.model_validate(settings)
            except pydantic.ValidationError as error:
                where = _origin(error, layers) or model_table
                raise ValueError(in_one_line(error, where)) from None
            found.setdefault((name, run.identity), run)
        runs = list(found.values())
        return named(runs, only, f"The recipe {self.name!r}") if only else runs


def _origin(
    error: pydantic.ValidationError,
    layers: Sequence[tuple[str, Mapping[str, Any]]],
) -> str | None:
    """Returns where the key was set that an error is about, or None if unknown."""
    fault = error.errors()[0]
    table, *keys = map(str, fault["loc"] or [""])
    if table not in OWN_TABLES:
        return None
    reason = fault.get("ctx", {}).get("error")
    key = keys[0] if keys else getattr(reason, "key", None)
    if key is not None:
        origins = [
            where for where, layer in layers if key in layer.get(table, {})
        ]
        return origins[-1] if origins else None
    # Keys that contradict one another may stand in several places.
    origins = [where for where, layer in layers if layer.get(table)]
    return origins[0] if len(origins) == 1 else None


def named(runs: Sequence, beginnings: Sequence[str], where: str) -> list:
    """Returns the runs whose names begin so, up to a dot; each beginning has some."""
    for each in beginnings:
        if not any(f"{run.name}.".startswith(f"{each}.") for run in runs):
            raise ValueError(
                f"{where} has the runs {', '.join(run.name for run in runs)}. "
                f"Asked for: {each}."
            )
    begin = tuple(f"{each}." for each in beginnings)
    return [run for run in runs if f"{run.name}.".startswith(begin)]


def shipped_recipes() -> dict[str, Path]:
    """Returns the files of the recipes that travel with the package, by their names."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.toml"))}


def load_recipe(
    path: Path,
    overrides: Sequence[str] = (),
    pairs: Sequence[str] = (),
    source: str | None = None,
    files: Mapping[str, Sequence[str] | None] = {},
) -> Recipe:
    """Reads a recipe from a file, or one of the package by its name.

    The other arguments replace what the file says: `overrides` such as
    `"training.epochs=2"`, and the text's `files` by split. Any mistake in it all is a
    `ValueError` of one line.
    """
    shipped = shipped_recipes()
    try:
        tables = read_toml(
            path if path.is_file() else shipped.get(str(path), path)
        )
    except OSError as error:
        raise ValueError(
            f"Cannot read the recipe {path}: {error.strerror}. Expected a TOML file or "
            f"one of the package's recipes: {', '.join(shipped)}."
        ) from error
    given = {"source": source, **files}
    given = {key: value for key, value in given.items() if value is not None}
    if source is not None:  # in the place of files that the recipe names
        given = dict.fromkeys(FILES, ()) | given
    for key, value in given.items():
        _set(tables, ["text", key], value)
    if pairs:
        _set(tables, ["trials", "pairs"], list(pairs))
    by_hand: dict[str, Any] = {}
    for override in overrides:
        (table, *_), _ = keys = _key_and_value(override)
        if table in (*OWN_TABLES, "models"):
            _set(by_hand, *keys)
        if table not in OWN_TABLES:
            _set(tables, *keys)
    said = RecipeFile.read(tables, str(path))
    text = said.text.changed(
        source=_from_here(said.text.source),
        **{
            name: [*map(_from_here, getattr(said.text, name))] for name in FILES
        },
    )
    own = {"name": path.stem, "overrides": [*overrides], "by_hand": by_hand}
    recipe = Recipe.read({**dict(said), "text": text, **own}, str(path))
    recipe.runs()  # a mistake anywhere in the file is reported before any work is done
    return recipe


def _from_here(place: str) -> str:
    """A path that holds in every folder; a name, such as `"ted"`, stays as it is."""
    if not place or place in TEXTS:
        return place
    path = expanded(place)
    return str(path.absolute()) if path.exists() else place


def _key_and_value(override: str) -> tuple[list[str], Any]:
    key, equals, value = override.partition("=")
    keys = key.strip().split(".")
    if not equals or not all(keys[1:]) or not keys[1:]:
        raise ValueError(
            f"Expected an override such as training.epochs=2. Received: {override!r}."
        )
    try:
        return keys, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return keys, value.strip()  # a bare word is a string


def _set(tables: dict[str, Any], keys: Sequence[str], value: Any):
    *above, last = keys
    for each in above:
        tables = tables.setdefault(each, {})
        if not isinstance(tables, dict):
            raise ValueError(
                f"Cannot set {'.'.join(keys)}: {each} is not a table."
            )
    tables[last] = value


def schema_text() -> str:
    """Returns the JSON schema of recipes, by which editors complete their keys."""
    schema = RecipeFile.model_json_schema()
    fields = {
        name: field
        for usual in reversed(
            PRESETS.values()
        )  # the Transformer's have the last word
        for name, field in type(usual).model_json_schema()["properties"].items()
    }
    schema["properties"]["model"]["properties"] = fields
    schema["$defs"]["ModelTable"]["properties"] |= fields
    return json.dumps(schema, indent=2)
