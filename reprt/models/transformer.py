"""The encoder-decoder Transformer, from the baseline to RePE, all by settings."""

from typing import Any, NamedTuple

import keras
from keras import ops

from reprt.layers import Decoder, Encoder, padding_mask
from reprt.models.block_model import BlockModel, CachedState, RecomputedState
from reprt.models.prefixes import Prefixes
from reprt.models.settings import TransformerConfig


class Memory(NamedTuple):
    """What the decoder needs of an encoded source.

    Attributes:
        states: the encoder's output, `(batch, sources, width)`.
        tokens: the source's embeddings, `(batch, sources, m)`.
        mask: boolean, `(batch, sources)`, True on real tokens; of packed states and
            tokens their `Packed`.
    """

    states: Any
    tokens: Any
    mask: Any


@keras.saving.register_keras_serializable(package="reprt")
class Transformer(BlockModel):
    """Encoder and decoder with teacher forcing: ids of both sides to logits.

        logits = decoder(target, encoder(source)) W + b

    The logits at position t score the token after target token t. `reprt.models.build`
    makes one from the names of the paper's models.

    Masking: padding changes logits only with `padding_in_statistics=True`.

    Args:
        source_vocab_size: number of source ids, padding (0) included.
        target_vocab_size: number of target ids, padding (0) included.
        config: a `TransformerConfig`, or its fields.
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
            more tokens than a table of positions has, or a shared embedding of
            vocabularies of different sizes.

    >>> import keras, reprt
    >>> model = reprt.models.build("repe", source_vocab_size=30, target_vocab_size=20)
    >>> source, target = keras.ops.array([[2, 5, 3, 0]]), keras.ops.array([[2, 7]])
    >>> tuple(model((source, target)).shape)
    (1, 2, 20)

    Reference: section 2 (RePE) and appendix A (baseline) of the paper.
    """

    config_class = TransformerConfig
    packed_layout = "sides"

    def __init__(self, source_vocab_size, target_vocab_size, config, **kwargs):
        super().__init__(source_vocab_size, target_vocab_size, config, **kwargs)
        config = self.config
        self.source_embedding = self._embedding(
            "encoder", source_vocab_size, "source_embedding"
        )
        table = None
        if config.shared_embedding:
            table = self.source_embedding.embedding
        self.target_embedding = self._embedding(
            "decoder",
            target_vocab_size,
            "target_embedding",
            table,
        )
        self.looks_ahead = not self.target_embedding.causal
        self._recomputes = not self.target_embedding.has_step
        self.padding_matters = config.padding_in_statistics
        self.encoder = self._stack(
            Encoder,
            self.source_embedding,
            final_norm=config.final_norm == "both",
        )
        self.decoder = self._stack(
            Decoder,
            self.target_embedding,
            final_norm=config.final_norm != "none",
        )
        if config.output_tying == "none":
            self.output_dense = self._dense(
                target_vocab_size, "output", use_bias=True
            )
        elif config.output_tying == "projected":
            self.output_projection = self._dense(
                config.embedding_dim, "output_projection"
            )

    def build(self, input_shape=None):
        if self.built:
            return
        # Every size is in the config, so the weights exist before the first call.
        ids = (None, None)
        self.source_embedding.build(ids)
        self.target_embedding.build(ids)
        tokens, states = self.source_embedding.compute_output_shape(ids)
        value = self._value(tokens)
        self.encoder.build(states, value)
        self.decoder.build(states, states, value, value)
        for layer in (self.output_dense, self.output_projection):
            if layer is not None:
                layer.build(states)

    def states(self, inputs, training=None):
        source_ids, target_ids, *packings = self._unpack(inputs)
        source_packing, target_packing = packings or (None, None)
        memory, _ = self._encode(source_ids, source_packing, training)
        states, _ = self._decode(target_ids, memory, target_packing, training)
        return states

    def attention_weights(self, source_ids, target_ids):
        memory, encoder = self._encode(source_ids, training=False)
        _, pairs = self._decode(target_ids, memory)
        decoder, cross = zip(*pairs, strict=True)
        kinds = {"encoder": encoder, "decoder": decoder, "cross": cross}
        return {kind: ops.stack(weights) for kind, weights in kinds.items()}

    def encode(self, source_ids, *, training=None):
        return self._encode(source_ids, training=training)[0]

    def start(self, memory: Memory, beams: int, capacity: int):
        hypotheses = ops.shape(memory.mask)[0] * beams
        if self._recomputes:
            room = ops.zeros((hypotheses, capacity), "int32")
            repeated = [ops.repeat(tensor, beams, axis=0) for tensor in memory]
            memory = Memory(*repeated)
            return Prefixes(RecomputedState(room, memory))
        blocks = self.decoder.start(hypotheses, capacity)
        statistics = self.target_embedding.start(hypotheses)
        value = self._value(memory.tokens)
        read = self.decoder.read(memory.states, value)
        state = CachedState(blocks, statistics)
        return Prefixes(state, (read, memory.mask))

    def step(self, ids, position, prefixes):
        if self._recomputes:
            state = self._write_token(prefixes.state, ids, position)
            states, _ = self._decode(
                state.target_ids, state.source, count_padding=False
            )
            states = ops.take(states, position, axis=1)
            return self.logits(states), Prefixes(state)
        blocks, statistics = prefixes.state
        tokens, states, statistics = self.target_embedding.step(
            ops.expand_dims(ids, 1), position, statistics
        )
        states, blocks = self.decoder.step(
            states,
            self._value(tokens),
            blocks,
            position,
            *prefixes.memory,
        )
        prefixes = prefixes._replace(state=CachedState(blocks, statistics))
        return self.logits(self._project(states[:, 0])), prefixes

    def multiply_adds(self, sources, targets):
        attentions = (sources, sources), (targets, targets), (targets, sources)
        tokens = sources + targets
        return self._multiply_adds_of(
            self.target_embedding,
            attentions,
            tokens,
            targets,
        )

    def _encode(self, source_ids, packing=None, training=None):
        """The `Memory` of the source, and the attention's weights."""
        tokens, states, layout = self._embed(
            self.source_embedding,
            source_ids,
            packing,
            training,
        )
        states, weights = self.encoder(
            states,
            self._value(tokens),
            padding_mask=layout,
            return_attention_scores=True,
            training=training,
        )
        return Memory(states, tokens, layout), weights

    def _decode(
        self,
        target_ids,
        memory,
        packing=None,
        training=False,
        count_padding=None,
    ):
        """The target's states, ready for the logits, and the attentions' weights."""
        tokens, states, layout = self._embed(
            self.target_embedding,
            target_ids,
            packing,
            training,
            count_padding,
        )
        states, weights = self.decoder(
            states,
            memory.states,
            self._value(tokens),
            self._value(memory.tokens),
            padding_mask=layout,
            memory_padding_mask=memory.mask,
            return_attention_scores=True,
            training=training,
        )
        return self._project(states), weights

    def _embed(self, embedding, ids, packing, training, count_padding=None):
        """Tokens and states of one side, and its padding mask or layout."""
        mask = padding_mask(ids)
        if count_padding is None:
            count_padding = self.config.padding_in_statistics
        statistics_mask = ops.ones_like(mask) if count_padding else mask
        layout = self._layout(mask, packing)
        tokens, states = embedding(
            ids,
            statistics_mask=statistics_mask,
            layout=layout,
            training=training,
        )
        return tokens, states, layout
