"""The encoder, and what its blocks and stacks share with the decoder's."""

import functools
import inspect

import keras

from reprt.layers.attention import PMHA
from reprt.layers.feed_forward import FeedForward
from reprt.layers.positions.base import Positional
from reprt.layers.sharing import ConfiguredLayer, held
from reprt.settings import BlockSettings


class SizedLayer(ConfiguredLayer):
    """A layer that `BlockSettings` describe, given as keyword arguments."""

    parts = ("position",)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        # `help()` and editors show this: the settings instead of `**kwargs`.
        shown = {
            name: each.replace(kind=each.KEYWORD_ONLY, annotation=each.empty)
            for maker in (BlockSettings, cls.__init__)
            for name, each in inspect.signature(maker).parameters.items()
            if name != "self" and each.kind is not each.VAR_KEYWORD
        }
        cls.__signature__ = inspect.Signature([*shown.values()])

    def __init__(self, position=None, **kwargs):
        names = BlockSettings.model_fields.keys() & kwargs.keys()
        settings = {name: kwargs.pop(name) for name in names}
        super().__init__(**kwargs)
        self.settings = BlockSettings.read(settings, type(self).__name__)
        self.position = held(position, Positional)

    def _layer_norm(self, name):
        return keras.layers.LayerNormalization(
            epsilon=self.settings.layer_norm_epsilon,
            center=self.settings.layer_norm_gains,
            scale=self.settings.layer_norm_gains,
            dtype=self.dtype_policy,
            name=name,
        )

    def get_config(self):
        return {**super().get_config(), **self.settings.as_table()}


class Block(SizedLayer):
    """Sublayers, each in a residual connection with a LayerNormalization."""

    def __init__(self, position=None, **kwargs):
        super().__init__(position, **kwargs)
        rate = self.settings.rate("attention_output")
        self.attention_dropout = self._dropout(rate, "attention_dropout")

    def _attention(self, kind, name, position=None):
        settings = self.settings
        return kind(
            settings.num_heads,
            settings.key_dim,
            settings.value_dim,
            settings.rate("attention_weights"),
            settings.attention_bias,
            settings.query_key_norm,
            position,
            dtype=self.dtype_policy,
            name=name,
        )

    def _feed_forward(self):
        return FeedForward(
            self.settings.feed_forward_dim,
            self.settings.rate("feed_forward_output"),
            self.settings.activation,
            dtype=self.dtype_policy,
            name="feed_forward",
        )

    def _before(self, norm, states):
        """What a sublayer takes of the states."""
        return norm(states) if self.settings.norm_place == "before" else states

    def _after(self, norm, output, states):
        """The states that follow a sublayer, whose output joins those before it."""
        states = output + states
        return norm(states) if self.settings.norm_place == "after" else states

    def _attend(self, attention, norm, states, value, training, key=None, **places):
        """The states after an attention, by default to themselves, and its weights."""
        x = self._before(norm, states)
        attended, weights = attention(
            x,
            x if key is None else key,
            value,
            return_attention_scores=True,
            training=training,
            **places,
        )
        attended = self.attention_dropout(attended, training=training)
        return self._after(norm, attended, states), weights

    def _feed(self, states, training=None):
        x = self._before(self.feed_forward_norm, states)
        output = self.feed_forward(x, training=training)
        return self._after(self.feed_forward_norm, output, states)


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
        position: a `Positional` that acts within the self-attention, or None.
        **kwargs: the fields of `BlockSettings`, and what goes to `keras.layers.Layer`.

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

    >>> import keras, reprt
    >>> block = reprt.layers.EncoderBlock(num_heads=2, key_dim=8, feed_forward_dim=32)
    >>> states, tokens = keras.ops.ones((2, 5, 16)), keras.ops.ones((2, 5, 8))
    >>> tuple(block(states, tokens).shape)
    (2, 5, 16)

    Reference: appendix A.1, eq. 26 and 27, and figure 2 of the paper.
    """

    def build(self, states_shape, value_shape=None):
        self.self_attention = self._attention(PMHA, "self_attention", self.position)
        self.feed_forward = self._feed_forward()
        self.attention_norm = self._layer_norm("attention_norm")
        self.feed_forward_norm = self._layer_norm("feed_forward_norm")
        self.self_attention.build(states_shape, states_shape, value_shape)
        for layer in (self.feed_forward, self.attention_norm, self.feed_forward_norm):
            layer.build(states_shape)

    def call(
        self,
        states,
        value=None,
        padding_mask=None,
        packing=None,
        return_attention_scores=False,
        training=None,
    ):
        states, weights = self._attend(
            self.self_attention,
            self.attention_norm,
            states,
            value,
            training,
            key_mask=padding_mask,
            query_packing=packing,
        )
        states = self._feed(states, training)
        return (states, weights) if return_attention_scores else states


class BlockStack(SizedLayer):
    """N blocks of `block_class`, built on the same shapes."""

    block_class: type[Block]

    def __init__(self, num_blocks, final_norm=False, position=None, **kwargs):
        super().__init__(position, **kwargs)
        self.num_blocks = num_blocks
        options = {**dict(self.settings), "dtype": self.dtype_policy}
        self.blocks = [
            self.block_class(position, **options, name=f"block_{number}")
            for number in range(1, num_blocks + 1)
        ]
        self.final_norm = self._layer_norm("final_norm") if final_norm else None

    def _finish(self, states):
        return states if self.final_norm is None else self.final_norm(states)

    def get_config(self):
        return {**super().get_config(), "final_norm": self.final_norm is not None}


def through_blocks(block_class):
    """A stack's class of blocks, and its `build` and `call` with their arguments."""

    @functools.wraps(block_class.build)
    def build(self, states_shape, *others, **by_name):
        for block in self.blocks:
            block.build(states_shape, *others, **by_name)
        if self.final_norm is not None:
            self.final_norm.build(states_shape)

    @functools.wraps(block_class.call)
    def call(self, states, *others, return_attention_scores=False, **by_name):
        weights = []
        for block in self.blocks:
            states, of_block = block(
                states, *others, return_attention_scores=True, **by_name
            )
            weights.append(of_block)
        states = self._finish(states)
        return (states, tuple(weights)) if return_attention_scores else states

    return block_class, build, call


@keras.saving.register_keras_serializable(package="reprt")
class Encoder(BlockStack):
    """N encoder blocks, one after the other, all given the same value.

    Without a value, each block's value is its own input, as in the baseline. Masking,
    call arguments and results are those of `EncoderBlock`, the weights in a tuple.

    Args:
        num_blocks: number of blocks N.
        final_norm: whether a LayerNormalization follows the last block, which ends
            without one where norms stand before sublayers. Defaults to False.
        position: as in `EncoderBlock`; all blocks share it.
        **kwargs: as in `EncoderBlock`.

    >>> import keras, reprt
    >>> encoder = reprt.layers.Encoder(
    ...     num_blocks=2, num_heads=2, key_dim=8, feed_forward_dim=32
    ... )
    >>> tuple(encoder(keras.ops.ones((2, 5, 16))).shape)
    (2, 5, 16)

    Reference: appendix A.1, eq. 27, and figure 2 of the paper.
    """

    block_class, build, call = through_blocks(EncoderBlock)
