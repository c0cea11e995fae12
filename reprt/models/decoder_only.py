"""Translation by a decoder alone: source and target are one sequence."""

from typing import Any, NamedTuple

import keras
from keras import ops

from reprt.layers import (
    AddPositional,
    Decoder,
    TokenAndPositionEmbedding,
    padding_mask,
)
from reprt.models.base import TranslationModel
from reprt.models.prefixes import CachedPrefixes
from reprt.settings import DecoderOnlyConfig


class ReadSource(NamedTuple):
    """What target tokens attend to of a source.

    Attributes:
        blocks: of each block the source's keys and values, `(batch, heads, sources,
            key_dim)` and `(batch, heads, sources, value_dim)`.
        mask: boolean, `(batch, sources)`, True on real tokens.
    """

    blocks: tuple
    mask: Any


@keras.saving.register_keras_serializable(package="reprt")
class DecoderOnly(TranslationModel):
    """A language model that goes on from the source with the target.

        states = decoder(embedding(x_1 … x_n y_1 … y_t)),  logits = states Eᵀ

    One table E embeds both sides and makes the logits. Attention is causal from the
    first source token on. So every token is scored given those before it, also the
    tokens of the source (`both_states`). The target's first token tells the model that
    the target begins: give the two sides different first tokens, such as tags of their
    languages.

    Masking: padding masks are made here from the ids. Padding is masked, and takes up
    no position: those of the target go on from the source's last real
    token (`target_positions="continue"`) or begin at 0 (`"restart"`). Logits on real
    tokens do not depend on padding, wherever it stands.

    Packing: with what `reprt.data.pack(…, layout="sequence")` adds to the inputs, work
    on single tokens skips padding. The logits and the labels that it returns are
    then packed too.

    Args:
        source_vocab_size: number of ids, padding (0) included.
        target_vocab_size: the same number, since there is one vocabulary.
        config: a `DecoderOnlyConfig`, or its fields as a dictionary.
        **kwargs: passed to `keras.Model`.

    Call arguments:
        inputs: the pair `(source_ids, target_ids)`, integer tensors `(batch, sources)`
            and `(batch, targets)`, or the four that `reprt.data.pack` makes of it.
        training: whether dropout is active.

    Returns:
        Logits `(batch, targets, target_vocab_size)`, or `(1, packed,
        target_vocab_size)`.

    Raises:
        ValueError: for vocabularies of different sizes, inputs that are no pair, ids
            that are not integers of rank 2, more than `max_length` of them on a side
            or, in eager execution, ids outside the vocabulary.

    Example:

    >>> import keras, reprt
    >>> sizes = {"num_blocks": 1, "embedding_dim": 8, "feed_forward_dim": 16}
    >>> model = reprt.models.build("decoder-only", 30, 30, **sizes)
    >>> source, target = keras.ops.array([[4, 7, 3, 0]]), keras.ops.array([[5, 9]])
    >>> tuple(model((source, target)).shape)
    (1, 2, 30)

    Reference: Wang et al. 2021, "Language models are good translators".
    """

    def __init__(self, source_vocab_size, target_vocab_size, config, **kwargs):
        if not isinstance(config, DecoderOnlyConfig):
            config = DecoderOnlyConfig.read(config, "the model's config")
        super().__init__(source_vocab_size, target_vocab_size, config, **kwargs)
        policy = {"dtype": self.dtype_policy}
        sides = 2 if config.target_positions == "continue" else 1
        self.embedding = TokenAndPositionEmbedding(
            target_vocab_size,
            config.embedding_dim,
            positional=AddPositional(
                config.table, sides * config.max_length, name="positional", **policy
            ),
            scale=config.scale,
            dropout=config.rate("embeddings"),
            name="embedding",
            **policy,
        )
        self.decoder = Decoder(
            **config.of_blocks,
            final_norm=config.norm_place == "before",
            name="decoder",
            **policy,
        )

    def build(self, input_shape=None):
        # Every size is in the config, so the weights exist before the first call.
        self.embedding.build((None, None))
        self.decoder.build((None, None, self.config.embedding_dim))
        self.built = True

    def multiply_adds(self, sources, targets):
        config = self.config
        tokens, width = sources + targets, config.embedding_dim
        heads = config.num_heads * (config.key_dim + config.value_dim)
        of_token = 2 * width * (heads + config.feed_forward_dim)
        block = tokens * of_token + tokens * tokens * heads
        return config.num_blocks * block + targets * width * self.target_vocab_size

    def projection(self):
        return self._projection_by(None, self.embedding)

    def states(self, inputs, training=None):
        return self.both_states(inputs, training)[1]

    @property
    def packed_layout(self) -> str:
        return "sequence"

    def both_states(self, inputs, training=None):
        source_ids, target_ids, *packed = self._parts(inputs)
        states, mask = self._sequence(source_ids, target_ids, training)
        if packed:
            packing, sides = packed
            heads = packing.heads(self.config.num_heads)
            states = packing.pack(states)
            return sides.split(self.decoder(states, packing=heads, training=training))
        states = self.decoder(states, padding_mask=mask, training=training)
        sources = ops.shape(source_ids)[1]
        return states[:, :sources], states[:, sources:]

    def source_labels(self, inputs):
        labels = super().source_labels(inputs)
        _, target_ids, *packed = self._parts(inputs)
        if not packed:
            return labels
        packing, sides = packed
        both = ops.concatenate([labels, ops.zeros_like(target_ids)], axis=1)
        return sides.split(packing.pack(both))[0]

    def attention_weights(self, source_ids, target_ids):
        states, mask = self._sequence(source_ids, target_ids, training=False)
        _, pairs = self.decoder(
            states, padding_mask=mask, return_attention_scores=True, training=False
        )
        return {"sequence": ops.stack([own for own, _ in pairs])}

    def encode(self, source_ids, *, training=None):
        states, mask = self._embedded(source_ids, 0, training)
        return ReadSource(self.decoder.begin(states, mask, training), mask)

    def start(self, memory: ReadSource, beams: int, capacity: int):
        hypotheses = ops.shape(memory.mask)[0] * beams
        blocks = tuple(
            room._replace(memory=heads)
            for room, heads in zip(
                self.decoder.start(hypotheses, capacity), memory.blocks, strict=True
            )
        )
        first = ops.repeat(self._first_position(memory.mask), beams, axis=0)
        return CachedPrefixes(blocks, first, memory.mask)

    def step(self, ids, position, prefixes):
        _, states, _ = self.embedding.step(
            ops.expand_dims(ids, 1), prefixes.embedding + position, ()
        )
        states, blocks = self.decoder.step(
            states, None, prefixes.blocks, position, prefixes.memory_mask
        )
        return self.logits(states[:, 0]), prefixes._replace(blocks=blocks)

    def _sequence(self, source_ids, target_ids, training):
        """States and mask of both sides, one after the other."""
        source, source_mask = self._embedded(source_ids, 0, training)
        target, target_mask = self._embedded(
            target_ids, self._first_position(source_mask), training
        )
        return (
            ops.concatenate([source, target], axis=1),
            ops.concatenate([source_mask, target_mask], axis=1),
        )

    def _embedded(self, ids, first_position, training):
        mask = padding_mask(ids)
        length, most = mask.shape[1], self.config.max_length
        if isinstance(length, int) and length > most:
            raise ValueError(
                f"Expected at most {most} tokens a side, the model's max_length. "
                f"Received: {length}."
            )
        _, states = self.embedding(ids, start=first_position, training=training)
        return states, mask

    def _first_position(self, source_mask):
        """That of the target, `(batch, 1)`."""
        counted = ops.cast(source_mask, "int32")
        if self.config.target_positions == "restart":
            counted = ops.zeros_like(counted)
        return ops.sum(counted, axis=1, keepdims=True)
