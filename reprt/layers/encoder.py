"""The encoder: self-attention and feed-forward."""

import keras

from reprt.layers.attention import PMHA
from reprt.layers.blocks import Block, BlockStack


@keras.saving.register_keras_serializable(package="reprt")
class EncoderBlock(Block):
    """One encoder block.

        X_M = LN(PMHA(X, X, value) + X)
        X_E = LN(FFN(X_M) + X_M)

    LN is `keras.layers.LayerNormalization` over the features. With
    `norm_place="before"` it stands before each sublayer instead:

        X_M = PMHA(LN(X), LN(X), value) + X
        X_E = FFN(LN(X_M)) + X_M

    Masking: by `padding_mask`, or by a mask that Keras attached to the states, which
    stays attached.

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
        states: tensor `(batch, length, width)`.
        value: tensor `(batch, length, value_width)` that the attention weighs: RePE's
            tokens. None, as in the baseline, means the states themselves.
        padding_mask: boolean tensor `(batch, length)`, True on real tokens. Of packed
            states, `(1, packed, width)`, their `reprt.layers.layout.Packed` instead.
        return_attention_scores: whether to return the attention's weights as well.
        training: whether dropout is active.

    Returns:
        Tensor `(batch, length, width)`, and with `return_attention_scores` the weights
        `(batch, heads, length, length)`; None if packed.

    Raises:
        ValueError: for an unknown place of dropout or norms, an unknown activation, a
            size below 1, an input whose rank is not 3, a mask that is not boolean, or a
            position that does not act within attention or has other heads.

    >>> import keras, reprt
    >>> block = reprt.layers.EncoderBlock(num_heads=2, key_dim=8, feed_forward_dim=32)
    >>> states, tokens = keras.ops.ones((2, 5, 16)), keras.ops.ones((2, 5, 8))
    >>> tuple(block(states, tokens).shape)
    (2, 5, 16)

    Reference: appendix A.1, eq. 26 and 27, and figure 2 of the paper.
    """

    def build(self, states_shape, value_shape=None):
        self.self_attention = self._attention(
            PMHA, "self_attention", self.position
        )
        self.feed_forward = self._feed_forward()
        self.attention_norm = self._layer_norm("attention_norm")
        self.feed_forward_norm = self._layer_norm("feed_forward_norm")
        self.self_attention.build(states_shape, states_shape, value_shape)
        for layer in (
            self.feed_forward,
            self.attention_norm,
            self.feed_forward_norm,
        ):
            layer.build(states_shape)

    def call(
        self,
        states,
        value=None,
        padding_mask=None,
        return_attention_scores=False,
        training=None,
    ):
        states, weights = self._attend(
            self.self_attention,
            self.attention_norm,
            states,
            training,
            value=value,
            key_mask=padding_mask,
        )
        states = self._feed(states, training)
        return (states, weights) if return_attention_scores else states


@keras.saving.register_keras_serializable(package="reprt")
class Encoder(BlockStack):
    """N encoder blocks, one after the other, all given the same value.

    Each is an `EncoderBlock`:

        X_M = LN(PMHA(X, X, value) + X)
        X_E = LN(FFN(X_M) + X_M)

    Masking: by `padding_mask`, or by a mask that Keras attached to the states, which
    stays attached.

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
        states: tensor `(batch, length, width)`.
        value: tensor `(batch, length, value_width)` that every block's attention
            weighs: RePE's tokens. None, as in the baseline, means each block's own
            input.
        padding_mask: boolean tensor `(batch, length)`, True on real tokens. Of packed
            states, `(1, packed, width)`, their `reprt.layers.layout.Packed` instead.
        return_attention_scores: whether to return the attentions' weights as well.
        training: whether dropout is active.

    Returns:
        Tensor `(batch, length, width)`, and with `return_attention_scores` a tuple of
        each block's weights `(batch, heads, length, length)`; each of
        them None if packed.

    Raises:
        ValueError: for an unknown place of dropout or norms, an unknown activation, a
            size below 1, an input whose rank is not 3, a mask that is not boolean, or a
            position that does not act within attention or has other heads.

    >>> import keras, reprt
    >>> encoder = reprt.layers.Encoder(
    ...     num_blocks=2, num_heads=2, key_dim=8, feed_forward_dim=32
    ... )
    >>> tuple(encoder(keras.ops.ones((2, 5, 16))).shape)
    (2, 5, 16)

    Reference: appendix A.1, eq. 27, and figure 2 of the paper.
    """

    block_class = EncoderBlock

    def build(self, states_shape, value_shape=None):
        self._build(states_shape, value_shape)

    def call(
        self,
        states,
        value=None,
        padding_mask=None,
        return_attention_scores=False,
        training=None,
    ):
        states, weights = self._through(
            states,
            value,
            padding_mask=padding_mask,
            training=training,
        )
        return (states, weights) if return_attention_scores else states
