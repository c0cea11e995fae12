"""The encoder: blocks of attention and feed-forward, each followed by Add & Norm."""

import keras

from reprt.layers.attention import PMHA
from reprt.layers.blocks import BlockStack, SizedLayer
from reprt.layers.feed_forward import FeedForward


@keras.saving.register_keras_serializable(package="reprt")
class EncoderBlock(SizedLayer):
    """One encoder block.

        X_M = LN(PMHA(X, X, value) + X)
        X_E = LN(FFN(X_M) + X_M)

    LN is `keras.layers.LayerNormalization` over the features, with Keras' epsilon
    1e-3.

    Masking: by `padding_mask`, or by masks that Keras attached, as in `PMHA`.

    Args:
        num_heads: heads p.
        key_dim: width r of each head's query and key.
        feed_forward_dim: width s of the feed-forward network's hidden layer.
        value_dim: width q of each head's value. Defaults to `key_dim`.
        dropout: rate of dropout on the attention weights and after the feed-forward
            network. Defaults to 0.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        states: tensor `(batch, length, width)`.
        value: tensor `(batch, length, value_width)` that the attention weighs: RePE's
            tokens. None, as in the baseline, means the states themselves.
        padding_mask: boolean tensor `(batch, length)`, True on real tokens.
        packing: `PackedHeads` of packed states, in the place of a mask.
        return_attention_scores: whether to return the attention's weights as well.
        training: whether dropout is active.

    Returns:
        Tensor `(batch, length, width)`, and with `return_attention_scores` the weights
        `(batch, heads, length, length)`.

    Raises:
        ValueError: as `PMHA`.

    Example:

    >>> import keras, reprt
    >>> block = reprt.layers.EncoderBlock(num_heads=2, key_dim=8, feed_forward_dim=32)
    >>> states, tokens = keras.ops.ones((2, 5, 16)), keras.ops.ones((2, 5, 8))
    >>> tuple(block(states, tokens).shape)
    (2, 5, 16)

    Reference: section 2.4, eq. 20 and 21 of the paper.
    """

    def build(self, states_shape, value_shape=None):
        attention = (self.num_heads, self.key_dim, self.value_dim, self.dropout)
        policy = {"dtype": self.dtype_policy}
        self.self_attention = PMHA(*attention, name="self_attention", **policy)
        self.feed_forward = FeedForward(
            self.feed_forward_dim, self.dropout, name="feed_forward", **policy
        )
        self.attention_norm = keras.layers.LayerNormalization(
            name="attention_norm", **policy
        )
        self.feed_forward_norm = keras.layers.LayerNormalization(
            name="feed_forward_norm", **policy
        )
        self.self_attention.build(
            states_shape, states_shape, value_shape or states_shape
        )
        for layer in (self.feed_forward, self.attention_norm, self.feed_forward_norm):
            layer.build(states_shape)
        self.built = True

    def call(
        self,
        states,
        value=None,
        padding_mask=None,
        packing=None,
        return_attention_scores=False,
        training=None,
    ):
        attended = self.self_attention(
            states,
            states,
            states if value is None else value,
            return_attention_scores=return_attention_scores,
            key_mask=padding_mask,
            query_packing=packing,
            key_packing=packing,
            training=training,
        )
        attended, weights = attended if return_attention_scores else (attended, None)
        states = self.attention_norm(attended + states)
        fed = self.feed_forward(states, training=training)
        states = self.feed_forward_norm(fed + states)
        return (states, weights) if return_attention_scores else states


@keras.saving.register_keras_serializable(package="reprt")
class Encoder(BlockStack):
    """N encoder blocks, one after the other, all given the same value.

    Masking, call arguments and results are those of `EncoderBlock`, the weights one
    after the other in a tuple. Without a value, each block's value is its own input,
    as in the baseline.

    Args:
        num_blocks: number of blocks N.
        num_heads, key_dim, feed_forward_dim, value_dim, dropout: as in
            `EncoderBlock`.
        **kwargs: passed to `keras.layers.Layer`.

    Example:

    >>> import keras, reprt
    >>> encoder = reprt.layers.Encoder(
    ...     num_blocks=2, num_heads=2, key_dim=8, feed_forward_dim=32
    ... )
    >>> tuple(encoder(keras.ops.ones((2, 5, 16))).shape)
    (2, 5, 16)

    Reference: section 2.4, eq. 21 of the paper.
    """

    block_class = EncoderBlock

    def build(self, states_shape, value_shape=None):
        for block in self.blocks:
            block.build(states_shape, value_shape)
        self.built = True

    def call(
        self,
        states,
        value=None,
        padding_mask=None,
        packing=None,
        return_attention_scores=False,
        training=None,
    ):
        weights = []
        for block in self.blocks:
            states = block(
                states,
                value,
                padding_mask=padding_mask,
                packing=packing,
                return_attention_scores=return_attention_scores,
                training=training,
            )
            if return_attention_scores:
                states, of_block = states
                weights.append(of_block)
        return (states, tuple(weights)) if return_attention_scores else states
