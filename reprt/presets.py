"""Every model by name."""

from collections.abc import Mapping
from typing import Any

from reprt.settings import TransformerConfig, from_settings

# Section 3.1 of the paper.
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "repe": {
        "num_blocks": 2,
        "embedding_dim": 64,
        "num_heads": 4,
        "key_dim": 64,
        "value_dim": 64,
        "feed_forward_dim": 256,
        "position": "concat",
        "embedding_norm": "token_norm",
        "value": "tokens",
    },
    "baseline": {
        "num_blocks": 4,
        "embedding_dim": 128,
        "num_heads": 8,
        "key_dim": 128,
        "value_dim": 128,
        "feed_forward_dim": 512,
        "position": "add",
        "embedding_norm": "none",
        "value": "states",
    },
}


def preset(name: str, **overrides) -> TransformerConfig:
    """Returns one of the paper's models, with some settings changed.

    Args:
        name: `"repe"` or `"baseline"`.
        **overrides: fields of `TransformerConfig`.

    Raises:
        ValueError: for an unknown name, or as `TransformerConfig`.

    Example:

    >>> from reprt.presets import preset
    >>> preset("repe", num_blocks=4).num_blocks
    4
    """
    if name not in PRESETS:
        raise ValueError(
            f"Expected a model named one of {tuple(PRESETS)}. Received: {name!r}."
        )
    settings = {**PRESETS[name], **overrides}
    return from_settings(TransformerConfig, settings, f"model {name!r}")
