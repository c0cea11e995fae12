"""Translation by a decoder-only model: source and target are one sequence."""

from typing import Any, NamedTuple

import keras
from keras import ops

from reprt.layers import Decoder, padding_mask
from reprt.layers.dtypes import indices
from reprt.models.block_model import BlockModel, CachedState, RecomputedState
from reprt.models.prefixes import Prefixes
from reprt.models.settings import DecoderOnlyConfig


class ReadSource(NamedTuple):
    """What target tokens attend to of a source.

    Attributes:
        blocks: of each block the source's keys and values, as `PMHA.heads` makes them.
        mask: boolean, `(batch, sources)`, True on real tokens.
    """

    blocks: tuple
    mask: Any


@keras.saving.register_keras_serializable(package="reprt")
class DecoderOnly(BlockModel):
    """A language model that goes on from the source with the target.

        states = decoder(embedding(x_1 … x_n y_1 … y_t)),  logits = states Eᵀ

    One table E embeds both sides and makes the logits. Where positions beside the
    tokens make states wider, a matrix takes them to the table's width first. Attention
    is causal from the first source token on, so that the source is scored as well
    (`both_states`). The target's first token tells the model that the target begins:
    give the two sides different first tokens, such as tags of their languages.

    Masking: padding takes up no position: those of the target go on from the source's
    last real token (`target_positions="continue"`) or begin at 0 (`"restart"`).

    Args:
        source_vocab_size: number of source ids, padding (0) included.
        target_vocab_size: number of target ids, padding (0) included.
        config: a `DecoderOnlyConfig`, or its fields.
        **kwargs: passed to `keras.Model`.

    Call arguments:
        inputs: the pair `(source_ids, target_ids)`, integer tensors `(batch, sources)`
            and `(batch, targets)`, or the four that `reprt.data.pack` makes of it.
        training: whether dropout is active.

    Returns:
        Logits `(batch, targets, target_vocab_size)`; packed, `(1, packed,
        target_vocab_size)`.

    Raises:
        ValueError: for inputs that are neither, ids that are not integers of rank 2,
            more tokens than a table of positions has, or vocabularies of different
            sizes, as one table embeds both sides.

    >>> import keras, reprt
    >>> sizes = {"num_blocks": 1, "embedding_dim": 8, "feed_forward_dim": 16}
    >>> model = reprt.models.build("decoder-only", 30, 30, **sizes)
    >>> source, target = keras.ops.array([[4, 7, 3, 0]]), keras.ops.array([[5, 9]])
    >>> tuple(model((source, target)).shape)
    (1, 2, 30)

    Reference: Wang et al. 2021, "Language models are good translators".
    """

    config_class = DecoderOnlyConfig
    packed_layout = "sequence"

    def __init__(self, source_vocab_size, target_vocab_size, config, **kwargs):
        super().__init__(source_vocab_size, target_vocab_size, config, **kwargs)
        self.embedding = self._embedding(
            "decoder", target_vocab_size, "embedding"
        )
        self.looks_ahead = not self.embedding.causal
        # A norm over the prefix would have to know the source's statistics.
        self._recomputes = not self.embedding.acts_by_token
        final_norm = self.config.norm_place == "before"
        self.decoder = self._stack(Decoder, self.embedding, final_norm)
        width = self.config.embedding_dim
        _, states_shape = self.embedding.compute_output_shape((1, 1))
        if states_shape[-1] != width:
            self.output_projection = self._dense(width, "output_projection")

    def build(self, input_shape=None):
        if self.built:
            return
        self.embedding.build((None, None))
        tokens, states = self.embedding.compute_output_shape((None, None))
        self.decoder.build(states, value_shape=self._value(tokens))
        if self.output_projection is not None:
            self.output_projection.build(states)

    def multiply_adds(self, sources, targets):
        tokens = sources + targets
        return self._multiply_adds_of(
            self.embedding,
            [(tokens, tokens)],
            tokens,
            targets,
        )

    @property
    def target_embedding(self):
        return self.embedding

    def states(self, inputs, training=None):
        return self.both_states(inputs, training)[1]

    def both_states(self, inputs, training=None):
        """Returns the states of the source beside those of the target.

        Each token of the source is scored by the logits of the state before.

        Returns:
            The pair of tensors `(batch, sources, width)` and `(batch, targets, width)`.
        """
        source_ids, target_ids, *packed = self._unpack(inputs)
        if packed:
            packing, sides = packed
            states, _ = self._decode(source_ids, target_ids, packing, training)
            return sides.split(states)
        states, _ = self._decode(source_ids, target_ids, training=training)
        sources = ops.shape(source_ids)[1]
        return states[:, :sources], states[:, sources:]

    def source_labels(self, inputs):
        """Returns the token that follows each token of the source.

        Returns:
            Integers `(batch, sources)`, or packed as the source's states are; 0 behind
            the last token, before padding and on padding.
        """
        source_ids, target_ids, *packed = self._unpack(inputs)
        next_ids = ops.pad(source_ids[:, 1:], ((0, 0), (0, 1)))
        labels = ops.where(padding_mask(source_ids), next_ids, 0)
        if not packed:
            return labels
        packing, sides = packed
        sequence = ops.concatenate([labels, ops.zeros_like(target_ids)], axis=1)
        packed_labels, _ = sides.split(packing.take(sequence))
        return packed_labels

    def attention_weights(self, source_ids, target_ids):
        _, weights = self._decode(source_ids, target_ids)
        # A block has one attention.
        return {"sequence": ops.stack([only for (only,) in weights])}

    def encode(self, source_ids, *, training=None):
        if self._recomputes:
            return source_ids
        tokens, states, mask = self._embed(source_ids, None, training=training)
        blocks = self.decoder.begin(states, self._value(tokens), mask, training)
        return ReadSource(blocks, mask)

    def start(self, memory, beams: int, capacity: int):
        if self._recomputes:
            sources = ops.repeat(memory, beams, axis=0)
            room = ops.zeros((ops.shape(sources)[0], capacity), "int32")
            return Prefixes(RecomputedState(room, sources))
        hypotheses = ops.shape(memory.mask)[0] * beams
        blocks = self.decoder.start(hypotheses, capacity)
        lengths = ops.repeat(_lengths(memory.mask), beams, axis=0)
        return Prefixes(CachedState(blocks, lengths), memory)

    def step(self, ids, position, prefixes):
        if self._recomputes:
            state = self._write_token(prefixes.state, ids, position)
            states, _ = self._decode(state.source, state.target_ids)
            place = ops.shape(state.source)[1] + position
            states = ops.take(states, place, axis=1)
            return self.logits(states), Prefixes(state)
        blocks, source_lengths = prefixes.state
        place = position
        if self.config.target_positions == "continue":
            place = source_lengths + position
        ids = ops.expand_dims(ids, 1)
        tokens, states, _ = self.embedding.step(ids, place, ())
        states, blocks = self.decoder.step(
            states,
            self._value(tokens),
            blocks,
            position,
            prefixes.memory.blocks,
            prefixes.memory.mask,
            offset=source_lengths,
        )
        logits = self.logits(self._project(states[:, 0]))
        cached = CachedState(blocks, source_lengths)
        return logits, prefixes._replace(state=cached)

    def _decode(self, source_ids, target_ids, packing=None, training=False):
        """States of both sides, ready for the logits, and the attention's weights."""
        tokens, states, layout = self._embed(
            source_ids,
            target_ids,
            packing,
            training,
        )
        states, weights = self.decoder(
            states,
            value=self._value(tokens),
            padding_mask=layout,
            return_attention_scores=True,
            training=training,
        )
        return self._project(states), weights

    def _embed(self, source_ids, target_ids, packing=None, training=False):
        """Tokens, states and layout or mask of the source and of a target after it."""
        ids, offset = source_ids, 0
        mask = padding_mask(source_ids)
        if target_ids is not None:
            ids = ops.concatenate([source_ids, target_ids], axis=1)
            if self.config.target_positions == "restart":
                if self.embedding.by_place:
                    # Each side counts from 0, and a table has to cover either.
                    for side_ids in (source_ids, target_ids):
                        self.embedding.positional.check_length(
                            side_ids.shape[1]
                        )
                sources = ops.shape(source_ids)[1]
                in_source = indices(ops.shape(ids)[1]) < sources
                offset = ops.where(in_source, 0, -_lengths(mask))
            mask = ops.concatenate([mask, padding_mask(target_ids)], axis=1)
        layout = self._layout(mask, packing)
        tokens, states = self.embedding(
            ids,
            layout=layout,
            offset=offset,
            training=training,
        )
        return tokens, states, layout


def _lengths(mask):
    """How many tokens of each sentence are real, `(batch, 1)`."""
    return ops.sum(ops.cast(mask, "int32"), axis=1, keepdims=True)
