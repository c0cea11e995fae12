"""What the blocks and stacks of encoder and decoder share."""

import keras

from reprt.constants import check_choice, check_sizes
from reprt.layers.base import Layer, count_holder, serialize
from reprt.layers.feed_forward import (
    FeedForward,
    activation_config,
    activation_function,
)
from reprt.layers.positions.base import Positional

DROPOUT_PLACES = (
    "embeddings",
    "attention_weights",
    "feed_forward_output",
    "attention_output",
    "values",
)
TUTORIAL_DROPOUT = DROPOUT_PLACES[:3]
NORM_PLACES = ("after", "before")


class Block(Layer):
    """Sublayers, each in a residual connection with a LayerNormalization.

    The arguments are documented by `EncoderBlock` and `DecoderBlock`.
    """

    parts = ("position",)

    def __init__(
        self,
        num_heads,
        key_dim,
        feed_forward_dim,
        value_dim=None,
        dropout=0.0,
        dropout_places=TUTORIAL_DROPOUT,
        norm_place="after",
        layer_norm_epsilon=1e-3,
        layer_norm_gains=True,
        attention_bias=True,
        query_key_norm=False,
        activation="relu",
        position=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_sizes(
            num_heads=num_heads,
            key_dim=key_dim,
            feed_forward_dim=feed_forward_dim,
        )
        if value_dim is not None:
            check_sizes(value_dim=value_dim)
        check_choice(NORM_PLACES, norm_place=norm_place)
        activation_function(activation)
        if isinstance(dropout_places, str):
            raise ValueError(
                "Expected `dropout_places` to be a list of places. Received: "
                f"dropout_places={dropout_places!r}."
            )
        for place in dropout_places:
            check_choice(DROPOUT_PLACES, dropout_places=place)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.feed_forward_dim = feed_forward_dim
        self.value_dim = value_dim
        self.dropout = dropout
        self.dropout_places = tuple(dropout_places)
        self.norm_place = norm_place
        self.layer_norm_epsilon = layer_norm_epsilon
        self.layer_norm_gains = layer_norm_gains
        self.attention_bias = attention_bias
        self.query_key_norm = query_key_norm
        self.activation = activation
        self.position = count_holder("position", position, Positional)
        self.attention_dropout = self._dropout(
            self._rate("attention_output"), "attention_dropout"
        )

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "feed_forward_dim": self.feed_forward_dim,
            "value_dim": self.value_dim,
            "dropout": self.dropout,
            "dropout_places": list(self.dropout_places),
            "norm_place": self.norm_place,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "layer_norm_gains": self.layer_norm_gains,
            "attention_bias": self.attention_bias,
            "query_key_norm": self.query_key_norm,
            "activation": activation_config(self.activation),
            "position": serialize(self.position),
        }

    def _rate(self, place):
        """The rate of dropout at a place."""
        return self.dropout if place in self.dropout_places else 0.0

    def _attention(self, kind, name, position=None):
        return kind(
            num_heads=self.num_heads,
            key_dim=self.key_dim,
            value_dim=self.value_dim,
            dropout=self._rate("attention_weights"),
            use_bias=self.attention_bias,
            query_key_norm=self.query_key_norm,
            position=position,
            dtype=self.dtype_policy,
            name=name,
        )

    def _feed_forward(self):
        return FeedForward(
            hidden_dim=self.feed_forward_dim,
            dropout=self._rate("feed_forward_output"),
            activation=self.activation,
            dtype=self.dtype_policy,
            name="feed_forward",
        )

    def _layer_norm(self, name):
        return keras.layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon,
            center=self.layer_norm_gains,
            scale=self.layer_norm_gains,
            dtype=self.dtype_policy,
            name=name,
        )

    def _before(self, norm, states):
        """What a sublayer takes of the states."""
        return norm(states) if self.norm_place == "before" else states

    def _after(self, norm, output, states):
        """The states that follow a sublayer, whose output joins those before it."""
        states = output + states
        return norm(states) if self.norm_place == "after" else states

    def _attend(self, attention, norm, states, training, key=None, **arguments):
        """The states after an attention, by default to themselves, and its weights."""
        x = self._before(norm, states)
        output, weights = attention(
            x,
            key=x if key is None else key,
            return_attention_scores=True,
            training=training,
            **arguments,
        )
        output = self.attention_dropout(output, training=training)
        return self._after(norm, output, states), weights

    def _feed(self, states, training=None):
        x = self._before(self.feed_forward_norm, states)
        output = self.feed_forward(x, training=training)
        return self._after(self.feed_forward_norm, output, states)


class BlockStack(Layer):
    """N blocks of `block_class`, built on the same shapes.

    The arguments are documented by `Encoder` and `Decoder`.
    """

    block_class: type[Block]
    parts = ("position",)

    def __init__(
        self,
        num_blocks,
        num_heads,
        key_dim,
        feed_forward_dim,
        value_dim=None,
        dropout=0.0,
        dropout_places=TUTORIAL_DROPOUT,
        norm_place="after",
        layer_norm_epsilon=1e-3,
        layer_norm_gains=True,
        attention_bias=True,
        query_key_norm=False,
        activation="relu",
        position=None,
        final_norm=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_sizes(num_blocks=num_blocks)
        self.num_blocks = num_blocks
        self.position = count_holder("position", position, Positional)
        self.blocks = [
            self.block_class(
                num_heads=num_heads,
                key_dim=key_dim,
                feed_forward_dim=feed_forward_dim,
                value_dim=value_dim,
                dropout=dropout,
                dropout_places=dropout_places,
                norm_place=norm_place,
                layer_norm_epsilon=layer_norm_epsilon,
                layer_norm_gains=layer_norm_gains,
                attention_bias=attention_bias,
                query_key_norm=query_key_norm,
                activation=activation,
                position=position,
                dtype=self.dtype_policy,
                name=f"block_{number}",
            )
            for number in range(1, num_blocks + 1)
        ]
        self.final_norm = None
        if final_norm:
            self.final_norm = self.blocks[0]._layer_norm("final_norm")

    def get_config(self):
        # The stack's own name and dtype come after those of its first block.
        return {
            **self.blocks[0].get_config(),
            **super().get_config(),
            "num_blocks": self.num_blocks,
            "final_norm": self.final_norm is not None,
        }

    def _build(self, states_shape, *shapes):
        for block in self.blocks:
            block.build(states_shape, *shapes)
        if self.final_norm is not None:
            self.final_norm.build(states_shape)

    def _through(self, states, *arguments, **options):
        """The states after all blocks, and the weights of each block's attention."""
        weights = []
        for block in self.blocks:
            states, scores = block(
                states, *arguments, return_attention_scores=True, **options
            )
            weights.append(scores)
        return self._finish(states), tuple(weights)

    def _finish(self, states):
        return states if self.final_norm is None else self.final_norm(states)
