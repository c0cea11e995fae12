"""KerasHub's TransformerEncoder and TransformerDecoder, for the baseline.

KerasHub makes each head hidden_dim / num_heads wide, 16 here, whereas the paper's
baseline has 8 heads of 128. So the attentions which its layers make are widened, and
their dropout of the attention's output, which the baseline has not, is switched off.
All else is the library's own.
"""

import keras
import keras_hub
from keras import ops
from peers.keras_loop import KerasPeer
from peers.settings import SIZES, sinusoids

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

    def variables_in_order(self):
        names = ["self_attention_layer", "cross_attention_layer"]
        names += ["feedforward_intermediate_dense", "feedforward_output_dense"]
        names += ["self_attention_layer_norm", "cross_attention_layer_norm"]
        parts = [
            getattr(self, f"_{name}", None)
            for name in (*names, "feedforward_layer_norm")
        ]
        return [v for part in parts if part for v in part.trainable_variables]


class Encoder(_PaperAttention, keras_hub.layers.TransformerEncoder):
    pass


class Decoder(_PaperAttention, keras_hub.layers.TransformerDecoder):
    pass


class Transformer(keras.Model):
    """An encoder and a decoder of KerasHub's layers: ids of both sides to logits."""

    def __init__(self, vocab_sizes, sizes, dropout):
        super().__init__()
        width, self.scale = sizes.embedding, sizes.embedding**0.5
        self.embeddings = [keras.layers.Embedding(n, width) for n in vocab_sizes]
        self.positions = sinusoids(width)
        self.dropout = keras.layers.Dropout(dropout)
        options = {"dropout": dropout, "layer_norm_epsilon": 1e-3}
        blocks, block = range(sizes.blocks), (sizes.hidden, sizes.heads)
        self.encoder = [Encoder(*block, **options) for _ in blocks]
        self.decoder = [Decoder(*block, **options) for _ in blocks]
        self.logits = keras.layers.Dense(vocab_sizes[1])

    def call(self, inputs):
        source, target = (ids != 0 for ids in inputs)
        memory, states = map(self._embedded, self.embeddings, inputs)
        for layer in self.encoder:
            memory = layer(memory, padding_mask=source)
        for layer in self.decoder:
            masks = {"decoder_padding_mask": target, "encoder_padding_mask": source}
            states = layer(states, memory, **masks)
        return self.logits(states)

    def _embedded(self, embedding, ids):
        positions = ops.convert_to_tensor(self.positions)
        tokens = embedding(ids) * self.scale
        return self.dropout(tokens + positions[: ops.shape(ids)[1]])


class Peer(KerasPeer):
    """KerasHub's layers, trained as any Keras model."""

    packages = ("keras-hub", *KerasPeer.packages)

    def build(self, settings):
        return Transformer(settings.vocab_sizes, settings.sizes, settings.dropout)

    def variables(self):
        model, blocks = self.model, (*self.model.encoder, *self.model.decoder)
        embeddings = [layer.embeddings for layer in model.embeddings]
        between = [v for block in blocks for v in block.variables_in_order()]
        return [*embeddings, *between, *model.logits.trainable_variables]
