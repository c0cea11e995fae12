"""Recipes that cannot be followed: told when they are read, and no folder is made."""

import pytest

from reprt.lab.recipe import load_recipe
from reprt_command import main

MODEL = "[models.repe]\npreset = 'repe'\n"


@pytest.fixture
def told(tmp_path, capsys):
    """A function that gives a recipe to the command; returns what it complained of."""

    def told(content, *more):
        path = tmp_path / "mine.toml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        out = tmp_path / "out"
        assert main(["train", str(path), "--out", str(out), *more]) == 2
        assert not out.exists()
        return capsys.readouterr().err

    return told


@pytest.mark.parametrize(
    "table, entry, message",
    [
        *(
            (table, f"{key} = {value}", f"Expected '{key}' in {where} to be from ")
            for table, key, where, values in [
                ("training", "seed", "[training]", (-1,)),
                ("training", "epochs", "[training]", (0,)),
                ("training", "hours", "[training]", ("nan", 0)),
                ("training", "checkpoint_minutes", "[training]", ("nan", -1)),
                ("text", "max_tokens", "[text]", (0,)),
                ("vocabulary", "size", "[vocabulary]", (0,)),
                ("batching", "size", "[batching]", (0,)),
                ("optimizer", "epsilon", "[optimizer]", ("nan", 0)),
                ("optimizer", "beta_1", "[optimizer]", ("nan", 1)),
                ("schedule", "warmup_steps", "[schedule]", (0,)),
                ("models.repe", "dropout", "the model", ("nan", 1, -0.1)),
                ("models.repe", "num_heads", "the model", (0,)),
            ]
            for value in values
        ),
        ("training", "epochs = true", "'epochs' in [training] of [models.repe] to be"),
        ("training", "hours = '1'", "to be of type float"),
        ("training", "steps = 0", "'steps' in [training] to be from 1"),
        ("batching", "name = 'tokens'\nsize = 127", "the 'max_tokens' in [text], 128"),
        ("batching", "name = 'tokens'\nby_length = true", "Unknown key 'by_length'"),
        ("models.repe", "dropout_places = 'embeddings'", "of type tuple[str, ...]"),
        ("models.repe", "name = 'x'", "Unknown key 'name' in model 'repe'"),
        ("models.repe", "preset2 = 'x'", "the nearest known one is"),
        ("models.''", "preset = 'repe'", "name of a model to be of 1 to 64"),
        ("trials", "seeds = [0]\nschedules.'' = {}", "name of a schedule to be of"),
        ("trials", "seeds = [true]", "item 0 of 'seeds' in [trials] to be of type int"),
        ("trials", "seeds = [0, 0]", "the seeds of [trials] to differ"),
        ("embedded", "leave_out = [['repe']]", "item 0 of 'leave_out' in [embedded]"),
        ("embedded.model", "epsilon = nan", "'epsilon' in the model to be from"),
        ("embedded.training", "seed = -1", "'seed' in [training] to be from"),
        ("text", "paiir = 'x'", "the nearest known one is 'pair'"),
        ("txet", "", "the nearest known one is 'text'"),
    ],
)
def test_what_a_recipe_may_not_say(told, table, entry, message):
    # A table of the model's is written where the model is.
    model = MODEL + entry if table == "models.repe" else f"{MODEL}[{table}]\n{entry}"
    said = told(f"{model}\n")
    assert message in said and len(said) < 1000 and said.count("\n") == 1


@pytest.mark.parametrize(
    "content, message",
    [
        (f"page = ['x']\n{MODEL}", "'page' in "),
        (f"training = 1\n{MODEL}", "'training' in "),
        (f"format = 1\n{MODEL}", "to have format 2"),
        (f"{MODEL}{MODEL}", "is not valid TOML"),
        (b"\xff\xfe[", "to be UTF-8"),
        (b"", "has no [models]"),
    ],
)
def test_files_that_are_no_recipe(told, content, message):
    said = told(content)
    assert message in said and "mine" in said


@pytest.mark.parametrize(
    "override, message",
    [
        ("training.hours=nan", "'hours' in [training] to be from"),
        ("trials.seeds=0", "'seeds' in [trials] to be of type list[int]"),
        ("=1", "Expected an override such as"),
    ],
)
def test_what_may_not_be_set_by_hand(told, override, message):
    assert message in told(MODEL, "--set", override)


def test_the_ends_of_the_ranges_are_allowed(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        f"{MODEL}[training]\nseed = 4294967295\nhours = inf\ncheckpoint_minutes = inf\n"
        "[optimizer]\nbeta_1 = 0\n[batching]\nsize = 1\n"
    )
    (run,) = load_recipe(path).runs(embedded=False)
    assert run.training.seed == 2**32 - 1
