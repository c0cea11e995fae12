"""Settings that grow, and run folders that were written before they had grown."""

import pytest

from reprt.presets import PRESETS
from reprt.runs.run_settings import (
    FORMAT,
    TABLES,
    RunSettings,
    TextSettings,
    TrainingSettings,
    usual_settings,
)
from reprt.settings import as_table

TABLES_OF_A_RUN = {
    "format": FORMAT,
    "name": "repe.equal.0",
    "preset": "repe",
    "model": {"num_blocks": 1, "decoder_statistics": "prefix"},
    "text": {"pair": "az_to_en", "max_tokens": 64},
    "training": {"epochs": 3, "seed": 7},
}


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
    tables = RunSettings.from_tables(TABLES_OF_A_RUN, "config.toml").as_tables()
    del tables["optimizer"], tables["training"]["precision"], tables["model"]["table"]
    again = RunSettings.from_tables(tables, "config.toml")
    assert again == RunSettings.from_tables(TABLES_OF_A_RUN, "config.toml")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"format": FORMAT + 1}, "config.toml to have format 2.*Received: 3"),
        ({"format": "2"}, "'format' in config.toml to be of type int"),
        ({"training": {"epoch": 1}}, "config.toml: Unknown key 'epoch' in .training"),
        ({"preset": "rope"}, "config.toml: Expected a model named one of .*'rope'"),
        ({"model": {"blocks": 1}}, "config.toml: Unknown key 'blocks'"),
    ],
)
def test_what_cannot_be_read_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        RunSettings.from_tables({**TABLES_OF_A_RUN, **change}, "config.toml")
    missing = {name: TABLES_OF_A_RUN[name] for name in ("format", "name", "model")}
    message = "Missing in config.toml: preset, text, training"
    with pytest.raises(ValueError, match=message):
        RunSettings.from_tables(missing, "config.toml")


def test_the_usual_settings_are_those_of_a_recipe_that_says_nothing():
    tables = usual_settings("repe")
    assert tables["model"] == as_table(PRESETS["repe"])
    assert set(tables) == {"model", *TABLES}
