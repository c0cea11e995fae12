"""Settings that grow, and run folders that were written before they had grown."""

import pytest

from reprt.presets import PRESETS, preset
from reprt.runs.run_settings import (
    FORMAT,
    TABLES,
    InverseSqrtSettings,
    RunSettings,
    TextSettings,
    TrainingSettings,
    WordPieceSettings,
    migrated,
    usual_settings,
)
from reprt.settings import as_table

# As format 1 wrote it, before sentences were packed.
FORMAT_1 = {
    "name": "repe.equal.0",
    "preset": "repe",
    "model": {"num_blocks": 1, "normalize": True, "decoder_statistics": "prefix"},
    "text": {"pair": "az_to_en", "vocab_size": 500, "max_tokens": 64},
    "training": {
        "epochs": 3,
        "batch_size": 32,
        "bucketing": True,
        "warmup_steps": 600,
        "schedule_dim": 128,
        "seed": 7,
        "micro_batches": 4,
    },
}


def test_the_first_format_is_migrated():
    run = RunSettings.from_tables(FORMAT_1, "config.toml")
    assert run.model == preset("repe", num_blocks=1, decoder_statistics="prefix")
    assert run.text == TextSettings(pair="az_to_en", max_tokens=64)
    assert run.vocabulary == WordPieceSettings(size=500)
    assert (run.batching.size, run.batching.by_length) == (32, True)
    assert run.schedule == InverseSqrtSettings(warmup_steps=600, dim=128)
    assert run.training == TrainingSettings(epochs=3, seed=7)
    assert "batch_size" in FORMAT_1["training"]  # what was read is left as it was


@pytest.mark.parametrize("name", PRESETS)
def test_settings_survive_their_tables(name):
    run = RunSettings(
        name="mine",
        preset=name,
        model=PRESETS[name],
        text=TextSettings(),
        training=TrainingSettings(),
    )
    tables = run.as_tables()
    assert tables["format"] == FORMAT and "dim" not in tables["schedule"]
    assert RunSettings.from_tables(tables, "config.toml") == run


def test_a_setting_that_is_newer_than_the_tables_gets_its_default():
    tables = RunSettings.from_tables(FORMAT_1, "config.toml").as_tables()
    del tables["optimizer"], tables["training"]["precision"], tables["model"]["table"]
    again = RunSettings.from_tables(tables, "config.toml")
    assert again == RunSettings.from_tables(FORMAT_1, "config.toml")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"format": FORMAT + 1}, "config.toml to have a format from 1 to .*later"),
        ({"format": "2"}, "'format' in config.toml to be of type int"),
        ({"training": {"epoch": 1}}, "config.toml: Unknown key 'epoch' in .training"),
        ({"preset": "rope"}, "config.toml: Expected a model named one of .*'rope'"),
        ({"model": {"blocks": 1}}, "config.toml: Unknown key 'blocks'"),
    ],
)
def test_what_cannot_be_read_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        RunSettings.from_tables({**FORMAT_1, **change}, "config.toml")
    missing = {name: FORMAT_1[name] for name in ("name", "model")}
    message = "Missing in config.toml: preset, text, training"
    with pytest.raises(ValueError, match=message):
        RunSettings.from_tables(missing, "config.toml")


def test_the_usual_settings_are_those_of_a_recipe_that_says_nothing():
    tables = usual_settings("repe")
    assert tables["model"] == as_table(PRESETS["repe"])
    assert set(tables) == {"model", *TABLES}
    assert migrated({"name": "repe", **tables, "format": 2}, "x")["text"] == {
        "pair": "pt_to_en",
        "source": "auto",
        "max_tokens": 128,
    }
