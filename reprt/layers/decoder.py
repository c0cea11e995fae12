"""The decoder: causal self-attention, cross attention and feed-forward."""

import keras
from keras import ops

from reprt.layers.attention import PMHCA, PMMHA
from reprt.layers.blocks import BlockStack, SizedLayer
from reprt.layers.cache import BlockCache
from reprt.layers.feed_forward import FeedForward


@keras.saving.register_keras_serializable(package="reprt")
class DecoderBlock(SizedLayer):
    """One decoder block.

        Y_M = LN(PMMHA(Y, Y, value) + Y)
        Y_C = LN(PMHCA(Y_M, memory, memory_value) + Y_M)
        Y_D = LN(FFN(Y_C) + Y_C)

    Masking: by `padding_mask` and `memory_padding_mask`, or by masks that Keras
    attached, as in `PMHA`; the self-attention is always causal as well.

    Args:
        num_heads: heads p.
        key_dim: width r of each head's query and key.
        feed_forward_dim: width s of the feed-forward network's hidden layer.
        value_dim: width q of each head's value. Defaults to `key_dim`.
        dropout: rate of dropout on the attention weights and after the feed-forward
            network. Defaults to 0.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        states: tensor `(batch, targets, width)`.
        memory: the encoder's output, tensor `(batch, sources, width)`.
        value: tensor `(batch, targets, value_width)` that the self-attention weighs:
            RePE's target tokens. None means the states themselves.
        memory_value: tensor `(batch, sources, value_width)` that the cross attention
            weighs: RePE's source tokens. None means the memory itself.
        padding_mask: boolean tensor `(batch, targets)`, True on real target tokens.
        memory_padding_mask: boolean tensor `(batch, sources)`, True on real source
            tokens.
        packing: `PackedHeads` of packed states, in the place of a mask.
        memory_packing: `PackedHeads` of a packed memory.
        return_attention_scores: whether to return the attentions' weights as well.
        training: whether dropout is active.

    Returns:
        Tensor `(batch, targets, width)`, and with `return_attention_scores` the pair
        of the weights of self-attention `(batch, heads, targets, targets)` and of
        cross attention `(batch, heads, targets, sources)`.

    Raises:
        ValueError: as `PMHA`.

    Example:

    >>> import keras, reprt
    >>> block = reprt.layers.DecoderBlock(num_heads=2, key_dim=8, feed_forward_dim=32)
    >>> tuple(block(keras.ops.ones((2, 4, 16)), keras.ops.ones((2, 9, 16))).shape)
    (2, 4, 16)

    Reference: section 2.4, eq. 22 and 23 of the paper.
    """

    def build(
        self, states_shape, memory_shape, value_shape=None, memory_value_shape=None
    ):
        attention = (self.num_heads, self.key_dim, self.value_dim, self.dropout)
        policy = {"dtype": self.dtype_policy}
        self.self_attention = PMMHA(*attention, name="self_attention", **policy)
        self.cross_attention = PMHCA(*attention, name="cross_attention", **policy)
        self.feed_forward = FeedForward(
            self.feed_forward_dim, self.dropout, name="feed_forward", **policy
        )
        self.self_norm = keras.layers.LayerNormalization(name="self_norm", **policy)
        self.cross_norm = keras.layers.LayerNormalization(name="cross_norm", **policy)
        self.feed_forward_norm = keras.layers.LayerNormalization(
            name="feed_forward_norm", **policy
        )
        self.self_attention.build(
            states_shape, states_shape, value_shape or states_shape
        )
        self.cross_attention.build(
            states_shape, memory_shape, memory_value_shape or memory_shape
        )
        for layer in (
            self.feed_forward,
            self.self_norm,
            self.cross_norm,
            self.feed_forward_norm,
        ):
            layer.build(states_shape)
        self.built = True

    def call(
        self,
        states,
        memory,
        value=None,
        memory_value=None,
        padding_mask=None,
        memory_padding_mask=None,
        packing=None,
        memory_packing=None,
        return_attention_scores=False,
        training=None,
    ):
        wanted, weights, cross_weights = return_attention_scores, None, None
        attended = self.self_attention(
            states,
            states,
            states if value is None else value,
            return_attention_scores=wanted,
            key_mask=padding_mask,
            query_packing=packing,
            key_packing=packing,
            training=training,
        )
        if wanted:
            attended, weights = attended
        states = self.self_norm(attended + states)
        attended = self.cross_attention(
            states,
            memory,
            memory if memory_value is None else memory_value,
            return_attention_scores=wanted,
            key_mask=memory_padding_mask,
            query_packing=packing,
            key_packing=memory_packing,
            training=training,
        )
        if wanted:
            attended, cross_weights = attended
        states = self._fed(self.cross_norm(attended + states), training)
        return (states, (weights, cross_weights)) if wanted else states

    def _fed(self, states, training=None):
        fed = self.feed_forward(states, training=training)
        return self.feed_forward_norm(fed + states)

    def start(self, memory, memory_value, beams, capacity):
        """Returns the `BlockCache` of hypotheses that have no token yet.

        Args:
            memory: the encoder's output, tensor `(sentences, sources, width)`.
            memory_value: as in the call.
            beams: hypotheses of each sentence.
            capacity: how many tokens there is room for.
        """
        keys, values = self.cross_attention.heads(
            memory, memory if memory_value is None else memory_value
        )
        hypotheses = ops.shape(keys)[0] * beams
        own_keys, own_values = (
            # Self-attention has the sizes of cross attention.
            ops.zeros((hypotheses, self.num_heads, capacity, x.shape[3]), x.dtype)
            for x in (keys, values)
        )
        return BlockCache(own_keys, own_values, keys, values)

    def step(self, states, value, cache, position, memory_padding_mask=None):
        """Takes the block one target token further.

        Args:
            states: tensor `(hypotheses, 1, width)`, those of the tokens at `position`;
                the hypotheses of a sentence follow one another, as many of each.
            value: tensor `(hypotheses, 1, value_width)`, or None, as in the call.
            cache: the `BlockCache` that `start` or the step before returned.
            position: scalar, counted from 0.
            memory_padding_mask: as in the call.

        Returns:
            The states that the call would return at this position, and the new cache.
        """
        keys, values = self.self_attention.heads(
            states, states if value is None else value
        )
        cache = cache.written(keys, values, position)
        seen = ops.arange(ops.shape(cache.keys)[2]) <= position
        attended, _ = self.self_attention.attend(
            states, cache.keys, cache.values, attention_mask=seen[None, None]
        )
        states = self.self_norm(attended + states)
        # All hypotheses of a sentence attend to its memory at once, which is there
        # but once.
        sentences, width = ops.shape(cache.memory_keys)[0], states.shape[-1]
        attended, _ = self.cross_attention.attend(
            ops.reshape(states, (sentences, -1, width)),
            cache.memory_keys,
            cache.memory_values,
            key_mask=memory_padding_mask,
        )
        attended = ops.reshape(attended, (-1, 1, width))
        return self._fed(self.cross_norm(attended + states)), cache


@keras.saving.register_keras_serializable(package="reprt")
class Decoder(BlockStack):
    """N decoder blocks, one after the other, all given the same memory and values.

    Masking, call arguments and results are those of `DecoderBlock`, the pairs of
    weights one after the other in a tuple. Without a value, each block's value is its
    own input, as in the baseline.

    Args:
        num_blocks: number of blocks N.
        num_heads, key_dim, feed_forward_dim, value_dim, dropout: as in
            `DecoderBlock`.
        **kwargs: passed to `keras.layers.Layer`.

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
        self, states_shape, memory_shape, value_shape=None, memory_value_shape=None
    ):
        for block in self.blocks:
            block.build(states_shape, memory_shape, value_shape, memory_value_shape)
        self.built = True

    def call(
        self,
        states,
        memory,
        value=None,
        memory_value=None,
        padding_mask=None,
        memory_padding_mask=None,
        packing=None,
        memory_packing=None,
        return_attention_scores=False,
        training=None,
    ):
        weights = []
        for block in self.blocks:
            states = block(
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
            if return_attention_scores:
                states, of_block = states
                weights.append(of_block)
        return (states, tuple(weights)) if return_attention_scores else states

    def start(self, memory, memory_value, beams, capacity):
        """Returns a `BlockCache` for each block, as `DecoderBlock.start`."""
        return tuple(
            block.start(memory, memory_value, beams, capacity)
            for block in self.blocks
        )

    def step(self, states, value, caches, position, memory_padding_mask=None):
        """Takes all blocks one target token further, as `DecoderBlock.step`."""
        new = []
        for block, cache in zip(self.blocks, caches, strict=True):
            states, cache = block.step(
                states, value, cache, position, memory_padding_mask
            )
            new.append(cache)
        return states, tuple(new)
