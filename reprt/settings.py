"""What distinguishes one model from another, and the paper's two."""

import dataclasses
import difflib
import types
from collections.abc import Mapping
from typing import Any

from reprt.constants import SCALES, STATISTICS, TABLES

CHOICES = {
    "encoder_statistics": STATISTICS,
    "decoder_statistics": STATISTICS,
    "position": ("concat", "add"),
    "value": ("tokens", "states"),
    "scale": SCALES,
    "table": TABLES,
}
SIZES = (
    "num_blocks",
    "embedding_dim",
    "num_heads",
    "key_dim",
    "value_dim",
    "feed_forward_dim",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """An encoder-decoder Transformer; the paper's symbols are in brackets.

    The paper's three changes are `position`, `normalize` (with its statistics) and
    `value`: 2 × 2 × 2 settings of the same code.

    Args:
        num_blocks: blocks in the encoder and in the decoder [N].
        embedding_dim: width of the token embedding, even [m].
        num_heads: attention heads [p].
        key_dim: width of each head's query and key [r].
        value_dim: width of each head's value [q].
        feed_forward_dim: width of the feed-forward network's hidden layer [s].
        dropout: rate, on the embeddings, on the attention weights and after the
            feed-forward network.
        position: `"concat"` puts positions beside the tokens, making states 2m wide;
            `"add"` adds them.
        normalize: whether the embeddings of both sides go through a TokenNorm.
        encoder_statistics: what the source's TokenNorm runs over, `"sequence"` or
            `"prefix"`.
        decoder_statistics: the same for the target; `"sequence"`, as published, lets
            a position see statistics of later tokens, `"prefix"` does not.
        padding_in_statistics: whether padding rows count among a sequence's tokens.
            A sentence's result then depends on how far its batch was padded.
        value: what attention weighs: `"tokens"`, the (normalised) embeddings, or
            `"states"`, the key's own sequence.
        scale: factor on the embeddings: `"sqrt"` of m as in TensorFlow's tutorial,
            `"inverse_sqrt"` as eq. 28 prints, or `"none"`.
        table: sinusoids as in the `"tutorial"` or as the `"paper"` prints them.
        max_length: longest sequence, in tokens.
        epsilon: TokenNorm's.

    Raises:
        ValueError: for a size that is not positive, an unknown choice, or settings
            that contradict one another; the message gives the reason.

    Example:

    >>> from reprt.settings import preset
    >>> repe = preset("repe", decoder_statistics="prefix")
    >>> repe.position, repe.value, repe.num_blocks
    ('concat', 'tokens', 2)
    """

    num_blocks: int
    embedding_dim: int
    num_heads: int
    key_dim: int
    value_dim: int
    feed_forward_dim: int
    position: str
    normalize: bool
    value: str
    dropout: float = 0.1
    encoder_statistics: str = "sequence"
    decoder_statistics: str = "sequence"
    padding_in_statistics: bool = False
    scale: str = "sqrt"
    table: str = "tutorial"
    max_length: int = 2048
    epsilon: float = 1e-6

    def __post_init__(self):
        for name in (*SIZES, "max_length"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"Expected `{name}` to be at least 1. "
                    f"Received: {name}={getattr(self, name)}."
                )
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"Expected `{name}` to be one of {choices}. "
                    f"Received: {name}={getattr(self, name)!r}."
                )
        if self.embedding_dim % 2:
            raise ValueError(
                "The sinusoids have sine and cosine halves, so `embedding_dim` must be "
                f"even. Received: embedding_dim={self.embedding_dim}."
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(
                f"Expected 0 <= dropout < 1. Received: dropout={self.dropout}."
            )
        statistics = (self.encoder_statistics, self.decoder_statistics)
        if not self.normalize:
            if "prefix" in statistics or self.padding_in_statistics:
                raise ValueError(
                    "Statistics are those of a TokenNorm, and normalize=False has "
                    "none: leave encoder_statistics, decoder_statistics and "
                    "padding_in_statistics at their defaults, or set normalize=True."
                )
        elif self.padding_in_statistics and statistics == ("prefix", "prefix"):
            raise ValueError(
                "padding_in_statistics=True has no meaning when both sides use prefix "
                "statistics: padding follows the sentence, so it is in no prefix of a "
                "real token."
            )

    @property
    def sizes(self) -> tuple:
        """What decides most of the cost of a step."""
        return (*(getattr(self, name) for name in SIZES), self.position)


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
    for name, value in settings.items():
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1, cutoff=0)
            raise ValueError(
                f"Unknown key {name!r} in {where}; the nearest known one is "
                f"{nearest[0]!r}. Known keys: {', '.join(known)}."
            )
        expected = known[name].type
        if not _fits(value, expected):
            name_of_type = getattr(expected, "__name__", str(expected))
            raise ValueError(
                f"Expected {name!r} in {where} to be of type {name_of_type}. "
                f"Received: {value!r}, of type {type(value).__name__}."
            )
    missing = [
        name
        for name, field in known.items()
        if name not in settings
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ValueError(f"Missing in {where}: {', '.join(missing)}.")
    return config_class(**settings)


def migrated_model(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a model's settings of an earlier format in the present one."""
    return dict(settings)


def check_positive(where: str, **numbers):
    """Raises a `ValueError` unless all numbers are above 0.

    Args:
        where: how their table is called in the message.
        **numbers: by their keys.
    """
    for name, number in numbers.items():
        if not number > 0:
            raise ValueError(
                f"Expected {name!r} in {where} to be positive. Received: {number}."
            )


def _fits(value, expected) -> bool:
    if isinstance(expected, types.UnionType):
        return any(_fits(value, option) for option in expected.__args__)
    if expected is float:  # an integer is a fine float, but True is not a number here
        return isinstance(value, int | float) and not isinstance(value, bool)
    if expected is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, expected)
