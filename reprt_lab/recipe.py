"""A recipe: one TOML file that says what is trained on what, and how."""

import itertools
import json
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
from pydantic import Field

from reprt.constants import TEXTS
from reprt.data.corpora.languages import pair_of
from reprt.data.corpora.tables import is_table
from reprt.data.tokenizers.registry import Vocabulary
from reprt.data.tokenizers.wordpiece import WordPieceSettings
from reprt.files import expand_path, read_toml
from reprt.models.presets import PRESETS
from reprt.settings import Settings, Size, check_known
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

Table = dict[str, Any]
# A model's name is a part of MODEL.SCHEDULE.SEED, and names a folder.
ModelName = Annotated[str, Field(pattern=r"^[\w-]{1,64}$")]
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
    "translation",
]
# The folder of such a page holds the folders of several texts.
ON_SEVERAL_TEXTS = ("controls", "families", "positions", "readings", "table1")


class KeysOf:
    """Annotates a table with some keys of a type, which is checked once it is whole."""

    def __init__(self, kind: Any):
        self.kind = kind

    def __get_pydantic_json_schema__(self, schema, handler):
        return handler(pydantic.TypeAdapter(self.kind).core_schema)


class OwnTables(Settings):
    """The tables that hold for all models, or for one."""

    training: Annotated[Table, KeysOf(TrainingSettings)] = {}
    batching: Annotated[Table, KeysOf(BatchingTable)] = {}
    optimizer: Annotated[Table, KeysOf(OptimizerTable)] = {}
    schedule: Annotated[Table, KeysOf(ScheduleTable)] = {}
    objective: Annotated[Table, KeysOf(ObjectiveTable)] = {}


# The tables that every model may change.
OWN_TABLES = (*OwnTables.model_fields, "model")


class ModelTable(OwnTables):
    """A preset, what differs from it, and what differs from the recipe's tables."""

    model_config = pydantic.ConfigDict(extra="allow")

    preset: Preset

    @pydantic.model_validator(mode="before")
    @classmethod
    def _check_keys(cls, values):
        # What names no table is a setting of the model, which the run checks.
        return values


class SmallText(OwnTables):
    """What holds for a text with few training pairs instead of the recipe's tables."""

    pairs: Size
    """The text is small below this many training pairs."""
    model: Table = {}
    """Settings of every model."""


class Trials(Settings):
    """What each model is trained with in turn: a run for every combination."""

    pairs: list[str] = []
    """The pairs of languages, in the order in which they are trained on."""
    seeds: list[int] = []
    """The seeds."""
    schedules: dict[str, Annotated[Table, KeysOf(ScheduleTable)]] = {}
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
    comparisons: list[Annotated[list[str], Field(min_length=2)]] = []
    """The models that `controls` compares: one, and on each text the first of the
    others that was run there."""
    models: dict[str, Look] = {}
    """How the page shows each model."""


class RecipeFile(OwnTables):
    """What a recipe's file holds."""

    text: TextSettings = TextSettings()
    vocabulary: Vocabulary = WordPieceSettings()
    model: Table = {}
    """Settings of every model."""
    models: Annotated[dict[ModelName, ModelTable], Field(min_length=1)]
    small_text: SmallText | None = None
    """What is different for a small text."""
    trials: Trials = Trials()
    page: PageSettings = PageSettings()
    fallback: str | None = None
    """The recipe that is run instead where TED is wanted and not there."""

    @pydantic.model_validator(mode="after")
    def _shows_its_own_models(self):
        names = [*self.page.models, *itertools.chain(*self.page.comparisons)]
        if self.page.reference is not None:
            names.append(self.page.reference)
        for name in names:
            check_known(name, self.models)
        return self


class Recipe(RecipeFile):
    """A recipe's file, and what was set by hand.

    Where a key is set more than once, the last of these counts: the recipe's table,
    that of `[small_text]`, the model's, the trial's, and what was set by hand.
    """

    name: str
    """The file's name without its ending."""
    overrides: list[str] = []
    """What `--set` says."""
    by_hand: Table = {}
    """The same as tables."""

    @pydantic.model_validator(mode="after")
    def _trials_stay(self):
        for override in self.overrides:
            key = override.partition("=")[0].strip()
            if self.trials.seeds and key.endswith("training.seed"):
                raise ValueError(
                    "Expected trials.seeds instead of training.seed, for every run has "
                    "a seed of its own."
                )
            if self.trials.pairs and key == "text.pair":
                raise ValueError(
                    "Expected --pair instead of text.pair, for the recipe has "
                    "trials.pairs."
                )
        return self

    @pydantic.model_validator(mode="after")
    def _own_files_are_one_pair(self):
        if self.text.own_files and len(self.trials.pairs) > 1:
            raise ValueError(
                "Expected one pair of languages for files of your own. Received: "
                f"{', '.join(self.trials.pairs)}."
            )
        return self

    @property
    def pairs(self) -> list[str]:
        return self.trials.pairs or [self.text.pair]

    @property
    def page_name(self) -> str:
        if self.page.name:
            return self.page.name
        if self.trials.seeds:
            return "comparison"
        if self.text.own_files and self.text.side == "both":
            return "translation"
        return "report"

    def is_small(self, train_pairs: int) -> bool:
        """Returns whether `small_text` is for a text of so many training pairs."""
        return (
            self.small_text is not None and train_pairs < self.small_text.pairs
        )

    def runs(
        self,
        only: Sequence[str] = (),
        pair: str | None = None,
        small: bool = False,
    ) -> list[RunSettings]:
        """Returns the settings of the recipe's runs on one pair, or on the first.

        With `small` they are those on a small text.

        There is one for each model, or, with `[trials]`, one for each model, schedule
        and seed, named MODEL.SCHEDULE.SEED. Where two schedules come to the same for a
        model, the first stands for both. `only` keeps runs by the beginnings of their
        names, up to a dot.
        """
        text = self.text.changed(pair=pair or self.pairs[0])
        unique: dict[tuple[str, RunSettings], RunSettings] = {}
        seeds: Sequence[int | None] = self.trials.seeds or [None]
        schedules: Iterable[str | None] = self.trials.schedules or [None]
        for seed in seeds:
            for schedule in schedules:
                for model in self.models:
                    run = self._run(model, schedule, seed, text, small)
                    unique.setdefault((model, run.identity), run)
        runs = list(unique.values())
        if not only:
            return runs
        return select_runs(runs, only, f"The recipe {self.name!r}")

    def _run(
        self,
        model: str,
        schedule: str | None,
        seed: int | None,
        text: TextSettings,
        small: bool,
    ) -> RunSettings:
        name = model
        trial: dict[str, Table] = {}
        if schedule is not None:
            name += f".{schedule}"
            trial["schedule"] = self.trials.schedules[schedule]
        if seed is not None:
            name += f".{seed}"
            trial["training"] = {"seed": seed}
        by_hand = self.by_hand.get("models", {}).get(model, {})
        layers = [
            dict(self),
            dict(self.small_text or {}) if small else {},
            _tables_of_model(dict(self.models[model])),
            trial,
            self.by_hand,
            _tables_of_model(by_hand),
        ]
        tables: dict[str, Table] = {table: {} for table in OWN_TABLES}
        for layer in layers:
            # Epochs and steps both end a run, and the last of either counts.
            if "epochs" in layer.get("training", {}):
                tables["training"].pop("steps", None)
            for table, values in tables.items():
                values.update(layer.get(table, {}))
        settings = {
            "name": name,
            "preset": self.models[model].preset,
            "text": text,
            "vocabulary": self.vocabulary,
            **tables,
        }
        where = f"the run {name} of {self.name}"
        if self.overrides:
            where += f" with --set {' '.join(self.overrides)}"
        return RunSettings.read(settings, where)


def _tables_of_model(values: Table) -> dict[str, Table]:
    """Returns a model's tables; what names none of them is a setting of the model."""
    tables: dict[str, Table] = {"model": {}}
    for key, value in values.items():
        if key in OwnTables.model_fields:
            tables[key] = value
        elif key != "preset":
            tables["model"][key] = value
    return tables


def select_runs(runs: Sequence, prefixes: Sequence[str], where: str) -> list:
    """Returns the runs whose names begin so, up to a dot; each prefix has some."""
    names = set()
    for prefix in prefixes:
        matches = [
            run.name for run in runs if f"{run.name}.".startswith(f"{prefix}.")
        ]
        if not matches:
            raise ValueError(
                f"{where} has the runs {', '.join(run.name for run in runs)}. "
                f"Asked for: {prefix}."
            )
        names.update(matches)
    return [run for run in runs if run.name in names]


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
    tables = _read_tables(path)
    _name_text(tables, source, files, pairs)
    by_hand = _set_overrides(tables, overrides)
    file = RecipeFile.read(tables, str(path))
    # A text that the command names has other languages than the recipe's.
    text_is_named = source is not None or any(files.values())
    text_keys = by_hand.get("text", {})
    if not text_is_named:
        text_keys = tables.get("text", {})
    has_pair = bool(pairs) or "pair" in text_keys
    recipe = Recipe.read(
        {
            **dict(file),
            "text": _placed(file.text, has_pair),
            "name": path.stem,
            "overrides": list(overrides),
            "by_hand": by_hand,
        },
        str(path),
    )
    # A mistake anywhere in the file is reported before any work is done.
    recipe.runs()
    recipe.runs(small=True)
    return recipe


def _read_tables(path: Path) -> Table:
    package_recipes = shipped_recipes()
    place = path if path.is_file() else package_recipes.get(str(path), path)
    try:
        return read_toml(place)
    except OSError as error:
        raise ValueError(
            f"Cannot read the recipe {path}: {error.strerror}. Expected a TOML file or "
            f"one of the package's recipes: {', '.join(package_recipes)}."
        ) from error


def _name_text(
    tables: Table,
    source: str | None,
    files: Mapping[str, Sequence[str] | None],
    pairs: Sequence[str],
):
    """Puts the text that the command names in the place of the recipe's."""
    if source is not None:
        # The files that the recipe names give way to it.
        files = {split: files.get(split) or () for split in FILES}
        _set(tables, ["text", "source"], source)
    for split, names in files.items():
        if names is not None:
            _set(tables, ["text", split], names)
    own_files = any(files.values()) or (source and is_table(source))
    if pairs or own_files:
        _set(tables, ["trials", "pairs"], list(pairs))


def _set_overrides(tables: Table, overrides: Sequence[str]) -> Table:
    """Returns what `--set` says as tables; what no model has goes into `tables`."""
    by_hand: Table = {}
    for override in overrides:
        keys, value = _key_and_value(override)
        _set(by_hand, keys, value)
        if keys[0] not in OWN_TABLES:
            _set(tables, keys, value)
    return by_hand


def _placed(text: TextSettings, has_pair: bool) -> TextSettings:
    """Returns a text with absolute paths and, unless it has one, the files' pair."""
    changes: Table = {"source": _from_here(text.source)}
    for split in FILES:
        changes[split] = [_from_here(name) for name in getattr(text, split)]
    text = text.changed(**changes)
    own_files = text.own_files
    # Files that are missing are named when they are read.
    if has_pair or not own_files or not all(map(os.path.exists, own_files)):
        return text
    return text.changed(pair=pair_of(own_files, text.columns))


def _from_here(place: str) -> str:
    """A path that holds in every folder; a name, such as `"ted"`, stays as it is."""
    if not place or place in TEXTS:
        return place
    path = expand_path(place)
    return str(path.absolute()) if path.exists() else place


def _key_and_value(override: str) -> tuple[list[str], Any]:
    key, equals, value = override.partition("=")
    keys = key.strip().split(".")
    if not equals or len(keys) == 1:
        raise ValueError(
            f"Expected an override such as training.epochs=2. Received: {override!r}."
        )
    try:
        return keys, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        # A bare word is a string.
        return keys, value.strip()


def _set(tables: Table, keys: Sequence[str], value: Any):
    *above, last = keys
    for key in above:
        tables = tables.setdefault(key, {})
        if not isinstance(tables, dict):
            raise ValueError(
                f"Cannot set {'.'.join(keys)}: {key} is not a table."
            )
    tables[last] = value


def schema_text() -> str:
    """Returns the JSON schema of recipes, by which editors complete their keys."""
    schema = RecipeFile.model_json_schema()
    keys: Table = {}
    # The Transformer's have the last word.
    for preset in reversed(PRESETS.values()):
        keys.update(type(preset).model_json_schema()["properties"])
    schema["properties"]["model"]["properties"] = keys
    schema["$defs"]["ModelTable"]["properties"].update(keys)
    return json.dumps(schema, indent=2)
