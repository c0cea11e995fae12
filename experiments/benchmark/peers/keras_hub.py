"""KerasHub's TransformerEncoder and TransformerDecoder, for the baseline.

KerasHub makes each head hidden_dim / num_heads wide, 16 here, whereas the paper's
baseline has 8 heads of 128 on a width of 128. Its layers are therefore subclassed, so
that the attentions which they make are 128 wide; parameters and loss then are the
baseline's. Its dropout of the attention's output, which the baseline has not, is
switched off. All else is the library's own.
"""

import keras
import keras_hub
from peers.keras_loop import KerasPeer, sinusoids
from peers.settings import SIZES

HEAD = SIZES["baseline"].head


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
    def variables_in_order(self):
        attentions = [self._self_attention_layer]
        norms = [self._self_attention_layer_norm]
        return _variables(self, attentions, norms)


class Decoder(_PaperAttention, keras_hub.layers.TransformerDecoder):
    def variables_in_order(self):
        attentions = [self._self_attention_layer, self._cross_attention_layer]
        norms = [self._self_attention_layer_norm, self._cross_attention_layer_norm]
        return _variables(self, attentions, norms)


def _variables(layer, attentions, norms):
    feed_forward = (
        layer._feedforward_intermediate_dense,
        layer._feedforward_output_dense,
    )
    parts = (*attentions, *feed_forward, *norms, layer._feedforward_layer_norm)
    return [variable for part in parts for variable in part.trainable_variables]


class Transformer(keras.Model):
    """An encoder and a decoder of KerasHub's layers: ids of both sides to logits."""

    def __init__(self, vocab_sizes, sizes, dropout):
        super().__init__()
        self.scale = sizes.embedding**0.5
        self.embeddings = [
            keras.layers.Embedding(size, sizes.embedding) for size in vocab_sizes
        ]
        self.positions = sinusoids(2048, sizes.embedding)
        self.dropout = keras.layers.Dropout(dropout)
        options = {
            "intermediate_dim": sizes.hidden,
            "num_heads": sizes.heads,
            "dropout": dropout,
            "activation": "relu",
            "layer_norm_epsilon": 1e-3,
        }
        self.encoder = [Encoder(**options) for _ in range(sizes.blocks)]
        self.decoder = [Decoder(**options) for _ in range(sizes.blocks)]
        self.logits = keras.layers.Dense(vocab_sizes[1])

    def call(self, inputs):
        source_ids, target_ids = inputs
        memory, states = map(self._embedded, self.embeddings, inputs)
        for layer in self.encoder:
            memory = layer(memory, padding_mask=source_ids != 0)
        for layer in self.decoder:
            states = layer(
                states,
                memory,
                decoder_padding_mask=target_ids != 0,
                encoder_padding_mask=source_ids != 0,
            )
        return self.logits(states)

    def _embedded(self, embedding, ids):
        positions = keras.ops.convert_to_tensor(self.positions)
        tokens = embedding(ids) * self.scale
        return self.dropout(tokens + positions[: keras.ops.shape(ids)[1]])


class Peer(KerasPeer):
    """KerasHub's layers, trained as any Keras model."""

    packages = ("keras-hub", *KerasPeer.packages)

    def build(self, settings):
        return Transformer(settings.vocab_sizes, settings.sizes, settings.dropout)

    def variables(self):
        model = self.model
        parts = [*model.encoder, *model.decoder]
        blocks = [v for part in parts for v in part.variables_in_order()]
        embeddings = [layer.embeddings for layer in model.embeddings]
        return [*embeddings, *blocks, *model.logits.trainable_variables]
