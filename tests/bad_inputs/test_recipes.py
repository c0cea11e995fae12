"""Recipes that cannot be followed: told when they are read, and no folder is made."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprt_command import main
from reprt.lab.recipe import load_recipe

MODEL = "[models.repe]\npreset = 'repe'\n"
LONG, DEEP = "9" * 400, f"{'[' * 60_000}{']' * 60_000}"


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
                ("training", "seed", "[training]", (4294967296, -1)),
                ("training", "epochs", "[training]", (0, -1, 10**12)),
                ("training", "hours", "[training]", ("nan", "-inf", 0, -1.5)),
                ("training", "checkpoint_minutes", "[training]", ("nan", -1)),
                ("text", "max_tokens", "[text]", (0, 2**21)),
                ("vocabulary", "size", "[vocabulary]", (0, 10**9)),
                ("batching", "size", "[batching]", (0, 10**9)),
                ("optimizer", "epsilon", "[optimizer]", ("nan", "inf", 0, 1e-300)),
                ("optimizer", "beta_1", "[optimizer]", ("nan", 1, -0.1, 0.9999999999)),
                ("schedule", "warmup_steps", "[schedule]", (0, 2**62)),
                ("schedule", "dim", "[schedule]", (0, 2**62)),
                ("models.repe", "epsilon", "the model", ("nan", "inf", 0, 1e-300)),
                ("models.repe", "layer_norm_epsilon", "the model", ("nan", -1)),
                ("models.repe", "dropout", "the model", ("nan", 1, 0.9999999999, -0.1)),
                ("models.repe", "num_heads", "the model", (0, 10**9)),
                ("models.repe", "max_length", "the model", (0, 10**9)),
            ]
            for value in values
        ),
        ("training", f"epochs = {LONG}", "'epochs' in 'training' in "),
        ("training", f"hours = {LONG}", "to have 64 bits"),
        ("training", f"epochs = 0x{'f' * 9999}", "to have 64 bits"),
        ("training", f"epochs = {'9' * 9999}", "is not valid TOML"),
        ("training", f"epochs = {DEEP}", "to be nested at most 20 deep"),
        ("training", f"epochs = {DEEP[59_950:60_050]}", "to be nested at most 20 deep"),
        ("training", "epochs = true", "'epochs' in [training] of [models.repe] to be"),
        ("training", "hours = '1'", "to be of type float"),
        ("training", "steps = 0", "'steps' in [training] to be from 1"),
        ("batching", "name = 'tokens'\nsize = 127", "the 'max_tokens' in [text], 128"),
        ("batching", "name = 'tokens'\nby_length = true", "Unknown key 'by_length'"),
        ("models.repe", "num_blocks = 60000\nkey_dim = 60000", "to have at most 8,589"),
        ("models.repe", "dropout_places = [1]", "item 0 of 'dropout_places'"),
        ("models.repe", "dropout_places = 'embeddings'", "of type tuple[str, ...]"),
        ("models.repe", "name = 'x'", "Unknown key 'name' in model 'repe'"),
        ("models.repe", "preset2 = 'x'", "the nearest known one is"),
        ("models.''", "preset = 'repe'", "name of a model to be of 1 to 64"),
        ("models.'../x'", "preset = 'repe'", "name of a model to be of 1 to 64"),
        ("models.'.x'", "preset = 'repe'", "name of a model to be of 1 to 64"),
        ('models."a\\nb"', "preset = 'repe'", "Received: 'a\\nb'"),
        ("models." + "x" * 65, "preset = 'repe'", "name of a model to be of 1 to 64"),
        ("models.x", "preset = ['repe']", "Expected 'preset' in [models.x]"),
        ("trials", "seeds = [0]\nschedules.'' = {}", "name of a schedule to be of"),
        ("trials", "seeds = [true]", "item 0 of 'seeds' in [trials] to be of type int"),
        ("trials", "seeds = [0, 0]", "the seeds of [trials] to differ"),
        ("trials", "seeds = [4294967296]", "'seed' in [training] to be from"),
        ("trials", "schedules = 1", "'schedules' in [trials] to be a table"),
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
        (b"\0", "is not valid TOML"),
    ],
)
def test_files_that_are_no_recipe(told, content, message):
    said = told(content)
    assert message in said and "mine" in said


@pytest.mark.parametrize(
    "override, message",
    [
        ("training.epochs=2\n[models.x]", "Expected an override such as"),
        ("training.epochs=2\n", "Expected an override such as"),
        ("text.source=\udcff", "Expected a name in UTF-8"),
        (f"training.epochs={LONG}", "to have 64 bits"),
        (f"training.epochs={DEEP}", "to be nested at most 20 deep"),
        ("training.hours=nan", "'hours' in [training] to be from"),
        ("trials.seeds=0", "'seeds' in [trials] to be of type list[int]"),
        ("=1", "Expected an override such as"),
        ("..=1", "Expected an override such as"),
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


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(
    """training.epochs training.seed training.hours training.precision text.pair
    text.source text.max_tokens vocabulary.size batching.size batching.by_length
    batching.name training.steps
    optimizer.name optimizer.beta_1 schedule.dim trials.seeds trials.schedules
    trials.pairs models.repe models.repe.num_blocks models.repe.epsilon models.x
    models.repe.dropout_places models.repe.preset models.repe.training embedded.model
    embedded.training embedded.leave_out""".split()
)


@given(key=KEYS, value=VALUES)
def test_any_value_is_taken_or_refused(tmp_path, key, value):
    path = tmp_path / "mine.toml"
    path.write_text(MODEL)
    try:
        load_recipe(path, [f"{key}={_toml(value)}"]).runs(embedded=False)
    except ValueError as error:
        assert str(error)


def _toml(value):
    """A value as TOML writes it; None as a word."""
    if isinstance(value, dict):
        inner = ", ".join(f"{_toml(name)} = {_toml(v)}" for name, v in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = "".join(f"\\U{ord(s):08x}" for s in value)
        return f'"{escaped}"'
    return str(value)


@given(content=st.binary(max_size=60), after=st.booleans())
def test_any_bytes_are_taken_or_refused(tmp_path, content, after):
    path = tmp_path / "mine.toml"
    path.write_bytes(MODEL.encode() + content if after else content)
    try:
        load_recipe(path)
    except ValueError as error:
        assert str(error)
