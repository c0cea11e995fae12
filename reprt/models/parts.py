"""The layers that a Transformer's settings describe.

`side` is that of the stack, "encoder" or "decoder". Other arguments, such as a name and
a dtype, go to the layer.
"""

from reprt.layers.embedding_norms import EMBEDDING_NORMS
from reprt.layers.positions import POSITIONS


def position(config, side, **options):
    """Returns the layer of the setting `position`.

    >>> from reprt.models import parts, presets
    >>> parts.position(presets.preset("repe"), "encoder").table
    'tutorial'
    """
    kind = POSITIONS[config.position]
    table = {"table": config.table, "max_length": config.longest_sequence}
    heads = {"num_heads": config.num_heads}
    width = {"dim": config.position_dim}
    arguments = {
        "concat": {**table, **width},
        "add": table,
        "relative": {**heads, "both_directions": side == "encoder"},
        "alibi": heads,
        "untied": {**heads, "key_dim": config.key_dim, **table, **width},
    }
    return kind(**arguments.get(config.position, {}), **options)


def embedding_norm(config, side, **options):
    """Returns the layer of a side's `embedding_norm`, or None for "none".

    >>> from reprt.models import parts, presets
    >>> parts.embedding_norm(presets.preset("repe"), "encoder").statistics
    'sequence'
    """
    name = config.norm_of(side)
    kind = EMBEDDING_NORMS[name]
    arguments = {
        "token_norm": {
            "statistics": getattr(config, f"{side}_statistics"),
            "epsilon": config.epsilon,
        },
        "rms": {"epsilon": config.epsilon},
    }
    if kind is None:
        return None
    return kind(**arguments.get(name, {}), **options)
