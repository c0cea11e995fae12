"""Every model by name."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from reprt.settings import TransformerConfig, from_settings

# The class of a preset's settings tells its family. Those of the paper: section 3.1.
PRESETS: dict[str, Any] = {
    "repe": TransformerConfig(
        num_blocks=2,
        embedding_dim=64,
        num_heads=4,
        key_dim=64,
        value_dim=64,
        feed_forward_dim=256,
        position="concat",
        embedding_norm="token_norm",
        value="tokens",
    ),
    "baseline": TransformerConfig(
        num_blocks=4,
        embedding_dim=128,
        num_heads=8,
        key_dim=128,
        value_dim=128,
        feed_forward_dim=512,
        position="add",
        embedding_norm="none",
        value="states",
    ),
}


def preset_settings(name: str):
    """Returns the settings of a model by name.

    Args:
        name: the preset's name.

    Raises:
        ValueError: for an unknown name.
    """
    if name not in tuple(PRESETS):  # any object may be asked for
        raise ValueError(
            f"Expected a model named one of {tuple(PRESETS)}. Received: {name!r}."
        )
    return PRESETS[name]


def preset(name: str, /, **overrides):
    """Returns the settings of a model by name, with some of them changed.

    Args:
        name: `"repe"` or `"baseline"`.
        **overrides: fields of the settings, such as those of `TransformerConfig`.

    Raises:
        ValueError: for an unknown name, or as the class of the settings.

    Example:

    >>> from reprt.presets import preset
    >>> preset("repe", num_blocks=4).num_blocks
    4
    """
    usual = preset_settings(name)
    settings: Mapping[str, Any] = {**dataclasses.asdict(usual), **overrides}
    return from_settings(type(usual), settings, f"model {name!r}")
