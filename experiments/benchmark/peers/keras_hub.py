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
PARTS = (
    *("self_attention_layer", "cross_attention_layer"),
    *("feedforward_intermediate_dense", "feedforward_output_dense"),
    *("self_attention_layer_norm", "cross_attention_layer_norm"),
    "feedforward_layer_norm",
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
        added = sizes, False, dropout
        self.embeddings = [PositionalEmbedding(n, *added) for n in vocab_sizes]
        blocks, block = (
            range(sizes.blocks),
            (sizes.hidden, sizes.heads, dropout),
        )
        self.encoder = [
            Encoder(*block, layer_norm_epsilon=1e-3) for _ in blocks
        ]
        self.decoder = [
            Decoder(*block, layer_norm_epsilon=1e-3) for _ in blocks
        ]
        self.logits = keras.layers.Dense(vocab_sizes[1])

    def call(self, inputs):
        real = [ids != 0 for ids in inputs]
        (_, memory), (_, states) = (
            embed(*side) for embed, *side in zip(self.embeddings, inputs, real)
        )
        for layer in self.encoder:
            memory = layer(memory, padding_mask=real[0])
        for layer in self.decoder:
            masks = {
                "decoder_padding_mask": real[1],
                "encoder_padding_mask": real[0],
            }
            states = layer(states, memory, **masks)
        return self.logits(states)


class Peer(KerasPeer):
    """KerasHub's layers, trained as any Keras model."""

    packages = ("keras-hub", *KerasPeer.packages)

    def build(self, settings):
        return Transformer(
            settings.vocab_sizes, settings.sizes, settings.dropout
        )

    def variables(self):
        model, blocks = self.model, (*self.model.encoder, *self.model.decoder)
        parts = [
            getattr(block, f"_{part}", None)
            for block in blocks
            for part in PARTS
        ]
        layers = [*model.embeddings, *filter(None, parts), model.logits]
        return [v for layer in layers for v in layer.trainable_variables]
