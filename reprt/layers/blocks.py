"""What blocks and stacks share: the sizes of their attention and feed-forward."""

import keras


class SizedLayer(keras.layers.Layer):
    """A layer that is described by the sizes of a Transformer block.

    Args:
        num_heads: heads p.
        key_dim: width r of each head's query and key.
        feed_forward_dim: width s of the feed-forward network's hidden layer.
        value_dim: width q of each head's value. Defaults to `key_dim`.
        dropout: rate of dropout. Defaults to 0.
        **kwargs: passed to `keras.layers.Layer`.
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        feed_forward_dim,
        value_dim=None,
        dropout=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.feed_forward_dim = feed_forward_dim
        self.value_dim = value_dim
        self.dropout = dropout
        self.supports_masking = True

    def compute_output_shape(self, states_shape, *other_shapes):
        return states_shape

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "feed_forward_dim": self.feed_forward_dim,
            "value_dim": self.value_dim,
            "dropout": self.dropout,
        }


class BlockStack(SizedLayer):
    """N blocks of `block_class`, built on the same shapes.

    Args:
        num_blocks: number of blocks N.
        num_heads, key_dim, feed_forward_dim, value_dim, dropout: the sizes of each
            block, as in `SizedLayer`.
        **kwargs: passed to `keras.layers.Layer`.
    """

    block_class: type[SizedLayer]

    def __init__(
        self,
        num_blocks,
        num_heads,
        key_dim,
        feed_forward_dim,
        value_dim=None,
        dropout=0.0,
        **kwargs,
    ):
        super().__init__(
            num_heads, key_dim, feed_forward_dim, value_dim, dropout, **kwargs
        )
        if num_blocks < 1:
            raise ValueError(
                f"Expected `num_blocks` to be at least 1. Received: {num_blocks}."
            )
        self.num_blocks = num_blocks
        self.blocks = [
            self.block_class(
                num_heads,
                key_dim,
                feed_forward_dim,
                value_dim,
                dropout,
                dtype=self.dtype_policy,
                name=f"block_{number}",
            )
            for number in range(1, num_blocks + 1)
        ]

    def get_config(self):
        return {**super().get_config(), "num_blocks": self.num_blocks}
