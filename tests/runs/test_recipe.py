import dataclasses
import pathlib
import re
import subprocess
import sys

import pytest

from reprt.presets import preset
from reprt.runs.recipe import Recipe, load_recipe
from reprt.runs.run_settings import (
    AdamSettings,
    InverseSqrtSettings,
    RunSettings,
    SentencesSettings,
    TextSettings,
    TrainingSettings,
    WordPieceSettings,
)

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

[embedded.training]
epochs = 1
"""
SHIPPED = sorted((pathlib.Path(__file__).parents[2] / "experiments").glob("*.toml"))


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_recipe_is_commented_and_resolves(path):
    assert path.read_text().startswith("# ")
    recipe = load_recipe(path)
    assert recipe.runs(embedded=False) and recipe.runs(embedded=True)


def test_the_shipped_comparison_is_the_papers():
    (path,) = [path for path in SHIPPED if path.stem == "pt_to_en"]
    runs = {run.name: run for run in load_recipe(path).runs(embedded=False)}
    for name in ("baseline", "repe"):
        assert runs[name].model == preset(name)
        assert runs[name].training == TrainingSettings()
        assert runs[name].text == TextSettings()
        assert runs[name].vocabulary == WordPieceSettings()
        assert runs[name].batching == SentencesSettings()
        assert runs[name].optimizer == AdamSettings()
    assert runs["baseline"].schedule_dim == 128
    assert runs["repe"].schedule_dim == 64
    assert runs["repe-equal-schedule"].schedule_dim == 128


def test_a_recipe_resolves_into_frozen_settings(write):
    recipe = load_recipe(write(RECIPE))
    assert recipe.name == "mine"
    baseline, variant = recipe.runs(embedded=False)
    assert variant == RunSettings(
        name="variant",
        preset="repe",
        model=preset("repe", num_blocks=3),
        text=TextSettings(),
        vocabulary=WordPieceSettings(size=500),
        schedule=InverseSqrtSettings(dim=128),
        training=TrainingSettings(epochs=3, seed=7),
    )
    assert baseline.schedule.dim is None  # one model's setting, not all's
    for settings in (variant, variant.model, variant.text, variant.training, recipe):
        with pytest.raises(dataclasses.FrozenInstanceError):
            settings.name = 1


def test_the_embedded_table_takes_precedence_on_the_embedded_corpus_alone(write):
    recipe = load_recipe(write(RECIPE))
    assert [run.training.epochs for run in recipe.runs(embedded=False)] == [3, 3]
    assert [run.training.epochs for run in recipe.runs(embedded=True)] == [1, 1]
    assert {run.training.seed for run in recipe.runs(embedded=True)} == {7}


def test_a_model_like_another_differs_in_what_it_says_itself(write):
    like = (
        "[models.small]\nlabel = 'small one'\ncolour = '#000000'\nreference = true\n"
        "preset = 'repe'\nnum_blocks = 1\nschedule.dim = 32\n"
        "[models.sharp]\nlike = 'small'\ndropout = 0.3\n"
        "[models.deep]\nlike = 'sharp'\nnum_blocks = 4\nschedule.warmup_steps = 9\n"
    )
    small, sharp, deep = load_recipe(write(like)).runs(embedded=False)
    assert sharp.preset == deep.preset == "repe" and small.reference
    assert sharp.model == dataclasses.replace(small.model, dropout=0.3)
    assert deep.model == dataclasses.replace(sharp.model, num_blocks=4)
    assert sharp.schedule == small.schedule
    # Key by key, in the tables as well.
    assert deep.schedule == dataclasses.replace(small.schedule, warmup_steps=9)
    # How the first one is shown is its own.
    assert not any((sharp.label, sharp.colour, sharp.reference))


def test_what_is_set_by_hand_is_inherited_and_holds_on_the_embedded_corpus(write):
    like = (
        "[models.one]\npreset = 'repe'\n[models.two]\nlike = 'one'\n"
        "[models.three]\nlike = 'one'\ndropout = 0.2\n"
        "[embedded]\nmodel.dropout = 0.0\n"
    )
    runs = load_recipe(write(like), ["models.one.dropout=0.3"]).runs(embedded=True)
    assert [run.model.dropout for run in runs] == [0.3, 0.3, 0.0]


def test_only_keeps_the_named_models(write):
    recipe = load_recipe(write(RECIPE))
    assert [run.name for run in recipe.runs(False, only=["variant"])] == ["variant"]
    with pytest.raises(ValueError, match="baseline, variant.*Asked for: other"):
        recipe.runs(False, only=["other"])


def test_overrides_are_toml_values_or_bare_words(write):
    overrides = (
        "training.epochs=5",
        "training.hours = 0.5",
        "text.source=some folder",
        'text.pair="az_to_en"',
        "models.baseline.dropout=0.2",
        "models.variant.training.seed=1",
    )
    baseline, variant = load_recipe(write(RECIPE), overrides).runs(embedded=False)
    assert baseline.training == TrainingSettings(epochs=5, hours=0.5, seed=7)
    assert baseline.text.source == "some folder" and baseline.text.pair == "az_to_en"
    assert baseline.model.dropout == 0.2 and variant.model.dropout == 0.1
    assert variant.training.seed == 1


@pytest.mark.parametrize(
    "lines, message",
    [
        ("[txt]", "Unknown key 'txt' in .*mine.toml; the nearest .* is 'text'"),
        ("text = 1", "Expected 'text' in .*mine.toml to be a table. Received: 1"),
        ("[training]\nepoch = 1", "Unknown key 'epoch' .*nearest .* is 'epochs'"),
        ("[training]\nepochs = 1.5", "'epochs' .* of type int. Received: 1.5"),
        ("[training]\nepochs = true", "'epochs' .* of type int. Received: True"),
        ("[training]\nepochs = 0", "'epochs' in [training] to be from 1 to"),
        ("[training]\nhours = nan", "'hours' in [training] to be from .* to inf"),
        ("[batching]\nsize = 0", "'size' in [batching] to be from 1 to"),
        ("[training]\nprecision = 'half'", "'precision' .*'mixed_bfloat16'.*'half'"),
        ("[training]\nseed = -1", "'seed' in [training] to be from 0 to 4294967295"),
        ("[schedule]\ndim = 0", "'dim' in [schedule] to be from 1 to"),
        ("[schedule]\nname = 'cosin'", "'name' in [schedule] .* one of .*'cosin'"),
        ("[optimizer]\nbeta_2 = 1.0", "'beta_2' in [optimizer] .* from 0 to 0.9999999"),
        ("[optimizer]\nloss_scaling = 'x'", "'loss_scaling' .*'dynamic'.*'x'"),
        ("[objective]\nlabel_smoothing = 1.0", "'label_smoothing' in [objective] to"),
        ("[objective]\nalpha = 0.1", "Unknown key 'alpha' in [objective]"),
        (
            "[objective]\nname = 'translation_and_source'",
            "objective of [models.repe].* scores its source.*Received: 'repe'",
        ),
        ("[optimizer]\nname = 'adamw'\nweight_decay = -1", "'weight_decay' .* 0 to 1"),
        ("[training]\nprecision = 'mixed_float16'", "'loss_scaling' .*'dynamic' where"),
        ("[training]\naverage = -1", "'average' in [training] to be from 0"),
        ("[training]\nkeep_every = 5", "'average' .* at least 1 where .* and 5"),
        ("[schedule]\npeak = 0.0", "'peak' in [schedule] to be from"),
        ("[schedule]\npeak = 1e-3\ndim = 8", "'dim' or 'peak' in [schedule]"),
        ("[schedule]\nname = 'cosine'\nfloor = 1e-3", "'floor' .* from 0 to 0.0006"),
        ("[schedule]\nname = 'cosine'\nsteps = 2000", "'steps' .* to be from 2001"),
        ("[schedule]\nname = 'cosine'\ndim = 8", "Unknown key 'dim'"),
        ("[training]\nbatch_size = 4", "Unknown key 'batch_size' in [training]"),
        ("[training]\ncheckpoint_minutes = nan", "'checkpoint_minutes' .* 0 to inf"),
        ("[text]\nmax_tokens = 3000", "at most the 2048 .* 'max_length'.*: 3000"),
        ("[trials]\nschedules.a = {}", "[trials] to have seeds where it has sched"),
        ("[embedded]\nleave_out = ['rope']", "has the runs repe. Asked for: rope"),
        ("[embedded]\nleave_out = ['repe']", "'leave_out' .* to leave some .* repe"),
        (
            "[models.a]\npreset = 'repe'\nreference = true\n"
            "[models.b]\npreset = 'repe'\nreference = true",
            "one model of a recipe at most to have reference = true.*: a, b",
        ),
        ("[models.a]\npreset = 'repe'\nreference = 1", "'reference' .*type bool"),
        (
            "[models.a]\npreset = 'repe'\ntraining.deterministic = false\n"
            "[models.b]\npreset = 'repe'",
            "'deterministic' to be the same for all",
        ),
        ("[vocabulary]\nsiz = 1", "Unknown key 'siz' .*is 'size'"),
        ("[text]\npair = 1", "'pair' in [text] to be of type str"),
        ("[embedded]\nepochs = 1", "Unknown key 'epochs' in [embedded]"),
        ("[embedded.training]\nepoch = 1", "Unknown key 'epoch'"),
        ("[models.x]", "'preset' in [models.x] to be one of .*Received: None"),
        ("[models.x]\npreset = 'rope'", "'preset' in [models.x] .*Received: 'rope'"),
        ("[models.x]\npreset = []", "'preset' in [models.x] .*Received: []"),
        ("[models.x]\nlike = 'y'", "'like' in [models.x] .* above it: none.*'y'"),
        (
            "[models.y]\npreset = 'repe'\n[models.x]\nlike = ['y']",
            "'like' in [models.x] to be a model above it: y. Received: ['y']",
        ),
        ("[models.x]\npreset = 'repe'\nblocks = 1", "'blocks' .*'num_blocks'"),
        ("[models.x]\npreset = 'repe'\nnum_blocks = '1'", "'num_blocks' .*type int"),
        ("[models.x]\npreset = 'repe'\ntraining = 1", "'training' in [models.x] to be"),
        ("[models.x]\npreset = 'repe'\ntraining.epoch = 1", "'epoch' .*[models.x]"),
        ("[models]\nx = 1", "Expected 'x' in [models] to be a table"),
        ("[models.'a/b']\npreset = 'repe'", "letters, digits, - and _"),
        ("[training", "mine.toml is not valid TOML"),
    ],
)
def test_a_mistake_is_told_when_the_recipe_is_read(write, lines, message):
    base = "" if "[models" in lines else "\n[models.repe]\npreset = 'repe'\n"
    pattern = message.replace("[", r"\[").replace("]", r"\]")
    with pytest.raises(ValueError, match=pattern):
        load_recipe(write(f"{lines}\n{base}"))


@pytest.mark.parametrize(
    "override, message",
    [
        ("epochs=2", "Expected an override such as training.epochs=2"),
        ("training.epochs", "Expected an override such as training.epochs=2"),
        ("training.=2", "Expected an override such as training.epochs=2"),
        ("training.epochs.x=2", "Cannot set training.epochs.x: epochs is not a table"),
        ("trainin.epochs=2", "nearest known one is 'training'"),
        ("training.epochs=many", "'epochs' in [training]"),
        ("models.other.num_blocks=2", "'preset' in [models.other]"),
    ],
)
def test_a_mistake_in_an_override_is_told(write, override, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        load_recipe(write(RECIPE), [override])


@pytest.mark.parametrize(
    "override, instead",
    [
        ("training.seed=7", "trials.seeds"),
        ("schedule.dim=9", "trials.schedules.low.dim"),
        ("training.epochs=2", "models.one.training.epochs"),
    ],
)
def test_an_override_that_changes_no_run_is_refused(write, override, instead):
    path = write(
        "[trials]\nseeds = [0]\n[trials.schedules]\nlow.dim = 64\nhigh.dim = 32\n"
        "[models.one]\npreset = 'repe'\ntraining.epochs = 3\n"
    )
    with pytest.raises(ValueError, match=re.escape(f"such as {instead}. Received: ")):
        load_recipe(path, [override])
    load_recipe(path, ["schedule.warmup_steps=9", "training.precision=mixed_bfloat16"])


def test_a_recipe_without_models_or_without_a_file_is_refused(write, tmp_path):
    with pytest.raises(ValueError, match="has no .models"):
        load_recipe(write("[training]\n"))
    for path in (tmp_path / "absent.toml", tmp_path):
        with pytest.raises(ValueError, match="Cannot read the recipe"):
            load_recipe(path)
    (tmp_path / "latin.toml").write_bytes("# é".encode("latin-1"))
    with pytest.raises(ValueError, match="latin.toml to be UTF-8"):
        load_recipe(tmp_path / "latin.toml")


def test_a_mistake_is_told_before_anything_of_the_training_is_loaded(write):
    script = (
        "import sys\n"
        "from reprt.cli import main\n"
        f"assert main(['train', {str(write('[txt]'))!r}]) == 2\n"
        "print({'tensorflow_text', 'reprt.training.trainer'} & set(sys.modules))"
    )
    output = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert output == "set()\n"


def test_recipes_can_be_made_without_a_file():
    recipe = Recipe(name="mine", settings={"models": {"repe": {"preset": "repe"}}})
    (run,) = recipe.runs(embedded=False)
    assert run.model == preset("repe") and run.text == TextSettings()


MODEL = '[models.baseline]\npreset = "baseline"\n'


def test_what_is_set_by_hand_holds_for_the_embedded_corpus_too(write):
    path = write(f"{MODEL}[embedded.training]\nepochs = 7\nseed = 3")
    plain, changed = load_recipe(path), load_recipe(path, ["training.epochs=2"])
    assert plain.runs(embedded=True)[0].training.epochs == 7
    assert changed.runs(embedded=True)[0].training.epochs == 2
    assert changed.runs(embedded=True)[0].training.seed == 3
    path = write(f"{MODEL}[embedded.model]\ndropout = 0.0\nnum_blocks = 1")
    changed = load_recipe(path, ["models.baseline.dropout=0.3"])
    assert load_recipe(path).runs(embedded=True)[0].model.dropout == 0.0
    assert changed.runs(embedded=True)[0].model.dropout == 0.3
    assert changed.runs(embedded=True)[0].model.num_blocks == 1


def test_what_is_alike_under_two_names_is_trained_twice_but_not_in_two_schedules(write):
    same = '[models.mine]\npreset = "baseline"\n'
    trials = "[trials]\nseeds = [0]\nschedules.a = {}\nschedules.b.dim = 128"
    runs = load_recipe(write(MODEL + same + trials)).runs(embedded=False)
    assert [run.name for run in runs] == ["baseline.a.0", "mine.a.0"]


def test_models_left_out_on_the_embedded_corpus_can_be_asked_for(write):
    other = '[models.other]\npreset = "repe"\n[embedded]\nleave_out = ["other"]'
    recipe = load_recipe(write(MODEL + other))
    assert [run.name for run in recipe.runs(embedded=False)] == ["baseline", "other"]
    assert [run.name for run in recipe.runs(embedded=True)] == ["baseline"]
    assert [run.name for run in recipe.runs(True, only=["other"])] == ["other"]
