"""The decoder: causal self-attention, cross attention if wanted, feed-forward."""

from typing import Any

import keras

from reprt.layers.attention import PMHCA, PMMHA
from reprt.layers.cache import BlockCache
from reprt.layers.encoder import Block, BlockStack


@keras.saving.register_keras_serializable(package="reprt")
class DecoderBlock(Block):
    """One decoder block.

        Y_M = LN(PMMHA(Y, Y, value) + Y)
        Y_C = LN(PMHCA(Y_M, memory, memory_value) + Y_M)
        Y_D = LN(FFN(Y_C) + Y_C)

    With `norm_place="before"` each LN stands before its sublayer, as in
    `EncoderBlock`. A block that is built on states alone, without a memory, has no
    cross attention: Y_C is Y_M.

    Masking: by `padding_mask` and `memory_padding_mask`, or by masks that Keras
    attached, as in `PMHA`; the self-attention is always causal as well.

    Args:
        position: a `Positional` that acts within the self-attention, such as
            `RotaryPositional`, or None.
        **kwargs: the fields of `BlockSettings`, and what goes to `keras.layers.Layer`.

    Call arguments:
        states: tensor `(batch, targets, width)`.
        memory: the encoder's output, tensor `(batch, sources, width)`; None in a block
            without cross attention.
        value: tensor `(batch, targets, value_width)` that the self-attention weighs:
            RePE's target tokens. None means the states themselves.
        memory_value: tensor `(batch, sources, value_width)` that the cross attention
            weighs: RePE's source tokens. None means the memory itself.
        padding_mask: boolean tensor `(batch, targets)`, True on real target tokens.
        memory_padding_mask: boolean tensor `(batch, sources)`, True on real source
            tokens.
        packing: `PackedHeads` of packed states, instead of a mask.
        memory_packing: `PackedHeads` of a packed memory.
        return_attention_scores: whether to return the attentions' weights as well.
        training: whether dropout is active.

    Returns:
        Tensor `(batch, targets, width)`, and with `return_attention_scores` the pair
        of the weights of self-attention `(batch, heads, targets, targets)` and of
        cross attention `(batch, heads, targets, sources)`, or None.

    Raises:
        ValueError: as `PMHA`, and for a memory if the block was built without one, or
            no memory if it was built with one.

    Example:

    >>> import keras, reprt
    >>> block = reprt.layers.DecoderBlock(num_heads=2, key_dim=8, feed_forward_dim=32)
    >>> tuple(block(keras.ops.ones((2, 4, 16)), keras.ops.ones((2, 9, 16))).shape)
    (2, 4, 16)

    Reference: section 2.4, eq. 22 and 23 of the paper.
    """

    cross_attention: Any
    cross_norm: Any

    def build(
        self,
        states_shape,
        memory_shape=None,
        value_shape=None,
        memory_value_shape=None,
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
        self.self_attention.build(
            states_shape, states_shape, value_shape or states_shape
        )
        if crossing:
            self.cross_attention.build(
                states_shape, memory_shape, memory_value_shape or memory_shape
            )
            self.cross_norm.build(states_shape)
        for layer in (self.feed_forward, self.self_norm, self.feed_forward_norm):
            layer.build(states_shape)
        self.built = True

    def compute_output_shape(
        self,
        states_shape,
        memory_shape=None,
        value_shape=None,
        memory_value_shape=None,
    ):
        return states_shape

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
        def attend(x):
            return self._attend(
                self.self_attention,
                x,
                x,
                value,
                return_attention_scores,
                key_mask=padding_mask,
                query_packing=packing,
                key_packing=packing,
                training=training,
            )

        def attend_to_memory(x):
            return self._attend(
                self.cross_attention,
                x,
                memory,
                memory_value,
                return_attention_scores,
                key_mask=memory_padding_mask,
                query_packing=packing,
                key_packing=memory_packing,
                training=training,
            )

        self._check_memory(memory)
        states, weights = self._apply_sublayers(
            states, attend, attend_to_memory, training
        )
        return (states, weights) if return_attention_scores else states

    def _apply_sublayers(self, states, attend, attend_to_memory, training=None):
        """The new states, and what the attentions return beside their outputs."""
        states, own = self._residual(states, self.self_norm, attend)
        across = None
        if self.cross_attention is not None:
            states, across = self._residual(states, self.cross_norm, attend_to_memory)
        return self._feed(states, training), (own, across)

    def _check_memory(self, memory):
        if (memory is None) != (self.cross_attention is None):
            built, received = ("on", "no") if memory is None else ("without", "a")
            raise ValueError(
                f"{self.name!r} was built {built} a memory. Received {received} memory."
            )

    def begin(self, states, value=None, padding_mask=None, training=None):
        """Takes a block without a memory through the beginning of a sequence.

        Args:
            states, value, padding_mask, training: as in the call.

        Returns:
            The states that the call returns, and what later tokens attend to: the
            `memory` of a `BlockCache`.
        """
        self._check_memory(None)

        def attend(x):
            weighed = x if value is None else value
            heads = self.self_attention.heads(x, weighed, padding_mask)
            attended, _ = self._attend(
                self.self_attention,
                x,
                x,
                value,
                False,
                key_mask=padding_mask,
                training=training,
            )
            return attended, heads

        states, (heads, _) = self._apply_sublayers(states, attend, None, training)
        return states, heads

    def start(self, hypotheses, capacity, memory=None, memory_value=None):
        """Returns the `BlockCache` of hypotheses that have no token yet.

        Args:
            hypotheses: how many there are, as many of each sentence.
            capacity: how many tokens there is room for.
            memory: the encoder's output, tensor `(sentences, sources, width)`.
            memory_value: as in the call.
        """
        self._check_memory(memory)
        cache = BlockCache.empty(self.self_attention, hypotheses, capacity)
        if memory is None:
            return cache
        value = memory if memory_value is None else memory_value
        return cache._replace(memory=self.cross_attention.heads(memory, value))

    def step(self, states, value, cache, position, memory_padding_mask=None, first=0):
        """Takes the block one target token further.

        Args:
            states: tensor `(hypotheses, 1, width)`, those of the tokens at `position`;
                the hypotheses of a sentence follow one another, as many of each.
            value: tensor `(hypotheses, 1, value_width)`, or None, as in the call.
            cache: the `BlockCache` that `start` or the step before returned.
            position: scalar, counted from 0.
            memory_padding_mask: as in the call, or of the sequence's beginning.
            first: how many tokens that beginning has, a scalar or integers
                `(hypotheses, 1)`.

        Returns:
            The states that the call would return at this position, and the new cache.
        """

        memory = None
        if cache.memory:
            mask = memory_padding_mask
            memory = *cache.memory, None if mask is None else mask[:, None]
        before = memory if self.cross_attention is None else None

        def attend(x):
            weighed = x if value is None else value
            token = self.self_attention.token(x, weighed, first + position)
            written = cache.written(*token, position)
            return (
                self.self_attention.attend_to(
                    x, written.until(position), before, first, position
                ),
                written,
            )

        def attend_to_memory(x):
            return self.cross_attention.attend_to(x, (), memory), None

        states, (cache, _) = self._apply_sublayers(states, attend, attend_to_memory)
        return states, cache


@keras.saving.register_keras_serializable(package="reprt")
class Decoder(BlockStack):
    """N decoder blocks, one after the other, all given the same memory and values.

    Masking, call arguments and results are those of `DecoderBlock`, the pairs of
    weights one after the other in a tuple. Without a value, each block's value is its
    own input, as in the baseline.

    Args:
        num_blocks: number of blocks N.
        final_norm: whether a LayerNormalization follows the last block, which ends
            without one where norms stand before sublayers. Defaults to False.
        position, **kwargs: as in `DecoderBlock`; all blocks share the position.

    Example:

    >>> import keras, reprt
    >>> decoder = reprt.layers.Decoder(
    ...     num_blocks=2, num_heads=2, key_dim=8, feed_forward_dim=32
    ... )
    >>> tuple(decoder(keras.ops.ones((2, 4, 16)), keras.ops.ones((2, 9, 16))).shape)
    (2, 4, 16)

    Reference: section 2.4, eq. 23 of the paper.
    """

    block_class = DecoderBlock

    def build(
        self,
        states_shape,
        memory_shape=None,
        value_shape=None,
        memory_value_shape=None,
    ):
        self._build(states_shape, memory_shape, value_shape, memory_value_shape)

    def compute_output_shape(
        self,
        states_shape,
        memory_shape=None,
        value_shape=None,
        memory_value_shape=None,
    ):
        return states_shape

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
        return self._run(
            states,
            memory,
            value,
            memory_value,
            padding_mask=padding_mask,
            memory_padding_mask=memory_padding_mask,
            packing=packing,
            memory_packing=memory_packing,
            return_attention_scores=return_attention_scores,
            training=training,
        )

    def begin(self, states, value=None, padding_mask=None, training=None):
        """Takes all blocks through the beginning of a sequence.

        Returns:
            For each block what `DecoderBlock.begin` returns beside the states.
        """
        memories = []
        for block in self.blocks:
            states, memory = block.begin(states, value, padding_mask, training)
            memories.append(memory)
        return tuple(memories)

    def start(self, hypotheses, capacity, memory=None, memory_value=None):
        """Returns a `BlockCache` for each block, as `DecoderBlock.start`."""
        return tuple(
            block.start(hypotheses, capacity, memory, memory_value)
            for block in self.blocks
        )

    def step(self, states, value, caches, position, memory_padding_mask=None, first=0):
        """Takes all blocks one target token further, as `DecoderBlock.step`."""
        new = []
        for block, cache in zip(self.blocks, caches, strict=True):
            states, cache = block.step(
                states, value, cache, position, memory_padding_mask, first
            )
            new.append(cache)
        return self._finish(states), tuple(new)
