"""The decoder: causal self-attention, cross attention if wanted, feed-forward."""

from typing import Any

import keras

from reprt.layers.attention import PMHCA, PMMHA
from reprt.layers.blocks import Block, BlockStack
from reprt.layers.cache import BlockCache
from reprt.layers.layout import layout_of


@keras.saving.register_keras_serializable(package="reprt")
class DecoderBlock(Block):
    """One decoder block.

        Y_M = LN(PMMHA(Y, Y, value) + Y)
        Y_C = LN(PMHCA(Y_M, memory, memory_value) + Y_M)
        Y_D = LN(FFN(Y_C) + Y_C)

    LN is `keras.layers.LayerNormalization` over the features. With
    `norm_place="before"` it stands before each sublayer instead. A block that is
    built on states only, without a memory, has no cross attention: Y_C is Y_M.

    Masking: by `padding_mask` and `memory_padding_mask`, or by masks that Keras
    attached to states and memory; the self-attention is always causal as well.

    Args:
        num_heads: attention heads p.
        key_dim: width r of each head's query and key.
        feed_forward_dim: width s of the feed-forward network's hidden layer.
        value_dim: width q of each head's value. Defaults to `key_dim`.
        dropout: rate of dropout. Defaults to 0.
        dropout_places: where dropout acts, of `"attention_weights"`,
            `"attention_output"` and `"feed_forward_output"`; `"embeddings"` and
            `"values"` are no places within a block. Defaults to all but
            `"attention_output"`, as in TensorFlow's tutorial.
        norm_place: LN `"after"` each residual sum or `"before"` each sublayer. Defaults
            to `"after"`.
        layer_norm_epsilon: LN's epsilon. Defaults to 1e-3.
        layer_norm_gains: whether LN has a learnt gain and shift for each
            channel. Defaults to True.
        attention_bias: whether attention's projections have biases. Defaults to True.
        query_key_norm: whether each head's queries and keys have length 1, with a
            learnt scale instead of 1 / sqrt(key_dim). Defaults to False.
        activation: of the feed-forward network, as in `FeedForward`. Defaults to
            `"relu"`.
        position: a `Positional` that acts within the self-attention, or None.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        states: tensor `(batch, targets, width)`.
        memory: the encoder's output, tensor `(batch, sources, memory_width)`; None in
            a block without cross attention.
        value: tensor `(batch, targets, value_width)` that the self-attention
            weighs: RePE's tokens. None, as in the baseline, means the states
            themselves.
        memory_value: tensor `(batch, sources, value_width)` that the cross attention
            weighs: RePE's source tokens. None means the memory itself.
        padding_mask: boolean tensor `(batch, targets)`, True on real tokens. Of packed
            states, `(1, packed, width)`, their `reprt.layers.layout.Packed` instead.
        memory_padding_mask: the same of the memory, `(batch, sources)`.
        return_attention_scores: whether to return the attentions' weights as well.
        training: whether dropout is active.

    Returns:
        Tensor `(batch, targets, width)`, and with `return_attention_scores` a tuple of
        the weights of self-attention `(batch, heads, targets, targets)` and, with a
        memory, of cross attention `(batch, heads, targets, sources)`; each
        of them None if packed.

    Raises:
        ValueError: for an unknown place of dropout or norms, an unknown activation, a
            size below 1, a memory where there is no cross attention, an input whose
            rank is not 3, a mask that is not boolean, or a position that does not act
            within attention or has other heads.

    >>> import keras, reprt
    >>> block = reprt.layers.DecoderBlock(num_heads=2, key_dim=8, feed_forward_dim=32)
    >>> tuple(block(keras.ops.ones((2, 4, 16)), keras.ops.ones((2, 9, 16))).shape)
    (2, 4, 16)

    Reference: appendix A.2, eq. 33 and 34, and figure 2 of the paper.
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
        crosses = memory_shape is not None
        self.self_attention = self._attention(
            PMMHA, "self_attention", self.position
        )
        self.cross_attention = (
            self._attention(PMHCA, "cross_attention") if crosses else None
        )
        self.feed_forward = self._feed_forward()
        self.self_norm = self._layer_norm("self_norm")
        self.cross_norm = self._layer_norm("cross_norm") if crosses else None
        self.feed_forward_norm = self._layer_norm("feed_forward_norm")
        self.self_attention.build(states_shape, states_shape, value_shape)
        if crosses:
            self.cross_attention.build(
                states_shape, memory_shape, memory_value_shape
            )
            self.cross_norm.build(states_shape)
        for layer in (
            self.feed_forward,
            self.self_norm,
            self.feed_forward_norm,
        ):
            layer.build(states_shape)

    def call(
        self,
        states,
        memory=None,
        value=None,
        memory_value=None,
        padding_mask=None,
        memory_padding_mask=None,
        return_attention_scores=False,
        training=None,
    ):
        crosses = self.cross_attention is not None
        has_memory = memory is not None
        if has_memory != crosses:
            raise ValueError(
                "Expected a `memory` where the block was built with one, and none "
                f"elsewhere. Received: {'one' if has_memory else 'none'}."
            )
        states, weights = self._attend(
            self.self_attention,
            self.self_norm,
            states,
            training,
            value=value,
            key_mask=padding_mask,
        )
        weights = (weights,)
        if crosses:
            states, cross_weights = self._attend(
                self.cross_attention,
                self.cross_norm,
                states,
                training,
                key=memory,
                value=memory_value,
                key_mask=memory_padding_mask,
                query_layout=layout_of(padding_mask),
            )
            weights = (*weights, cross_weights)
        states = self._feed(states, training)
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
        offset=0,
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
            offset: how many tokens that beginning has, a scalar or integers
                `(hypotheses, 1)`.
        """
        crosses = self.cross_attention is not None
        mask = memory_padding_mask
        if mask is not None:
            mask = mask[:, None]
        if memory is not None:
            memory = (*memory, mask)
        x = self._before(self.self_norm, states)
        token = self.self_attention.token(x, value, offset + position)
        cache = cache.write(*token, position)
        output = self.self_attention.attend_to(
            x,
            cache.sequences_until(position),
            None if crosses else memory,
            offset,
            position,
        )
        states = self._after(self.self_norm, output, states)
        if crosses:
            x = self._before(self.cross_norm, states)
            output = self.cross_attention.attend_to(x, (), memory)
            states = self._after(self.cross_norm, output, states)
        return self._feed(states), cache


@keras.saving.register_keras_serializable(package="reprt")
class Decoder(BlockStack):
    """N decoder blocks, one after the other, all given the same memory and values.

    Each is a `DecoderBlock`:

        Y_M = LN(PMMHA(Y, Y, value) + Y)
        Y_C = LN(PMHCA(Y_M, memory, memory_value) + Y_M)
        Y_D = LN(FFN(Y_C) + Y_C)

    A stack that is built on states only, without a memory, has no cross attention.

    Masking: by `padding_mask` and `memory_padding_mask`, or by masks that Keras
    attached to states and memory; the self-attention is always causal as well.

    Args:
        num_blocks: number of blocks N.
        num_heads: attention heads p of each block.
        key_dim: width r of each head's query and key.
        feed_forward_dim: width s of the feed-forward networks' hidden layer.
        value_dim: width q of each head's value. Defaults to `key_dim`.
        dropout: rate of dropout. Defaults to 0.
        dropout_places: where dropout acts, of `"attention_weights"`,
            `"attention_output"` and `"feed_forward_output"`; `"embeddings"` and
            `"values"` are no places within a block. Defaults to all but
            `"attention_output"`, as in TensorFlow's tutorial.
        norm_place: LayerNormalization `"after"` each residual sum or `"before"` each
            sublayer. Defaults to `"after"`.
        layer_norm_epsilon: LayerNormalization's epsilon. Defaults to 1e-3.
        layer_norm_gains: whether it has a learnt gain and shift for each
            channel. Defaults to True.
        attention_bias: whether attention's projections have biases. Defaults to True.
        query_key_norm: whether each head's queries and keys have length 1, with a
            learnt scale instead of 1 / sqrt(key_dim). Defaults to False.
        activation: of the feed-forward networks, as in `FeedForward`. Defaults to
            `"relu"`.
        position: a `Positional` that acts within self-attention, or None; all blocks
            share it.
        final_norm: whether a LayerNormalization follows the last block, which ends
            without one where norms stand before sublayers. Defaults to False.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        states: tensor `(batch, targets, width)`.
        memory: the encoder's output, tensor `(batch, sources, memory_width)`; None in
            a stack without cross attention.
        value: tensor `(batch, targets, value_width)` that every self-attention
            weighs: RePE's tokens. None, as in the baseline, means each
            block's own input.
        memory_value: tensor `(batch, sources, value_width)` that the cross attention
            weighs: RePE's source tokens. None means the memory itself.
        padding_mask: boolean tensor `(batch, targets)`, True on real tokens. Of packed
            states, `(1, packed, width)`, their `reprt.layers.layout.Packed` instead.
        memory_padding_mask: the same of the memory, `(batch, sources)`.
        return_attention_scores: whether to return the attentions' weights as well.
        training: whether dropout is active.

    Returns:
        Tensor `(batch, targets, width)`, and with `return_attention_scores` for each
        block a tuple of the weights of self-attention `(batch, heads, targets,
        targets)` and, with a memory, of cross attention `(batch, heads, targets,
        sources)`; each of them None if packed.

    Raises:
        ValueError: for an unknown place of dropout or norms, an unknown activation, a
            size below 1, a memory where there is no cross attention, an input whose
            rank is not 3, a mask that is not boolean, or a position that does not act
            within attention or has other heads.

    >>> import keras, reprt
    >>> decoder = reprt.layers.Decoder(
    ...     num_blocks=2, num_heads=2, key_dim=8, feed_forward_dim=32
    ... )
    >>> tuple(decoder(keras.ops.ones((2, 4, 16)), keras.ops.ones((2, 9, 16))).shape)
    (2, 4, 16)

    Reference: appendix A.2, eq. 34, and figure 2 of the paper.
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

    def call(
        self,
        states,
        memory=None,
        value=None,
        memory_value=None,
        padding_mask=None,
        memory_padding_mask=None,
        return_attention_scores=False,
        training=None,
    ):
        states, weights = self._through(
            states,
            memory,
            value,
            memory_value,
            padding_mask=padding_mask,
            memory_padding_mask=memory_padding_mask,
            training=training,
        )
        return (states, weights) if return_attention_scores else states

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
            block.cross_attention.heads(memory, memory_value)
            for block in self.blocks
        )

    def start(self, hypotheses, capacity):
        """Returns each block's `BlockCache`, with room for `capacity` tokens."""
        return tuple(
            BlockCache.empty(block.self_attention, hypotheses, capacity)
            for block in self.blocks
        )

    def step(
        self,
        states,
        value,
        caches,
        position,
        memories,
        memory_padding_mask=None,
        offset=0,
    ):
        """Takes all blocks one target token further, as `DecoderBlock.step`.

        The memories are what `read` or `begin` returned.
        """
        new = []
        for block, cache, memory in zip(
            self.blocks,
            caches,
            memories,
            strict=True,
        ):
            states, cache = block.step(
                states,
                value,
                cache,
                position,
                memory,
                memory_padding_mask,
                offset,
            )
            new.append(cache)
        return self._finish(states), tuple(new)
