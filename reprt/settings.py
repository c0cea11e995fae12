"""What distinguishes one model from another."""

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from reprt.constants import (
    DROPOUT_PLACES,
    EMBEDDING_NORMS,
    NORM_PLACES,
    SCALES,
    STATISTICS,
    TABLES,
    TUTORIAL_DROPOUT,
)
from reprt.schema import check, check_choice, check_known, check_range, shown

# Of float32: the smallest number that is not rounded to 0, and the largest below 1.
TINY, BELOW_ONE = 2.0**-126, 1 - 2.0**-24
WIDEST, LONGEST = 2**16, 2**20
LARGEST = 2**33  # parameters: with Adam, what the largest accelerators hold
CHOICES = {
    "embedding_norm": EMBEDDING_NORMS,
    "encoder_statistics": STATISTICS,
    "decoder_statistics": STATISTICS,
    "position": ("concat", "add"),
    "value": ("tokens", "states"),
    "scale": SCALES,
    "table": TABLES,
    "norm_place": NORM_PLACES,
    "final_norm": ("none", "decoder", "both"),
    "activation": ("relu", "gelu"),
    "output_tying": ("none", "tied", "projected"),
    "target_positions": ("continue", "restart"),
}
RECURRENT_CHOICES = {
    "attention": ("additive", "multiplicative"),
    "output_tying": ("none", "tied"),
}
SIZES = (
    "num_blocks",
    "embedding_dim",
    "num_heads",
    "key_dim",
    "value_dim",
    "feed_forward_dim",
)
# What the settings of a model and of its blocks have in common.
OF_BLOCKS = (
    "num_blocks",
    "num_heads",
    "key_dim",
    "value_dim",
    "feed_forward_dim",
    "dropout",
    "dropout_places",
    "norm_place",
    "layer_norm_epsilon",
    "attention_bias",
    "query_key_norm",
    "activation",
)
EPSILONS = ("epsilon", "layer_norm_epsilon")


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockSettings:
    """What the Transformers of all families have: blocks, and embeddings before them.

    Args:
        num_blocks: blocks of each stack [N].
        embedding_dim: width of the token embedding, even [m].
        num_heads: attention heads [p].
        key_dim: width of each head's query and key [r].
        value_dim: width of each head's value [q].
        feed_forward_dim: width of the feed-forward network's hidden layer [s].
        dropout: rate of dropout.
        dropout_places: where it acts, some of `"embeddings"` (with their positions),
            `"attention_weights"`, `"attention_output"` and `"feed_forward_output"`.
            All but the third by default, as in TensorFlow's tutorial.
        scale: factor on the embeddings: `"sqrt"` of m as in TensorFlow's tutorial,
            `"inverse_sqrt"` as eq. 28 prints, or `"none"`.
        table: sinusoids as in the `"tutorial"` or as the `"paper"` prints them, or
            positions that are `"learned"`.
        max_length: longest sequence of either side, in tokens.
        norm_place: LayerNormalization `"after"` each residual sum or `"before"` each
            sublayer.
        layer_norm_epsilon: LayerNormalization's.
        attention_bias: whether attention's projections have biases.
        query_key_norm: whether each head's queries and keys have length 1, and a
            learnt scale in the place of 1 / sqrt(key_dim).
        activation: the feed-forward network's, `"relu"` or `"gelu"`.

    Raises:
        ValueError: for a size that is not positive, an unknown choice, or settings
            that contradict one another; the message gives the reason.
    """

    num_blocks: int
    embedding_dim: int
    num_heads: int
    key_dim: int
    value_dim: int
    feed_forward_dim: int
    dropout: float = 0.1
    dropout_places: tuple[str, ...] = TUTORIAL_DROPOUT
    scale: str = "sqrt"
    table: str = "tutorial"
    max_length: int = 2048
    norm_place: str = "after"
    layer_norm_epsilon: float = 1e-3
    attention_bias: bool = True
    query_key_norm: bool = False
    activation: str = "relu"

    def __post_init__(self):
        sizes = {name: getattr(self, name) for name in SIZES}
        check_range("the model", 1, WIDEST, **sizes)
        check_range("the model", 1, LONGEST, max_length=self.max_length)
        check_range("the model", 0, BELOW_ONE, dropout=self.dropout)
        epsilons = {name: vars(self)[name] for name in EPSILONS if name in vars(self)}
        check_range("the model", TINY, 1 / TINY, **epsilons)
        _check_weights(self._weights, sizes)
        _check_choices(self, CHOICES)
        if self.embedding_dim % 2:
            raise ValueError(
                "The sinusoids have sine and cosine halves, so `embedding_dim` must be "
                f"even. Received: embedding_dim={self.embedding_dim}."
            )
        if not set(self.dropout_places) <= set(DROPOUT_PLACES):
            raise ValueError(
                f"Expected `dropout_places` to be some of {DROPOUT_PLACES}. "
                f"Received: dropout_places={self.dropout_places}."
            )
        if self.dropout and not self.dropout_places:
            raise ValueError(
                f"A dropout of {self.dropout} acts nowhere if dropout_places is empty: "
                "name places, or set dropout=0."
            )

    @property
    def of_blocks(self) -> dict[str, Any]:
        """What each stack of blocks takes."""
        return {name: getattr(self, name) for name in OF_BLOCKS}

    @property
    def _weights(self) -> int:
        """How many numbers the blocks and the table of positions have, about."""
        attention = 2 * self.num_heads * (self.key_dim + self.value_dim)
        block = self.width * (attention + 2 * self.feed_forward_dim)
        return self.num_blocks * block + self.max_length * self.embedding_dim

    @property
    def width(self) -> int:
        """Width of the states."""
        return self.embedding_dim


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransformerConfig(BlockSettings):
    """An encoder-decoder Transformer; the paper's symbols are in brackets.

    The paper's three changes are `position`, `embedding_norm` (with its statistics)
    and `value`: 2 × 2 × 2 settings of the same code.

    Args:
        position: `"concat"` puts positions beside the tokens, making states 2m wide;
            `"add"` adds them.
        embedding_norm: what the embeddings of both sides go through, `"token_norm"`,
            `"rms"` (each divided by its own root mean square) or `"none"`.
        encoder_statistics: what the source's TokenNorm runs over, `"sequence"` or
            `"prefix"`.
        decoder_statistics: the same for the target; `"sequence"`, as published, lets
            a position see statistics of later tokens, `"prefix"` does not.
        padding_in_statistics: whether padding rows count among a sequence's tokens.
            A sentence's result then depends on how far its batch was padded.
        value: what attention weighs: `"tokens"`, the (normalised) embeddings, or
            `"states"`, the key's own sequence.
        epsilon: that of the norm of embeddings.
        final_norm: which stacks of blocks end with a LayerNormalization of their own
            where norms stand before sublayers: `"none"`, `"decoder"` or `"both"`.
        output_tying: `"none"` for an output layer of its own. With `"tied"` its matrix
            is the target's embedding table, without a bias; with `"projected"` a
            matrix (no bias) takes the states to the embedding's width before that.
        shared_embedding: whether one table embeds both sides, which then have one
            vocabulary.
        **settings: those of `BlockSettings`; `num_blocks` holds for the encoder and
            for the decoder.

    Raises:
        ValueError: as `BlockSettings`.

    Example:

    >>> from reprt.presets import preset
    >>> repe = preset("repe", decoder_statistics="prefix")
    >>> repe.position, repe.value, repe.num_blocks
    ('concat', 'tokens', 2)
    """

    position: str
    embedding_norm: str
    value: str
    encoder_statistics: str = "sequence"
    decoder_statistics: str = "sequence"
    padding_in_statistics: bool = False
    epsilon: float = 1e-6
    final_norm: str = "none"
    output_tying: str = "none"
    shared_embedding: bool = False

    def __post_init__(self):
        super().__post_init__()
        if self.final_norm != "none" and self.norm_place == "after":
            raise ValueError(
                "With norm_place='after' each block ends with a norm, and final_norm="
                f"{self.final_norm!r} would be a second one: leave it at 'none', or "
                "set norm_place='before'."
            )
        if self.output_tying == "tied" and self.position == "concat":
            raise ValueError(
                "output_tying='tied' multiplies states by the embedding table, and "
                "position='concat' makes states twice as wide as embeddings: set "
                "output_tying='projected', or position='add'."
            )
        statistics = (self.encoder_statistics, self.decoder_statistics)
        if self.embedding_norm != "token_norm":
            if "prefix" in statistics or self.padding_in_statistics:
                raise ValueError(
                    "Statistics are those of a TokenNorm, and embedding_norm="
                    f"{self.embedding_norm!r} has none: leave encoder_statistics, "
                    "decoder_statistics and padding_in_statistics at their defaults, "
                    "or set embedding_norm='token_norm'."
                )
            if self.embedding_norm == "none" and self.epsilon != type(self).epsilon:
                raise ValueError(
                    "epsilon is that of the norm of embeddings, and embedding_norm="
                    f"'none' has none: leave it at {type(self).epsilon:g}, or set "
                    f"another norm. Received: epsilon={self.epsilon:g}."
                )
        elif self.padding_in_statistics and statistics == ("prefix", "prefix"):
            raise ValueError(
                "padding_in_statistics=True has no meaning when both sides use prefix "
                "statistics: padding follows the sentence, so it is in no prefix of a "
                "real token."
            )

    @property
    def _weights(self) -> int:
        # Two stacks, and a third attention across.
        across = 2 * self.num_heads * (self.key_dim + self.value_dim)
        return 2 * super()._weights + self.num_blocks * self.width * across

    @property
    def width(self) -> int:
        return self.embedding_dim * (2 if self.position == "concat" else 1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecoderOnlyConfig(BlockSettings):
    """A decoder alone, which reads source and target as one sequence.

    Where norms stand before sublayers, one more stands before the output.

    Args:
        target_positions: `"continue"` counts positions on from the source's last
            token, `"restart"` from 0 with the target.
        **settings: those of `BlockSettings`.

    Raises:
        ValueError: as `BlockSettings`.

    Example:

    >>> from reprt.presets import preset
    >>> preset("decoder-only").target_positions
    'continue'
    """

    target_positions: str = "continue"
    scores_source: ClassVar[bool] = True
    shared_embedding: ClassVar[bool] = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """A recurrent encoder-decoder with attention.

    Args:
        num_layers: recurrent layers in the encoder, each in both directions, and in
            the decoder.
        embedding_dim: width m of the token embedding, and of what the output layer
            takes.
        hidden_dim: width n of each direction's states, of the decoder's states and of
            the attention's scores.
        attention: its score, `"additive"` (Bahdanau et al. 2015) or
            `"multiplicative"` (Luong et al. 2015, "general").
        dropout: rate of dropout between layers.
        max_length: longest sequence, in tokens.
        output_tying: `"none"` for an output layer of its own. With `"tied"` its matrix
            is the target's embedding table, without a bias.
        shared_embedding: whether one table embeds both sides, which then have one
            vocabulary.

    Raises:
        ValueError: for a size that is not positive, or an unknown choice.

    Example:

    >>> from reprt.presets import preset
    >>> preset("recurrent").attention
    'additive'
    """

    num_layers: int
    embedding_dim: int
    hidden_dim: int
    attention: str = "additive"
    dropout: float = 0.2
    max_length: int = 2048
    output_tying: str = "none"
    shared_embedding: bool = False

    def __post_init__(self):
        names = ("num_layers", "embedding_dim", "hidden_dim")
        sizes = {name: getattr(self, name) for name in names}
        check_range("the model", 1, WIDEST, **sizes)
        check_range("the model", 1, LONGEST, max_length=self.max_length)
        check_range("the model", 0, BELOW_ONE, dropout=self.dropout)
        m, n = self.embedding_dim, self.hidden_dim
        _check_weights(9 * n * (m + n) + 24 * n * n * (self.num_layers - 1), sizes)
        _check_choices(self, RECURRENT_CHOICES)


def _check_choices(settings, known: Mapping[str, tuple[str, ...]]):
    for name, choices in known.items():
        if name in vars(settings):
            check_choice(choices, **{name: getattr(settings, name)})


def _check_weights(weights: int, sizes: Mapping[str, int]):
    if weights > LARGEST:
        raise ValueError(
            f"Expected the blocks of the model to have at most {LARGEST:,} "
            f"parameters. Received: {sizes}, which make {weights:,}."
        )


def as_table(settings) -> dict[str, Any]:
    """Returns a configuration dataclass as tables that TOML and JSON give back alike.

    They have no None and no tuples: a setting that is None is left out.
    """

    def plain(value):
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items() if v is not None}
        return list(value) if isinstance(value, tuple) else value

    return plain(dataclasses.asdict(settings))


def member_settings(members: Sequence[type], settings: Mapping[str, Any], where: str):
    """Builds the one of several configuration dataclasses that `name` chooses.

    Args:
        members: the dataclasses; each has its `name` as a default, and the first
            counts if none is given.
        settings: as in `from_settings`.
        where: as in `from_settings`.

    Raises:
        ValueError: for an unknown name, or as `from_settings`.
    """
    known = {getattr(member, "name", None): member for member in members}
    name = settings.get("name", next(iter(known)))
    if name not in tuple(known):  # any object may stand there
        raise ValueError(
            f"Expected 'name' in {where} to be one of {tuple(known)}. "
            f"Received: {shown(name)}."
        )
    return from_settings(known[name], settings, where)


def from_settings(config_class, settings: Mapping[str, Any], where: str):
    """Builds a configuration dataclass, refusing unknown and ill-typed settings.

    Args:
        config_class: a dataclass with annotations that are plain types, or a type
            joined to None.
        settings: its fields by name.
        where: how the settings are called in messages, e.g. `"[training]"`.

    Raises:
        ValueError: naming the nearest known field, or the type that was expected.
    """
    known = {f.name: f for f in dataclasses.fields(config_class)}
    values = {}
    for name, value in settings.items():
        check_known(name, known, where)
        expected = known[name].type
        check(value, expected, f"{name!r} in {where}")
        of_several = typing.get_origin(expected) is tuple
        values[name] = tuple(value) if of_several else value
    missing = [
        name
        for name, field in known.items()
        if name not in settings
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ValueError(f"Missing in {where}: {', '.join(missing)}.")
    return config_class(**values)
