"""KerasHub's TransformerEncoder and TransformerDecoder, for the baseline.

KerasHub makes each head hidden_dim / num_heads wide, 16 here, whereas the paper's
baseline has 8 heads of 128. So the attentions which its layers make are widened, and
their dropout of its output, which the baseline has not, is switched off.
"""

import keras
import keras_hub
from peers.keras_loop import KerasPeer
from peers.plain_keras_layers import PositionalEmbedding
from peers.settings import SIZES

HEAD = SIZES["baseline"].head
# The attributes of a block that have weights, in the peers' order.
PARTS = (
    "_self_attention_layer",
    "_cross_attention_layer",
    "_feedforward_intermediate_dense",
    "_feedforward_output_dense",
    "_self_attention_layer_norm",
    "_cross_attention_layer_norm",
    "_feedforward_layer_norm",
)


class _PaperAttention:
    """Changes the attentions that a layer is about to keep, before they are built."""

    def __setattr__(self, name, value):
        if isinstance(value, keras.layers.MultiHeadAttention):
            config = {**value.get_config(), "key_dim": HEAD, "value_dim": HEAD}
            value = type(value).from_config(config)
        elif name.endswith("attention_dropout"):
            value.rate = 0
        super().__setattr__(name, value)


class Encoder(_PaperAttention, keras_hub.layers.TransformerEncoder):
    pass


class Decoder(_PaperAttention, keras_hub.layers.TransformerDecoder):
    pass


class Transformer(keras.Model):
    """An encoder and a decoder of KerasHub's layers: ids of both sides to logits."""

    def __init__(self, vocab_sizes, sizes, dropout):
        super().__init__()
        self.embeddings = [
            PositionalEmbedding(vocab_size, sizes, False, dropout)
            for vocab_size in vocab_sizes
        ]
        settings = {
            "intermediate_dim": sizes.hidden,
            "num_heads": sizes.heads,
            "dropout": dropout,
            "layer_norm_epsilon": 1e-3,
        }
        self.encoder = [Encoder(**settings) for _ in range(sizes.blocks)]
        self.decoder = [Decoder(**settings) for _ in range(sizes.blocks)]
        self.logits = keras.layers.Dense(vocab_sizes[1])

    def call(self, inputs):
        source_ids, target_ids = inputs
        source_real, target_real = source_ids != 0, target_ids != 0
        _, memory = self.embeddings[0](source_ids, source_real)
        _, states = self.embeddings[1](target_ids, target_real)
        for layer in self.encoder:
            memory = layer(memory, padding_mask=source_real)
        for layer in self.decoder:
            states = layer(
                states,
                memory,
                decoder_padding_mask=target_real,
                encoder_padding_mask=source_real,
            )
        return self.logits(states)


class Peer(KerasPeer):
    """KerasHub's layers, trained as any Keras model."""

    packages = ("keras-hub", *KerasPeer.packages)

    def build(self, settings):
        return Transformer(
            settings.vocab_sizes, settings.sizes, settings.dropout
        )

    def variables(self):
        layers = [*self.model.embeddings]
        for block in (*self.model.encoder, *self.model.decoder):
            for part in PARTS:
                layer = getattr(block, part, None)
                # An encoder's block has no attention to another sequence.
                if layer is not None:
                    layers.append(layer)
        layers.append(self.model.logits)
        variables = []
        for layer in layers:
            variables += layer.trainable_variables
        return variables
