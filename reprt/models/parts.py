"""The layers that a Transformer's settings describe.

`side` is that of the stack, "encoder" or "decoder". Other arguments, such as a name and
a dtype, go to the layer.
"""

from reprt.layers import TokenAndPositionEmbedding
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


def embedding(config, side, vocab_size, table=None, *, dtype, name):
    """Returns what embeds one side; a `table` is one that another side has as well.

    >>> from reprt.models import parts, presets
    >>> repe = presets.preset("repe")
    >>> layer = parts.embedding(repe, "encoder", 9, dtype="float32", name="source")
    >>> layer.compute_output_shape((1, 5))
    ((1, 5, 64), (1, 5, 128))
    """
    return TokenAndPositionEmbedding(
        vocab_size,
        config.embedding_dim,
        position(config, side, dtype=dtype, name="positional"),
        embedding_norm(config, side, dtype=dtype, name=config.norm_of(side)),
        scale=config.scale,
        dropout=config.rate("embeddings"),
        token_dropout=config.rate("values"),
        embedding=table,
        dtype=dtype,
        name=name,
    )


def stack(kind, config, positional, **options):
    """Returns an `Encoder` or a `Decoder`; its tokens entered by a `positional`.

    >>> from reprt.layers import Encoder
    >>> from reprt.models import parts, presets
    >>> repe = presets.preset("repe")
    >>> parts.stack(Encoder, repe, parts.position(repe, "encoder")).num_blocks
    2
    """
    return kind(
        num_blocks=config.num_blocks,
        num_heads=config.num_heads,
        key_dim=config.key_dim,
        feed_forward_dim=config.feed_forward_dim,
        value_dim=config.value_dim,
        dropout=config.dropout,
        dropout_places=config.dropout_places,
        norm_place=config.norm_place,
        layer_norm_epsilon=config.layer_norm_epsilon,
        layer_norm_gains=config.layer_norm_gains,
        attention_bias=config.attention_bias,
        query_key_norm=config.query_key_norm,
        activation=config.activation,
        position=None if positional.on_entry else positional,
        **options,
    )
