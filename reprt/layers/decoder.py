"""The decoder: causal self-attention, cross attention if wanted, feed-forward."""

from typing import Any

import keras

from reprt.layers.attention import PMHCA, PMMHA
from reprt.layers.cache import BlockCache
from reprt.layers.encoder import Block, BlockStack, through_blocks


@keras.saving.register_keras_serializable(package="reprt")
class DecoderBlock(Block):
    """One decoder block.

        Y_M = LN(PMMHA(Y, Y, value) + Y)
        Y_C = LN(PMHCA(Y_M, memory, memory_value) + Y_M)
        Y_D = LN(FFN(Y_C) + Y_C)

    With `norm_place="before"` each LN stands before its sublayer, as in
    `EncoderBlock`. A block that is built on states only, without a memory, has no
    cross attention: Y_C is Y_M. Arguments are those of `EncoderBlock`.

    Masking: by `padding_mask` and `memory_padding_mask`, or by masks that Keras
    attached, as in `PMHA`; the self-attention is always causal as well.

    Call arguments:
        states, value, padding_mask, packing, return_attention_scores, training: as in
            `EncoderBlock`, of the target.
        memory: the encoder's output, tensor `(batch, sources, width)`; None in a block
            without cross attention.
        memory_value: tensor `(batch, sources, value_width)` that the cross attention
            weighs: RePE's source tokens. None means the memory itself.
        memory_padding_mask, memory_packing: of the source, as those of the target.

    Returns:
        Tensor `(batch, targets, width)`, and with `return_attention_scores` a tuple of
        the weights of self-attention `(batch, heads, targets, targets)` and, with a
        memory, of cross attention `(batch, heads, targets, sources)`.

    >>> import keras, reprt
    >>> block = reprt.layers.DecoderBlock(num_heads=2, key_dim=8, feed_forward_dim=32)
    >>> tuple(block(keras.ops.ones((2, 4, 16)), keras.ops.ones((2, 9, 16))).shape)
    (2, 4, 16)

    Reference: appendix A.2, eq. 33 and 34, and figure 2 of the paper.
    """

    cross_attention: Any
    cross_norm: Any

    def build(
        self, states_shape, memory_shape=None, value_shape=None, memory_value_shape=None
    ):
        crossing = memory_shape is not None
        self.self_attention = self._attention(PMMHA, "self_attention", self.position)
        self.cross_attention = (
            self._attention(PMHCA, "cross_attention") if crossing else None
        )
        self.feed_forward = self._feed_forward()
        self.self_norm = self._layer_norm("self_norm")
        self.cross_norm = self._layer_norm("cross_norm") if crossing else None
        self.feed_forward_norm = self._layer_norm("feed_forward_norm")
        self.self_attention.build(states_shape, states_shape, value_shape)
        if crossing:
            self.cross_attention.build(states_shape, memory_shape, memory_value_shape)
            self.cross_norm.build(states_shape)
        for layer in (self.feed_forward, self.self_norm, self.feed_forward_norm):
            layer.build(states_shape)

    def call(
        self,
        states,
        memory=None,
        value=None,
        memory_value=None,
        padding_mask=None,
        memory_padding_mask=None,
        packing=None,
        memory_packing=None,
        return_attention_scores=False,
        training=None,
    ):
        if (memory is None) == (self.cross_attention is not None):
            raise ValueError(
                "Expected a `memory` where the block was built with one, and none "
                f"elsewhere. Received: {'none' if memory is None else 'one'}."
            )
        states, own = self._attend(
            self.self_attention,
            self.self_norm,
            states,
            value,
            training,
            key_mask=padding_mask,
            query_packing=packing,
        )
        across = None
        if self.cross_attention is not None:
            states, across = self._attend(
                self.cross_attention,
                self.cross_norm,
                states,
                memory_value,
                training,
                memory,
                key_mask=memory_padding_mask,
                query_packing=packing,
                key_packing=memory_packing,
            )
        states = self._feed(states, training)
        weights = (own,) if across is None else (own, across)
        return (states, weights) if return_attention_scores else states

    def begin(self, states, value=None, padding_mask=None, training=None):
        """Takes a block without a memory through the beginning of a sequence.

        Returns the states as the call does, and the keys and values that later tokens
        attend to: the `memory` of `step`.
        """
        x = self._before(self.self_norm, states)
        heads = self.self_attention.heads(x, value, padding_mask)
        options = {"padding_mask": padding_mask, "training": training}
        return self(states, value=value, **options), heads

    def step(
        self,
        states,
        value,
        cache,
        position,
        memory=None,
        memory_padding_mask=None,
        first=0,
    ):
        """Returns the call's states of one further target token, and the new cache.

        Args:
            states: tensor `(hypotheses, 1, width)`, those of the tokens at `position`;
                the hypotheses of a sentence follow one another, as many of each.
            value: as in the call, of these tokens.
            cache: the `BlockCache` that the step before returned, or an empty one.
            position: scalar, counted from 0.
            memory: keys and values of the sentences' sources, as `PMHA.heads` makes
                them, or of the sequences' beginnings, as `begin` does.
            memory_padding_mask: as in the call, or of the sequence's beginning.
            first: how many tokens that beginning has, a scalar or integers
                `(hypotheses, 1)`.
        """
        if memory is not None:
            mask = memory_padding_mask
            memory = *memory, None if mask is None else mask[:, None]
        crossing = self.cross_attention is not None
        x = self._before(self.self_norm, states)
        token = self.self_attention.token(x, value, first + position)
        cache = cache.written(*token, position)
        attended = self.self_attention.attend_to(
            x, cache.until(position), None if crossing else memory, first, position
        )
        states = self._after(self.self_norm, attended, states)
        if crossing:
            x = self._before(self.cross_norm, states)
            attended = self.cross_attention.attend_to(x, (), memory)
            states = self._after(self.cross_norm, attended, states)
        return self._feed(states), cache


@keras.saving.register_keras_serializable(package="reprt")
class Decoder(BlockStack):
    """N decoder blocks, one after the other, all given the same memory and values.

    Arguments are those of `Encoder`; masking, call arguments and results are those of
    `DecoderBlock`, the weights of each in a tuple.

    >>> import keras, reprt
    >>> decoder = reprt.layers.Decoder(
    ...     num_blocks=2, num_heads=2, key_dim=8, feed_forward_dim=32
    ... )
    >>> tuple(decoder(keras.ops.ones((2, 4, 16)), keras.ops.ones((2, 9, 16))).shape)
    (2, 4, 16)

    Reference: appendix A.2, eq. 34, and figure 2 of the paper.
    """

    block_class, build, call = through_blocks(DecoderBlock)

    def begin(self, states, value=None, padding_mask=None, training=None):
        """Returns each block's keys and values, as `DecoderBlock.begin` does."""
        memories = []
        for block in self.blocks:
            states, memory = block.begin(states, value, padding_mask, training)
            memories.append(memory)
        return tuple(memories)

    def read(self, memory, memory_value=None):
        """Returns each block's keys and values of an encoded source."""
        return tuple(
            block.cross_attention.heads(memory, memory_value) for block in self.blocks
        )

    def start(self, hypotheses, capacity):
        """Returns each block's `BlockCache`, with room for `capacity` tokens."""
        return tuple(
            BlockCache.empty(block.self_attention, hypotheses, capacity)
            for block in self.blocks
        )

    def step(
        self, states, value, caches, position, memories, memory_mask=None, first=0
    ):
        """Takes all blocks one target token further, as `DecoderBlock.step`.

        The memories are what `read` or `begin` returned.
        """
        new = []
        for block, cache, memory in zip(self.blocks, caches, memories, strict=True):
            states, cache = block.step(
                states, value, cache, position, memory, memory_mask, first
            )
            new.append(cache)
        return self._finish(states), tuple(new)
