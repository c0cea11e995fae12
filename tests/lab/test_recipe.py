import json
import pathlib
import re

import pytest

from reprt.layers.blocks import DROPOUT_PLACES
from reprt.layers.embedding_norms import EMBEDDING_NORMS
from reprt.layers.positions import POSITIONS
from reprt.models.presets import PRESETS, preset
from reprt.training.settings import (
    InverseSqrtSettings,
    RunSettings,
    TrainingSettings,
    WordPieceSettings,
)
from reprt_lab import paper
from reprt_lab.command import main
from reprt_lab.recipe import load_recipe, schema_text
from reprt_lab.records import WrittenSettings

RECIPE = """
[vocabulary]
size = 500

[training]
epochs = 3
seed = 7

[models.baseline]
preset = "baseline"

[models.variant]
preset = "repe"
num_blocks = 3
schedule.dim = 128
"""
TRIALS = """
[trials]
seeds = [0, 1]
[trials.schedules]
low.dim = 64
high.dim = 32
[models]
one = { preset = "repe", training.epochs = 3 }
"""
SHIPPED_RECIPES = sorted(
    (pathlib.Path(__file__).parents[2] / "experiments").glob("*.toml")
)


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("path", SHIPPED_RECIPES, ids=lambda path: path.stem)
def test_every_shipped_recipe_is_short_commented_and_resolves(path):
    text = path.read_text()
    assert text.startswith("# ") and len(text.splitlines()) <= 100
    recipe = load_recipe(path)
    assert recipe.runs()
    if recipe.fallback:
        assert (
            load_recipe(pathlib.Path(recipe.fallback)).text.source == "embedded"
        )


def departures(run):
    return WrittenSettings.read(run.as_table(), run.name).departures


def test_the_shipped_comparison_is_the_papers():
    runs = {
        run.name: run for run in load_recipe(pathlib.Path("pt_to_en")).runs()
    }
    for name in ("baseline", "repe"):
        expected = RunSettings(name=name, preset=name, model=preset(name))
        assert runs[name] == expected and departures(runs[name]) == []
    assert runs["baseline"].schedule_dim == 128
    assert runs["repe"].schedule_dim == 64
    equal_schedule = runs["repe-equal-schedule"]
    assert departures(equal_schedule) == ["schedule.dim = 128"]
    table1, figure3 = (
        load_recipe(pathlib.Path(name)) for name in ("table1", "figure3")
    )
    assert set(table1.pairs) == set(paper.TABLE_1) and figure3.pairs == [
        "pt_to_en"
    ]
    for recipe, trials in ((table1, 1), (figure3, 10)):
        assert [run.preset for run in recipe.runs()] == [
            "baseline",
            "repe",
        ] * trials
        for run in recipe.runs():
            assert (run.training.epochs, run.training.hours) == (10, 12)


def test_a_recipe_resolves_into_settings(write):
    recipe = load_recipe(write(RECIPE))
    assert recipe.name == "mine"
    baseline, variant = recipe.runs()
    assert variant == RunSettings(
        name="variant",
        preset="repe",
        model=preset("repe", num_blocks=3),
        vocabulary=WordPieceSettings(size=500),
        schedule=InverseSqrtSettings(dim=128),
        training=TrainingSettings(epochs=3, seed=7),
    )
    # The setting was one model's, not all's.
    assert baseline.schedule.dim is None


@pytest.mark.parametrize("name", PRESETS)
def test_a_run_comes_back_from_its_tables(name):
    is_shared = getattr(PRESETS[name], "shared_embedding", False)
    vocabulary = {"name": "bpe", "shared": True} if is_shared else {}
    tables = {
        "model": {},
        "text": {"max_tokens": 100},
        "vocabulary": vocabulary,
    }
    run = RunSettings.read({"name": "mine", "preset": name, **tables}, "mine")
    assert run.model == PRESETS[name]
    assert RunSettings.read(run.as_table(), "config.toml") == run
    assert RunSettings.model_validate_json(run.model_dump_json()) == run


def test_the_last_of_several_values_counts(write):
    table = '[models.third]\npreset = "repe"\ndropout = 0.2\n'
    text = f"{RECIPE}[model]\ndropout = 0.3\n{table}"
    baseline, variant, third = load_recipe(write(text)).runs()
    assert [run.model.dropout for run in (baseline, variant, third)] == [
        0.3,
        0.3,
        0.2,
    ]
    overrides = ["model.dropout=0.0", "schedule.dim=9", "training.epochs=1"]
    text = text.replace("epochs = 3", "steps = 3")
    for run in load_recipe(write(text), overrides).runs():
        assert (run.model.dropout, run.schedule.dim, run.training.epochs) == (
            0,
            9,
            1,
        )
        assert run.training.steps is None
    model_overrides = [
        "models.third.training.epochs=5",
        "models.third.dropout=0.4",
    ]
    for base_overrides in ([], ["training.steps=3", "model.dropout=0.3"]):
        runs = load_recipe(
            write(text), [*model_overrides, *base_overrides]
        ).runs()
        assert [run.training.steps for run in runs] == [3, 3, None]
        assert [run.model.dropout for run in runs] == [0.3, 0.3, 0.4]


def test_a_text_that_is_named_stands_for_the_recipes_files(write):
    recipe = write(RECIPE + '[text]\ntrain = ["a.tsv"]\n')
    assert load_recipe(recipe).text.train == ("a.tsv",)
    overrides = ['text.test=["e.tsv"]']
    # As the command gives them.
    files = {"train": None, "dev": ("c", "d"), "test": None}
    text = load_recipe(recipe, overrides, source="b.tsv", files=files).text
    assert (text.source, text.train, text.dev) == ("b.tsv", (), ("c", "d"))
    assert text.test == ("e.tsv",)


SMALL_TEXT = """
[small_text]
pairs = 100
training.steps = 7
model.dropout = 0.3
schedule.dim = 16
"""


def test_a_small_text_has_other_settings(write):
    recipe = load_recipe(write(RECIPE + SMALL_TEXT), ["model.dropout=0.4"])
    assert recipe.is_small(99) and not recipe.is_small(100)
    baseline, variant = recipe.runs()
    assert (baseline.training.steps, baseline.schedule.dim) == (None, None)
    baseline, variant = recipe.runs(small=True)
    # The model's own settings and those by hand have the last word.
    assert (baseline.training.steps, baseline.schedule.dim) == (7, 16)
    assert (variant.schedule.dim, variant.model.dropout) == (128, 0.4)
    recipe_by_epochs = load_recipe(
        write(RECIPE + SMALL_TEXT), ["training.epochs=2"]
    )
    [run, _] = recipe_by_epochs.runs(small=True)
    assert (run.training.steps, run.training.epochs) == (None, 2)
    path = write(RECIPE + SMALL_TEXT.replace("dim", "peek"))
    with pytest.raises(ValueError, match="Unknown key 'peek'"):
        load_recipe(path)


def test_the_languages_are_those_of_the_files_unless_they_are_named(
    write, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name in ("a.de", "a.en"):
        (tmp_path / name).touch()
    files = {"train": ("a.de", "a.en")}
    path = write(RECIPE + '[text]\npair = "fr_to_en"\n')
    options = {"pairs": ["pt_to_es"]}
    assert load_recipe(path, files=files).pairs == ["de_to_en"]
    assert load_recipe(path, files=files, **options).pairs == ["pt_to_es"]
    overrides = ["text.pair=az_to_en"]
    assert load_recipe(path, overrides, files=files).pairs == ["az_to_en"]
    # Nor do a recipe's own pairs stand for them.
    table1 = pathlib.Path("table1")
    assert load_recipe(table1, files=files).pairs == ["de_to_en"]
    with pytest.raises(ValueError, match="one pair of languages for files"):
        load_recipe(table1, files=files, pairs=["de_to_en", "pt_to_en"])
    recipe = write(
        RECIPE + '[text]\npair = "fr_to_en"\ntrain = ["a.de", "a.en"]\n'
    )
    assert load_recipe(recipe).pairs == ["fr_to_en"]
    recipe = load_recipe(write(RECIPE + '[text]\ntrain = ["a.de", "a.en"]\n'))
    assert recipe.pairs == ["de_to_en"] and recipe.page_name == "translation"
    assert load_recipe(write(RECIPE)).page_name == "report"


@pytest.mark.parametrize(
    "command, files",
    [
        ("R --train a b --plan", ("a", "b")),
        ("--train a b R", ("a", "b")),
        ("R --train a --plan", ("a",)),
        ("R --train=a --plan", ("a",)),
        ("R --train=a b", ("a", "b")),
        ("R --train a", ("a",)),
        ("R --train a --dev c d", ("a",)),
    ],
)
def test_options_of_files_take_one_or_two(monkeypatch, command, files):
    calls = []
    monkeypatch.setattr(
        "reprt_lab.recipe.load_recipe",
        lambda *arguments: calls.append(arguments),
    )
    monkeypatch.setattr("reprt_lab.job.run_job", lambda *arguments: "a page")
    assert main(["train", *command.split()]) == 0
    assert calls[0][-1]["train"] == files


def test_files_have_names(write):
    with pytest.raises(ValueError, match="train"):
        load_recipe(write(RECIPE), files={"train": ("", "")})


def test_a_folder_does_not_stand_for_the_name_of_a_text(
    write, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name, source in (
        ("embedded", "embedded"),
        ("other", str(tmp_path / "other")),
    ):
        (tmp_path / name).mkdir()
        assert load_recipe(write(RECIPE), source=name).text.source == source


def test_trials_are_named_and_what_comes_to_the_same_is_trained_once(write):
    recipe = load_recipe(write(TRIALS))
    names = [run.name for run in recipe.runs()]
    assert names == ["one.low.0", "one.high.0", "one.low.1", "one.high.1"]
    assert [run.name for run in recipe.runs(["one.low"])] == names[::2]
    with pytest.raises(ValueError, match="one.low.0, .*Asked for: on"):
        recipe.runs(["on"])
    runs = load_recipe(write(TRIALS), ["trials.schedules.high={}"]).runs()
    # RePE's own m is 64 as well.
    assert [run.name for run in runs] == names[::2]


def test_overrides_are_toml_values_or_bare_words(write):
    overrides = (
        "training.epochs=5",
        "training.hours = 0.5",
        "text.source=some folder",
        'text.pair="az_to_en"',
        "models.baseline.dropout=0.2",
        "models.variant.training.seed=1",
    )
    baseline, variant = load_recipe(write(RECIPE), overrides).runs()
    assert baseline.training == TrainingSettings(epochs=5, hours=0.5, seed=7)
    assert (
        baseline.text.source == "some folder"
        and baseline.text.pair == "az_to_en"
    )
    assert baseline.model.dropout == 0.2 and variant.model.dropout == 0.1
    assert variant.training.seed == 1


@pytest.mark.parametrize(
    "lines, message",
    [
        ("[txt]", "mine.toml: Unknown key 'txt'; the nearest .* is 'text'"),
        (
            "[training]\nepoch = 1",
            "'training' in the run repe of mine: .*'epoch'; .*'epochs'",
        ),
        ("[training]\nepochs = 'x'", "'training.epochs' in .* to be .*'x'"),
        ("[model]\nnum_heads = 0", "'model.num_heads' in .* to be .* 0"),
        (
            "[models.x]\npreset = 'repe'\ntraining.epoch = 1",
            "'training' in the run x of mine: .*'epoch'",
        ),
        (
            "[trials]\nseeds = [0]\nschedules.a = {peek = 1}",
            "'schedule' in the run repe.a.0 of mine: .*'peek'",
        ),
        (
            "[training]\nprecision = 'mixed_float16'",
            "'loss_scaling' .*'dynamic' where",
        ),
        (
            "[optimizer]\nname = 'lions'",
            "`name` to be one of .*'lion'.*'lions'",
        ),
        ("[optimizer]\nname = 'lion'\nbeta1 = 0.9", "'beta1'; .* is 'beta_1'"),
        ("[optimizer]\nname = 'lion'\nepsilon = 0.9", "Unknown key 'epsilon'"),
        (
            "[optimizer]\nname = 'sgd'\nmomentum = 1.5",
            "momentum' .*less than 1.*1.5",
        ),
        ("[optimizer]\nclipnorm = 0.0", "clipnorm' .*greater than 0"),
        (
            "[optimizer]\nclipnorm = 1.0\nclipvalue = 1.0",
            "one of clipnorm, global_",
        ),
        (
            "[optimizer]\nuse_ema = true",
            "'use_ema' together with 'ema_overwrite",
        ),
        ("[schedule]\nname = 'cosin'", "`name` to be one of .*'cosin'"),
        ("[schedule]\npeak = 1e-3\ndim = 8", "'schedule' .*'dim' or 'peak'"),
        (
            "[schedule]\nname = 'cosine'\nsteps = 9",
            "more steps than a cosine.*: steps=9",
        ),
        (
            "[objective]\nname = 'translation_and_source'",
            "decoder-only.*'repe'",
        ),
        (
            "[text]\nmax_tokens = 3000",
            "at most the model's 'max_length', 2048.*3000",
        ),
        (
            "[batching]\nname = 'tokens'\nsize = 9",
            "'max_tokens' in \\[text\\], 128",
        ),
        ("[trials]\nschedules.a = {}", "'seeds' where there are 'schedules'"),
        ("[models.x]", "Missing in .*mine.toml: 'models.x.preset'"),
        ("[models.x]\npreset = 'rope'", "'models.x.preset' .*'repe', .*'rope'"),
        ("[models.x]\npreset = 'repe'\nblocks = 1", "'blocks'; .*'num_blocks'"),
        ("[models.'a/b']\npreset = 'repe'", "'models.a/b.*to match pattern"),
        (
            "[models.'a-0.1']\npreset = 'repe'",
            "to match pattern .* Received: 'a-0.1'",
        ),
        (
            "[trials]\nseeds = [0]\nschedules.'a b' = {}",
            "letters, digits, - and _",
        ),
        ("[page.models.rope]", "Unknown key 'rope'; .*'repe'"),
        (
            "[page.models.repe]\ncolour = 'red'",
            "repe.colour' .* to match .*'red'",
        ),
        ("[training", "mine.toml is not valid TOML"),
    ],
)
def test_a_mistake_is_told_when_the_recipe_is_read(write, lines, message):
    base = "" if "[models" in lines else "\n[models.repe]\npreset = 'repe'\n"
    with pytest.raises(ValueError, match=message) as error:
        load_recipe(write(f"{lines}\n{base}"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "override, message",
    [
        ("epochs=2", "Expected an override such as training.epochs=2"),
        ("text.pair.x=2", "Cannot set text.pair.x: pair is not a table"),
        (
            "training.epochs=many",
            "'training.epochs' in the run one.low.0 of mine with --set "
            "training.epochs=many to be a valid integer",
        ),
        ("training.seed=1", "Expected trials.seeds instead of training.seed"),
        (
            "models.one.training.seed=1",
            "Expected trials.seeds instead of training",
        ),
        ("text.pair=az_to_en", "Expected --pair instead of text.pair"),
    ],
)
def test_a_mistake_in_an_override_is_told(write, override, message):
    text = TRIALS + '[text]\npair = "pt_to_en"\n'
    with pytest.raises(ValueError, match=re.escape(message)):
        load_recipe(write(text), [override], pairs=["gl_to_en"])


def test_what_is_no_recipe_is_refused(write):
    with pytest.raises(ValueError, match="Missing in .*'models'"):
        load_recipe(write("[training]\n"))


def test_the_schema_knows_every_key_and_what_it_means():
    schema = json.loads(schema_text())
    tables = {
        name: table.get("properties")
        for name, table in schema["properties"].items()
    }
    assert set(tables["training"]) == set(TrainingSettings.model_fields)
    assert tables["training"]["epochs"]["description"].startswith("Passes over")

    def members(table):
        keys_by_name = {}
        for reference in schema["properties"][table]["anyOf"]:
            definition = reference["$ref"].split("/")[-1]
            keys = schema["$defs"][definition]["properties"]
            keys_by_name[keys["name"]["default"]] = keys
        return keys_by_name

    assert {"warmup_steps", "dim"} < set(members("schedule")["inverse_sqrt"])
    assert {"warmup_steps", "floor"} < set(members("schedule")["cosine"])
    model_keys = schema["$defs"]["ModelTable"]["properties"]
    assert {"preset", "num_blocks", "hidden_dim", "target_positions"} <= set(
        model_keys
    )
    assert "by_hand" not in tables
    assert {"adam", "lion"} < set(members("optimizer"))
    adam = members("optimizer")["adam"]
    assert adam["beta_2"]["default"] == 0.98
    assert adam["clipnorm"]["description"].startswith("The greatest")
    assert "projected" in str(model_keys["output_tying"])
    assert set(model_keys["position"]["enum"]) == set(POSITIONS)
    assert set(model_keys["embedding_norm"]["enum"]) == set(EMBEDDING_NORMS)
    assert {"relu", "silu", "swiglu"} <= set(model_keys["activation"]["enum"])
    assert set(model_keys["dropout_places"]["items"]["enum"]) == set(
        DROPOUT_PLACES
    )
