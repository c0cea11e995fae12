"""The encoder: blocks of attention and feed-forward."""

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

    Masking: by `padding_mask`, or by masks that Keras attached, as in `PMHA`.

    Args:
        num_heads: heads p.
        key_dim: width r of each head's query and key.
        feed_forward_dim: width s of the feed-forward network's hidden layer.
        value_dim: width q of each head's value. Defaults to `key_dim`.
        dropout: rate of dropout. Defaults to 0.
        activation: the feed-forward network's, by Keras' name. Defaults to `"relu"`.
        norm_place: `"after"` or `"before"` each sublayer. Defaults to `"after"`.
        layer_norm_epsilon: LayerNormalization's. Defaults to 1e-3, as in Keras.
        dropout_places: where dropout acts, some of `"attention_weights"`,
            `"attention_output"` and `"feed_forward_output"`. Defaults to the first
            and the last, as in TensorFlow's tutorial.
        attention_bias: whether attention's projections have biases. Defaults to True.
        query_key_norm: whether attention normalises queries and keys, as in `PMHA`.
            Defaults to False.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        states: tensor `(batch, length, width)`.
        value: tensor `(batch, length, value_width)` that the attention weighs: RePE's
            tokens. None, as in the baseline, means the states themselves.
        padding_mask: boolean tensor `(batch, length)`, True on real tokens.
        packing: `PackedHeads` of packed states, instead of a mask.
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
        self.self_attention = self._attention(PMHA, "self_attention")
        self.feed_forward = self._feed_forward()
        self.attention_norm = self._layer_norm("attention_norm")
        self.feed_forward_norm = self._layer_norm("feed_forward_norm")
        self.self_attention.build(
            states_shape, states_shape, value_shape or states_shape
        )
        for layer in (self.feed_forward, self.attention_norm, self.feed_forward_norm):
            layer.build(states_shape)
        self.built = True

    def compute_output_shape(self, states_shape, value_shape=None):
        return states_shape

    def call(
        self,
        states,
        value=None,
        padding_mask=None,
        packing=None,
        return_attention_scores=False,
        training=None,
    ):
        def attend(x):
            return self._attend_to_itself(
                x, value, padding_mask, packing, return_attention_scores, training
            )

        states, weights = self._residual(states, self.attention_norm, attend)
        states = self._feed(states, training)
        return (states, weights) if return_attention_scores else states


@keras.saving.register_keras_serializable(package="reprt")
class Encoder(BlockStack):
    """N encoder blocks, one after the other, all given the same value.

    Masking, call arguments and results are those of `EncoderBlock`, the weights one
    after the other in a tuple. Without a value, each block's value is its own input,
    as in the baseline.

    Args:
        num_blocks: number of blocks N.
        *sizes: those of each block, as in `EncoderBlock`.
        final_norm: whether a LayerNormalization follows the last block, which ends
            without one where norms stand before sublayers. Defaults to False.
        **settings: those of each block, and what goes to `keras.layers.Layer`.

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
        self._build(states_shape, value_shape)

    def compute_output_shape(self, states_shape, value_shape=None):
        return states_shape

    def call(
        self,
        states,
        value=None,
        padding_mask=None,
        packing=None,
        return_attention_scores=False,
        training=None,
    ):
        return self._run(
            states,
            value,
            padding_mask=padding_mask,
            packing=packing,
            return_attention_scores=return_attention_scores,
            training=training,
        )
