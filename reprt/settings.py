"""What distinguishes one model from another."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

import pydantic
from pydantic import Field

from reprt.constants import (
    ON_ENTRY,
    TUTORIAL_DROPOUT,
    WIDENING,
    WITH_WIDTH,
    DropoutPlace,
    EmbeddingNorm,
    Position,
    Scale,
    Statistics,
    Table,
    check_choice,
    nearest,
)

Size = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, lt=1)]
Positive = Annotated[float, Field(gt=0)]


class Settings(pydantic.BaseModel):
    """Settings that are checked as they are made, and do not change.

    A key that is not known is an error that names the nearest one. Numbers are finite,
    a bool is no number, and a whole number passes for a float.
    """

    model_config = pydantic.ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    @pydantic.model_validator(mode="before")
    @classmethod
    def _known(cls, values):
        for key in values if isinstance(values, dict) else ():
            check_known(key, cls.model_fields)
        return values

    @classmethod
    def read(cls, values: Mapping[str, Any], where: str) -> Self:
        """Makes settings of what a file or a user has given.

        Messages of one line name `where`, such as `"[training]"`, the key, and what was
        expected and received.
        """
        try:
            return cls.model_validate(values)
        except pydantic.ValidationError as error:
            raise ValueError(in_one_line(error, where)) from None

    def changed(self, **overrides: Any) -> Self:
        """Returns a copy with other values of some settings, checked like new ones."""
        return self.read({**dict(self), **overrides}, type(self).__name__)

    def as_table(self) -> dict[str, Any]:
        """Returns the settings as TOML and JSON hold them; None is left out."""
        return self.model_dump(mode="json", exclude_none=True)


class UnknownKey(ValueError):
    """A key that no settings have; it names the nearest that they have."""

    def __init__(self, key: str, known):
        super().__init__(
            f"Unknown key {key!r}; the nearest known one is {nearest(key, known)!r}. "
            f"Known keys: {', '.join(known)}."
        )
        self.key = key


def check_known(key: str, known):
    """Raises an `UnknownKey` unless a key is known."""
    if key not in known:
        raise UnknownKey(key, known)


def in_one_line(error: pydantic.ValidationError, where: str) -> str:
    """Returns the first fault that pydantic found, in the words of this package."""
    fault = error.errors()[0]
    key, said = ".".join(map(str, fault["loc"])), fault["msg"]
    within = f"{key!r} in {where}" if key else where
    if fault["type"] == "missing":
        return f"Missing in {where}: {key!r}."
    if fault["type"] == "value_error":
        return f"{within}: {said.removeprefix('Value error, ')}"
    wanted = re.sub(r"^\w+ should | or instance of \w+$", "", said)
    return f"Expected {within} to {wanted}. Received: {fault['input']!r}."


def by_name(*members: type[Settings]) -> pydantic.BeforeValidator:
    """Lets the `name` of a table choose among classes; the first is the default."""
    known = {each.model_fields["name"].default: each for each in members}

    def choose(values):
        if not isinstance(values, dict):
            return values
        name = values.get("name", next(iter(known)))
        check_choice(known, name=name)
        return known[name].model_validate(values)

    return pydantic.BeforeValidator(choose)


class BlockSettings(Settings):
    """What describes one Transformer block, the paper's symbols in brackets.

    The blocks and stacks of `reprt.layers` take these settings as their arguments.
    """

    num_heads: Size
    """Attention heads [p]."""
    key_dim: Size
    """Width of each head's query and key [r]."""
    feed_forward_dim: Size
    """Width of the feed-forward network's hidden layer [s]."""
    value_dim: Size | None = None
    """Width of each head's value [q]; `key_dim` by default."""
    dropout: Share = 0.0
    """Rate of dropout."""
    dropout_places: Annotated[tuple[DropoutPlace, ...], Field(strict=False)] = (
        TUTORIAL_DROPOUT
    )
    """Where dropout acts: on `"embeddings"` (with their positions),
    `"attention_weights"`, `"feed_forward_output"`, `"attention_output"` and `"values"`
    (tokens as values; states as values have none). The first three by
    default, as in TensorFlow's tutorial. A block has the middle three."""
    norm_place: Literal["after", "before"] = "after"
    """LayerNormalization `"after"` each residual sum or `"before"` each sublayer."""
    layer_norm_epsilon: Positive = 1e-3
    """LayerNormalization's epsilon."""
    layer_norm_gains: bool = True
    """Whether LayerNormalization has a learnt gain and shift for each channel."""
    attention_bias: bool = True
    """Whether attention's projections have biases."""
    query_key_norm: bool = False
    """Whether each head's queries and keys have length 1, with a learnt scale instead
    of 1 / sqrt(key_dim)."""
    activation: Literal["relu", "gelu"] = "relu"
    """Activation of the feed-forward network."""

    def rate(self, place: str) -> float:
        """Returns the rate of dropout at a place."""
        return self.dropout if place in self.dropout_places else 0.0


# The sides whose TokenNorm a setting is about.
SIDES_OF_STATISTICS = {
    "encoder_statistics": ["encoder"],
    "decoder_statistics": ["decoder"],
    "padding_in_statistics": ["encoder", "decoder"],
}


class TransformerSettings(BlockSettings):
    """What the Transformers of all families have: blocks, and embeddings before them.

    The paper's three changes are `position`, `embedding_norm` (with its statistics)
    and `value`. Settings that contradict one another are refused with the reason.
    """

    num_blocks: Size
    """Blocks of each stack [N]."""
    embedding_dim: Annotated[int, Field(ge=2, multiple_of=2)]
    """Width of the token embedding, even, for sinusoids have two halves [m]."""
    value_dim: Size
    """Width of each head's value [q]."""
    dropout: Share = 0.1
    """Rate of dropout."""
    position: Position
    """How tokens learn where they stand. On entry: `"concat"` puts positions beside
    them, making states wider; `"add"` adds them. Within self-attention: `"rotary"`,
    `"relative"`, `"alibi"` and `"untied"`. Or `"none"`."""
    position_dim: Annotated[int, Field(ge=2, multiple_of=2)] | None = None
    """Width of the positions, even, where they are `"concat"` or `"untied"`;
    `embedding_dim` by default, as in the paper."""
    embedding_norm: EmbeddingNorm
    """What the embeddings of both sides go through: a `"token_norm"`, `"rms"` (each
    divided by its own root mean square) or `"none"`."""
    value: Literal["tokens", "states"]
    """What attention weighs: `"tokens"`, the (normalised) embeddings, or `"states"`,
    the key's own sequence."""
    decoder_statistics: Statistics = "sequence"
    """What the decoder's TokenNorm runs over; `"sequence"`, as published, lets a
    position see statistics of later tokens, `"prefix"` does not."""
    epsilon: Positive = 1e-6
    """Epsilon of the embeddings' norm."""
    scale: Scale = "sqrt"
    """Factor on the embeddings: `"sqrt"` of m as in TensorFlow's tutorial,
    `"inverse_sqrt"` as eq. 18 prints, or `"none"`."""
    table: Table = "tutorial"
    """Sinusoids as in the `"tutorial"` or as the `"paper"` prints them, or positions
    that are `"learned"`."""
    max_length: Size = 2048
    """Longest sequence of either side, in tokens."""

    @property
    def longest_sequence(self) -> int:
        """The longest sequence that positions have to cover, in tokens."""
        return self.max_length

    def norm_of(self, side: str) -> str:
        """Returns the name of the norm of a side, `"encoder"` or `"decoder"`."""
        return self.embedding_norm

    @pydantic.model_validator(mode="after")
    def _agree(self):
        idle = {"values"} if self.value == "states" else set()
        if self.dropout and not {*self.dropout_places} - idle:
            raise ValueError(
                f"A dropout of {self.dropout} acts nowhere with dropout_places="
                f"{self.dropout_places}: name other places, or set dropout=0."
            )
        for name, sides in SIDES_OF_STATISTICS.items():
            field = type(self).model_fields.get(name)
            if field is None or getattr(self, name) == field.default:
                continue
            norms = [self.norm_of(side) for side in sides]
            if "token_norm" not in norms:
                norm = norms[-1]
                same = norm == self.embedding_norm
                whose = "embedding_norm" if same else "decoder_norm"
                raise ValueError(
                    f"{whose}={norm!r} has no {name}: leave it at {field.default!r}, "
                    f"or set {whose}='token_norm'."
                )
        if self.position_dim is not None and self.position not in WITH_WIDTH:
            raise ValueError(
                f"position={self.position!r} has no position_dim: leave it out, "
                f"or set position to one of {WITH_WIDTH}."
            )
        if self.position == "rotary" and self.key_dim % 2:
            raise ValueError(
                "Rotary positions turn pairs of channels: set key_dim to an even "
                f"number. Received: key_dim={self.key_dim}."
            )
        return self


class TransformerConfig(TransformerSettings):
    """An encoder-decoder Transformer.

    >>> from reprt.presets import preset
    >>> repe = preset("repe", decoder_statistics="prefix")
    >>> repe.position, repe.value, repe.num_blocks
    ('concat', 'tokens', 2)
    """

    decoder_norm: EmbeddingNorm | None = None
    """What the target's embeddings go through instead of `embedding_norm`; None for the
    same."""
    encoder_statistics: Statistics = "sequence"
    """What the source's TokenNorm runs over."""
    padding_in_statistics: bool = False
    """Whether padding rows count among a sequence's tokens. A sentence's result then
    depends on how far its batch was padded."""
    final_norm: Literal["none", "decoder", "both"] = "none"
    """Which stacks end with one more LayerNormalization, after their last block."""
    output_tying: Literal["none", "tied", "projected"] = "none"
    """`"none"` for an output layer of its own. With `"tied"` its matrix is the target's
    embedding table, without a bias; with `"projected"` a matrix (no bias) takes the
    states to the embedding's width before that."""
    shared_embedding: bool = False
    """Whether one table embeds both sides, which then have one vocabulary."""

    def norm_of(self, side: str) -> str:
        if side == "decoder" and self.decoder_norm is not None:
            return self.decoder_norm
        return self.embedding_norm

    @pydantic.model_validator(mode="after")
    def _make_sense(self):
        if self.output_tying == "tied" and self.position in WIDENING:
            raise ValueError(
                "output_tying='tied' multiplies states by the embedding table, and "
                f"position={self.position!r} makes states wider than embeddings: set "
                "output_tying='projected', or position='add'."
            )
        return self


class DecoderOnlyConfig(TransformerSettings):
    """A decoder-only model, which reads source and target as one sequence.

    Where norms stand before sublayers, one more stands before the output.
    """

    position: Position = "add"
    """As in the other families."""
    embedding_norm: EmbeddingNorm = "none"
    """As in the other families; a TokenNorm runs over source and target as one."""
    value: Literal["tokens", "states"] = "states"
    """As in the other families."""
    target_positions: Literal["continue", "restart"] = "continue"
    """`"continue"` counts positions on from the source's last token, `"restart"` from 0
    with the target."""
    scores_source: ClassVar[bool] = True
    shared_embedding: ClassVar[bool] = True

    @property
    def longest_sequence(self) -> int:
        return self.max_length * (2 if self.target_positions == "continue" else 1)

    @pydantic.model_validator(mode="after")
    def _make_sense(self):
        if self.target_positions == "restart" and self.position not in ON_ENTRY:
            raise ValueError(
                "target_positions='restart' gives source and target the same places, "
                f"and position={self.position!r} tells tokens apart by their distance: "
                "leave it at 'continue', or set position to 'add' or 'concat'."
            )
        return self


class RecurrentConfig(Settings):
    """A recurrent encoder-decoder with attention."""

    num_layers: Size
    """Recurrent layers in the encoder, each in both directions, and in the decoder."""
    embedding_dim: Size
    """Width m of the token embedding, and of what the output layer takes."""
    hidden_dim: Size
    """Width n of each direction's states, of the decoder's states and of the
    attention's scores."""
    attention: Literal["additive", "multiplicative"] = "additive"
    """Its score: `"additive"` (Bahdanau et al. 2015) or `"multiplicative"` (Luong et
    al. 2015, "general")."""
    dropout: Share = 0.2
    """Rate of dropout between layers."""
    max_length: Size = 2048
    """Longest sequence, in tokens."""
    output_tying: Literal["none", "tied"] = "none"
    """`"none"` for an output layer of its own. With `"tied"` its matrix is the target's
    embedding table, without a bias."""
    shared_embedding: bool = False
    """Whether one table embeds both sides, which then have one vocabulary."""
