"""The settings that define a model, and which of them go together."""

from typing import Annotated, ClassVar, Literal

import pydantic
from pydantic import Field

from reprt.layers.blocks import DROPOUT_PLACES, NORM_PLACES, TUTORIAL_DROPOUT
from reprt.layers.embedding import SCALES
from reprt.layers.embedding_norms import EMBEDDING_NORMS
from reprt.layers.embedding_norms.token_norm import STATISTICS
from reprt.layers.feed_forward import activations
from reprt.layers.positions import POSITIONS
from reprt.layers.positions.sinusoids import TABLES
from reprt.settings import OneOf, Positive, Settings, Share, Size

Statistics = Annotated[str, OneOf(STATISTICS)]
Position = Annotated[str, OneOf(POSITIONS)]
EmbeddingNormName = Annotated[str, OneOf(EMBEDDING_NORMS)]


def _in_one_order(places: tuple[str, ...]) -> tuple[str, ...]:
    """Returns places of dropout in one order, as theirs makes no difference."""
    return tuple(place for place in DROPOUT_PLACES if place in places)


DropoutPlaces = Annotated[
    tuple[Annotated[str, OneOf(DROPOUT_PLACES)], ...],
    Field(strict=False),
    pydantic.AfterValidator(_in_one_order),
]


class TransformerSettings(Settings):
    """What the Transformers of all families have: blocks, and embeddings before them.

    The paper's symbols are in brackets. Its three changes are `position`,
    `embedding_norm` (with its statistics) and `value`. Settings that contradict one
    another are refused with the reason.
    """

    num_heads: Size
    """Attention heads [p]."""
    key_dim: Size
    """Width of each head's query and key [r]."""
    feed_forward_dim: Size
    """Width of the feed-forward network's hidden layer [s]."""
    value_dim: Size
    """Width of each head's value [q]."""
    dropout: Share = 0.1
    """Rate of dropout."""
    dropout_places: DropoutPlaces = TUTORIAL_DROPOUT
    """Where dropout acts: on `"embeddings"` (with their positions),
    `"attention_weights"`, `"feed_forward_output"`, `"attention_output"` and `"values"`
    (tokens as values; states as values have none). The first three by
    default, as in TensorFlow's tutorial. A block has the middle three."""
    norm_place: Annotated[str, OneOf(NORM_PLACES)] = "after"
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
    activation: Annotated[str, OneOf(activations())] = "relu"
    """Activation of the feed-forward network: one of Keras', or a gated one, `"glu"`,
    `"reglu"`, `"geglu"` or `"swiglu"`, which has a second hidden projection."""
    num_blocks: Size
    """Blocks of each stack [N]."""
    embedding_dim: Annotated[int, Field(ge=2, multiple_of=2)]
    """Width of the token embedding, even, for sinusoids have two halves [m]."""
    position: Position
    """How tokens learn where they stand. On entry: `"concat"` puts positions beside
    them, making states wider; `"add"` adds them. Within self-attention: `"rotary"`,
    `"relative"`, `"alibi"` and `"untied"`. Or `"none"`."""
    position_dim: Annotated[int, Field(ge=2, multiple_of=2)] | None = None
    """Width of the positions, even, where they are `"concat"` or `"untied"`;
    `embedding_dim` by default, as in the paper."""
    embedding_norm: EmbeddingNormName
    """What the embeddings of both sides go through: a `"token_norm"`, `"rms"` (each
    divided by its own root mean square) or `"none"`."""
    value: Literal["tokens", "states"]
    """What attention weighs: `"tokens"`, the (normalised) embeddings, or `"states"`,
    the key's own sequence."""
    decoder_statistics: Statistics = "sequence"
    """What the decoder's TokenNorm runs over; `"sequence"`, as published, lets a
    position see statistics of later tokens, `"prefix"` does not."""
    epsilon: Positive = 1e-6
    """Epsilon of the embeddings' norm; without a norm it is not used."""
    scale: Annotated[str, OneOf(SCALES)] = "sqrt"
    """Factor on the embeddings: `"sqrt"` of m as in TensorFlow's tutorial,
    `"inverse_sqrt"` as eq. 18 prints, or `"none"`."""
    table: Annotated[str, OneOf(TABLES)] = "tutorial"
    """Sinusoids as in the `"tutorial"` or as the `"paper"` prints them, or positions
    that are `"learned"`. Without a table of positions it is not used."""
    max_length: Size = 2048
    """Longest sequence of either side, in tokens."""

    def rate(self, place: str) -> float:
        """Returns the rate of dropout at a place."""
        return self.dropout if place in self.dropout_places else 0.0

    @property
    def longest_sequence(self) -> int:
        """The longest sequence that positions have to cover, in tokens."""
        return self.max_length

    def norm_setting(self, side: str) -> str:
        """Returns the setting that names a side's norm, `"encoder"` or `"decoder"`."""
        return "embedding_norm"

    def norm_of(self, side: str) -> str:
        """Returns the name of the norm of a side."""
        return getattr(self, self.norm_setting(side))

    def check_statistics(self, name: str, *sides: str):
        """Refuses a setting of TokenNorm's statistics if no side has that norm."""
        default = type(self).model_fields[name].default
        norms = [self.norm_of(side) for side in sides]
        if getattr(self, name) == default or "token_norm" in norms:
            return
        setting = self.norm_setting(sides[-1])
        raise ValueError(
            f"{setting}={norms[-1]!r} has no {name}: leave it at {default!r}, or set "
            f"{setting}='token_norm'."
        )

    @pydantic.model_validator(mode="after")
    def _dropout_acts_somewhere(self):
        idle = {"values"} if self.value == "states" else set()
        if self.dropout and not {*self.dropout_places} - idle:
            raise ValueError(
                f"A dropout of {self.dropout} acts nowhere with dropout_places="
                f"{self.dropout_places}: name other places, or set dropout=0."
            )
        return self

    @pydantic.model_validator(mode="after")
    def _decoder_statistics_have_a_norm(self):
        self.check_statistics("decoder_statistics", "decoder")
        return self

    @pydantic.model_validator(mode="after")
    def _positions_have_their_widths(self):
        with_width = _positions("has_width")
        if self.position_dim is not None and self.position not in with_width:
            raise ValueError(
                f"position={self.position!r} has no position_dim: leave it out, "
                f"or set position to one of {with_width}."
            )
        if self.position == "rotary" and self.key_dim % 2:
            raise ValueError(
                "Rotary positions turn pairs of channels: set key_dim to an even "
                f"number. Received: key_dim={self.key_dim}."
            )
        return self


class TransformerConfig(TransformerSettings):
    """An encoder-decoder Transformer.

    >>> from reprt.models.presets import preset
    >>> repe = preset("repe", decoder_statistics="prefix")
    >>> repe.position, repe.value, repe.num_blocks
    ('concat', 'tokens', 2)
    """

    decoder_norm: EmbeddingNormName | None = None
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

    def norm_setting(self, side: str) -> str:
        if side == "decoder" and self.decoder_norm is not None:
            return "decoder_norm"
        return "embedding_norm"

    @pydantic.model_validator(mode="after")
    def _statistics_have_a_norm(self):
        self.check_statistics("encoder_statistics", "encoder")
        self.check_statistics("padding_in_statistics", "encoder", "decoder")
        return self

    @pydantic.model_validator(mode="after")
    def _tied_output_fits(self):
        if self.output_tying == "tied" and self.position in _positions(
            "widens"
        ):
            raise ValueError(
                "output_tying='tied' multiplies states by the embedding table, and "
                f"position={self.position!r} makes states wider than embeddings: set "
                "output_tying='projected', or position='add'."
            )
        return self


class DecoderOnlyConfig(TransformerSettings):
    """A decoder-only model, which reads source and target as one sequence.

    Where norms stand before sublayers, one more stands before the output.

    >>> from reprt.models.presets import preset
    >>> preset("decoder-only", max_length=100).longest_sequence
    200
    """

    position: Position = "add"
    """How tokens learn where they stand: `"add"`, `"concat"`, `"rotary"`, `"relative"`,
    `"alibi"`, `"untied"` or `"none"`."""
    embedding_norm: EmbeddingNormName = "none"
    """What the embeddings go through: `"token_norm"`, over source and target as one
    sequence, `"rms"` or `"none"`."""
    value: Literal["tokens", "states"] = "states"
    """What attention weighs: `"tokens"`, the (normalised) embeddings, or `"states"`,
    the key's own sequence."""
    target_positions: Literal["continue", "restart"] = "continue"
    """`"continue"` counts positions on from the source's last token, `"restart"` from 0
    with the target."""
    scores_source: ClassVar[bool] = True
    shared_embedding: ClassVar[bool] = True

    @property
    def longest_sequence(self) -> int:
        sides = 2 if self.target_positions == "continue" else 1
        return sides * self.max_length

    @pydantic.model_validator(mode="after")
    def _restarted_positions_fit(self):
        on_entry = self.position in ("none", *_positions("on_entry"))
        if self.target_positions == "restart" and not on_entry:
            raise ValueError(
                "target_positions='restart' gives source and target the same places, "
                f"and position={self.position!r} tells tokens apart by their distance: "
                "leave it at 'continue', or set position to 'add' or 'concat'."
            )
        return self


class RecurrentConfig(Settings):
    """A recurrent encoder-decoder with attention.

    >>> from reprt.models.presets import preset
    >>> preset("recurrent", num_layers=1).attention
    'additive'
    """

    num_layers: Size
    """Recurrent layers in the encoder, each in both directions, and in the decoder."""
    embedding_dim: Size
    """Width m of the token embedding, and of what the output layer takes."""
    hidden_dim: Size
    """Width n of each direction's states, of the decoder's states and of the
    attention's scores."""
    attention: Literal["additive", "multiplicative"] = "additive"
    """The attention's score: `"additive"` (Bahdanau et al. 2015) or
    `"multiplicative"` (Luong et al. 2015, "general")."""
    dropout: Share = 0.2
    """Rate of dropout on embeddings, between layers, and on what the output takes."""
    max_length: Size = 2048
    """Longest sequence, in tokens."""
    output_tying: Literal["none", "tied"] = "none"
    """`"none"` for an output layer of its own. With `"tied"` its matrix is the target's
    embedding table, without a bias."""
    shared_embedding: bool = False
    """Whether one table embeds both sides, which then have one vocabulary."""


def _positions(trait: str) -> tuple[str, ...]:
    """The names of the position methods that have a trait, such as `widens`."""
    names = []
    for name, kind in POSITIONS.items():
        if getattr(kind, trait):
            names.append(name)
    return tuple(names)
