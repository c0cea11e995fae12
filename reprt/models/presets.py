"""Every model by name, from `presets.toml`."""

from pathlib import Path
from typing import Any

from reprt.constants import check_choice
from reprt.files import read_toml
from reprt.models.settings import (
    DecoderOnlyConfig,
    RecurrentConfig,
    TransformerConfig,
)

# The class of a preset's settings tells its family.
CONFIGS: dict[str, Any] = {
    "transformer": TransformerConfig,
    "decoder_only": DecoderOnlyConfig,
    "recurrent": RecurrentConfig,
}
PRESETS: dict[str, Any] = {}


def preset(name: str, /, **overrides):
    """Returns the settings of a model by name, with some of them changed.

    >>> from reprt.models.presets import preset
    >>> preset("repe", num_blocks=4).num_blocks
    4
    """
    check_choice(PRESETS, preset=name)
    defaults = PRESETS[name]
    return defaults.read({**dict(defaults), **overrides}, f"model {name!r}")


for _name, _table in read_toml(Path(__file__).with_suffix(".toml")).items():
    if "preset" in _table:
        PRESETS[_name] = preset(_table.pop("preset"), **_table)
    else:
        PRESETS[_name] = CONFIGS[_table.pop("family")].read(_table, _name)
