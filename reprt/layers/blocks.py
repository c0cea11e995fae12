"""What blocks and stacks share: their sizes, and how a sublayer joins the residuals."""

import keras

from reprt.constants import DROPOUT_PLACES, NORM_PLACES, TUTORIAL_DROPOUT
from reprt.layers.feed_forward import FeedForward
from reprt.schema import check_choice


class SizedLayer(keras.layers.Layer):
    """A layer that is described by the settings of a Transformer block.

    Args: those of `EncoderBlock`.
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        feed_forward_dim,
        value_dim=None,
        dropout=0.0,
        activation="relu",
        norm_place="after",
        layer_norm_epsilon=1e-3,
        dropout_places=TUTORIAL_DROPOUT,
        attention_bias=True,
        query_key_norm=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_choice(NORM_PLACES, norm_place=norm_place)
        if not set(dropout_places) <= set(DROPOUT_PLACES):
            raise ValueError(
                f"Expected `dropout_places` to be some of {DROPOUT_PLACES}. "
                f"Received: dropout_places={dropout_places!r}."
            )
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.feed_forward_dim = feed_forward_dim
        self.value_dim = value_dim
        self.dropout = dropout
        self.activation = activation
        self.norm_place = norm_place
        self.layer_norm_epsilon = layer_norm_epsilon
        self.dropout_places = tuple(dropout_places)
        self.attention_bias = attention_bias
        self.query_key_norm = query_key_norm
        self.supports_masking = True

    @property
    def _settings(self):
        return {
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "feed_forward_dim": self.feed_forward_dim,
            "value_dim": self.value_dim,
            "dropout": self.dropout,
            "activation": self.activation,
            "norm_place": self.norm_place,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "dropout_places": list(self.dropout_places),
            "attention_bias": self.attention_bias,
            "query_key_norm": self.query_key_norm,
        }

    def _layer_norm(self, name):
        return keras.layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name=name
        )

    def compute_output_spec(self, *args, **kwargs):
        # By the call itself: with scores wanted there is more than one output.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def get_config(self):
        return {**super().get_config(), **self._settings}


class Block(SizedLayer):
    """Sublayers f, each in a residual connection with a LayerNormalization.

        x → LN(f(x) + x)   with the norm after the sublayer
        x → f(LN(x)) + x   with the norm before it

    Args:
        *sizes, **settings: as in `SizedLayer`.
    """

    def __init__(self, *sizes, **settings):
        super().__init__(*sizes, **settings)
        self.attention_dropout = keras.layers.Dropout(
            self._rate("attention_output"),
            dtype=self.dtype_policy,
            name="attention_dropout",
        )

    def _rate(self, place):
        return self.dropout if place in self.dropout_places else 0.0

    def _attention(self, kind, name):
        return kind(
            self.num_heads,
            self.key_dim,
            self.value_dim,
            self._rate("attention_weights"),
            self.attention_bias,
            self.query_key_norm,
            dtype=self.dtype_policy,
            name=name,
        )

    def _feed_forward(self):
        return FeedForward(
            self.feed_forward_dim,
            self._rate("feed_forward_output"),
            self.activation,
            dtype=self.dtype_policy,
            name="feed_forward",
        )

    def _residual(self, states, norm, sublayer):
        """Returns the new states, and what the sublayer returns beside its output."""
        if self.norm_place == "before":
            output, beside = sublayer(norm(states))
            return output + states, beside
        output, beside = sublayer(states)
        return norm(output + states), beside

    def _attend(self, attention, query, key, value, wanted, training, **options):
        """An attention's output after dropout, and its weights or None."""
        attended = attention(
            query,
            key,
            key if value is None else value,
            return_attention_scores=wanted,
            training=training,
            **options,
        )
        attended, weights = attended if wanted else (attended, None)
        return self.attention_dropout(attended, training=training), weights

    def _attend_to_itself(self, states, value, mask, packing, wanted, training):
        """The self-attention's output after dropout, and its weights or None."""
        return self._attend(
            self.self_attention,
            states,
            states,
            value,
            wanted,
            training,
            key_mask=mask,
            query_packing=packing,
            key_packing=packing,
        )

    def _feed(self, states, training=None):
        states, _ = self._residual(
            states,
            self.feed_forward_norm,
            lambda x: (self.feed_forward(x, training=training), None),
        )
        return states


class BlockStack(SizedLayer):
    """N blocks of `block_class`, built on the same shapes.

    Args:
        num_blocks: number of blocks N.
        *sizes: the sizes of each block, as in `SizedLayer`.
        final_norm: whether a LayerNormalization follows the last block.
        **settings: settings of each block, and what goes to `keras.layers.Layer`.
    """

    block_class: type[Block]

    def __init__(self, num_blocks, *sizes, final_norm=False, **settings):
        super().__init__(*sizes, **settings)
        if num_blocks < 1:
            raise ValueError(
                f"Expected `num_blocks` to be at least 1. Received: {num_blocks}."
            )
        self.num_blocks = num_blocks
        self.blocks = [
            self.block_class(
                **self._settings, dtype=self.dtype_policy, name=f"block_{number}"
            )
            for number in range(1, num_blocks + 1)
        ]
        self.final_norm = self._layer_norm("final_norm") if final_norm else None

    def _build(self, *shapes):
        for block in self.blocks:
            block.build(*shapes)
        if self.final_norm is not None:
            self.final_norm.build(shapes[0])
        self.built = True

    def _run(self, states, *others, return_attention_scores, **options):
        """The states after all blocks, and the weights of each in a tuple if wanted."""
        weights = []
        for block in self.blocks:
            states = block(
                states,
                *others,
                return_attention_scores=return_attention_scores,
                **options,
            )
            if return_attention_scores:
                states, of_block = states
                weights.append(of_block)
        states = self._finish(states)
        return (states, tuple(weights)) if return_attention_scores else states

    def _finish(self, states):
        return states if self.final_norm is None else self.final_norm(states)

    def get_config(self):
        return {
            **super().get_config(),
            "num_blocks": self.num_blocks,
            "final_norm": self.final_norm is not None,
        }
