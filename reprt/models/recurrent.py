"""The recurrent encoder-decoder with attention, which came before the Transformer."""

from typing import Any, NamedTuple

import keras
from keras import ops

from reprt.layers import TokenAndPositionEmbedding, padding_mask
from reprt.layers.layout import Padded
from reprt.layers.masks import first_real, for_softmax
from reprt.models.base import TranslationModel
from reprt.models.prefixes import Prefixes
from reprt.models.settings import RecurrentConfig


class RecurrentMemory(NamedTuple):
    """What the decoder needs of an encoded source.

    Attributes:
        states: the encoder's output h, `(sentences, sources, 2n)`.
        keys: the part of the scores that depends only on the source,
            `(sentences, sources, n)`.
        initial_states: s_0 of each decoder layer, `(sentences, layers, n)`.
        mask: boolean, `(sentences, sources)`, True on real tokens.
    """

    states: Any
    keys: Any
    initial_states: Any
    mask: Any


@keras.saving.register_keras_serializable(package="reprt")
class _Orthogonal(keras.initializers.Orthogonal):
    """Keras' own, by a decomposition that half precision does not have."""

    def __call__(self, shape, dtype=None):
        return ops.cast(super().__call__(shape, "float32"), dtype or "float32")


@keras.saving.register_keras_serializable(package="reprt")
class Recurrent(TranslationModel):
    """GRU encoder and decoder with one attention: ids of both sides to logits.

        h_j = [forward GRU; backward GRU]_j                the source, both ways
        s_0 = tanh(W_0 backward_1)                         for each decoder layer
        s_t = GRU(E y_t, s_{t-1})                          the target, one way
        e_tj = vᵀ tanh(W_a s_t + U_a h_j)                  additive score
        e_tj = s_tᵀ U_a h_j                                multiplicative score
        c_t = Σ_j softmax_j(e_tj) h_j
        o_t = tanh(W_c [c_t; s_t])
        logits_t = W_o o_t + b

    Layers are stacked: the output of one is the input of the next.
    Attention is that of Luong et al.: it comes after the recurrence, in the last
    layer's state, and o_t does not enter the next step (no input feeding). So the
    attention of all positions is computed at once, in products of matrices. Bahdanau et
    al. put attention before the recurrence, where each position waits for the one
    before. The additive score needs `batch · targets · sources · n` numbers of memory
    at once, and fewer by far on packed sentences.

    The GRU is Keras', with a bias of its own within the reset gate (`reset_after`).

    Dropout acts on the embeddings, on what one layer gives the next, and on o_t.

    Masking: no attention goes to padding, and states stay as they are on it.

    Packing: everything but the recurrences skips padding.

    Args:
        source_vocab_size: number of source ids, padding (0) included.
        target_vocab_size: number of target ids, padding (0) included.
        config: a `RecurrentConfig`, or its fields.
        **kwargs: passed to `keras.Model`.

    Call arguments:
        inputs: the pair `(source_ids, target_ids)`, integer tensors `(batch, sources)`
            and `(batch, targets)`, or the four that `reprt.data.pack` makes of it.
        training: whether dropout is active.

    Returns:
        Logits `(batch, targets, target_vocab_size)`; packed, `(1, packed,
        target_vocab_size)`.

    Raises:
        ValueError: for inputs that are neither, ids that are not integers of rank 2,
            or a shared embedding of vocabularies of different sizes.

    >>> import keras, reprt
    >>> model = reprt.models.build("recurrent", 30, 20, embedding_dim=8, hidden_dim=16)
    >>> source, target = keras.ops.array([[2, 5, 3, 0]]), keras.ops.array([[2, 7]])
    >>> tuple(model((source, target)).shape)
    (1, 2, 20)

    Reference: Bahdanau et al. 2015 (arXiv 1409.0473), appendix A, for encoder, s_0 and
    additive score; Luong et al. 2015 (arXiv 1508.04025), section 3, for the rest.
    """

    config_class = RecurrentConfig
    packed_layout = "sides"

    def __init__(self, source_vocab_size, target_vocab_size, config, **kwargs):
        super().__init__(source_vocab_size, target_vocab_size, config, **kwargs)
        config = self.config
        self.source_embedding = self._embedding("source", source_vocab_size)
        table = None
        if config.shared_embedding:
            table = self.source_embedding.embedding
        self.target_embedding = self._embedding(
            "target", target_vocab_size, table
        )
        numbers = range(1, config.num_layers + 1)
        self.encoder = [
            self._bidirectional_gru(f"encoder_{number}") for number in numbers
        ]
        self.decoder = [self._gru(f"decoder_{number}") for number in numbers]
        self.encoder_dropout = [
            self._dropout(f"encoder_dropout_{number}") for number in numbers
        ]
        self.decoder_dropout = [
            self._dropout(f"decoder_dropout_{number}") for number in numbers
        ]
        self.output_dropout = self._dropout("output_dropout")
        width = config.hidden_dim
        self.start_dense = self._dense(config.num_layers * width, "start")
        self.key_dense = self._dense(width, "key")
        self.query_dense: Any = None
        self.score_dense: Any = None
        if config.attention == "additive":
            self.query_dense = self._dense(width, "query")
            self.score_dense = self._dense(1, "score")
        self.combined_dense = self._dense(config.embedding_dim, "combined")
        self.output_dense = None
        if config.output_tying == "none":
            self.output_dense = self._dense(
                target_vocab_size, "output", use_bias=True
            )

    def _embedding(self, side, vocab_size, table=None):
        return TokenAndPositionEmbedding(
            vocab_size,
            self.config.embedding_dim,
            # A recurrence knows the order by itself.
            positional=None,
            scale="none",
            embedding=table,
            dtype=self.dtype_policy,
            name=f"{side}_embedding",
        )

    def _bidirectional_gru(self, name):
        return keras.layers.Bidirectional(
            self._gru("gru"),
            dtype=self.dtype_policy,
            name=name,
        )

    def _gru(self, name):
        return keras.layers.GRU(
            self.config.hidden_dim,
            return_sequences=True,
            recurrent_initializer=_Orthogonal(),
            # An export that was made on a GPU runs without one.
            use_cudnn=False,
            dtype=self.dtype_policy,
            name=name,
        )

    def _dropout(self, name):
        rate = self.config.dropout
        return keras.layers.Dropout(rate, dtype=self.dtype_policy, name=name)

    def build(self, input_shape=None):
        if self.built:
            return
        m = self.config.embedding_dim
        n = self.config.hidden_dim
        self.source_embedding.build((None, None))
        self.target_embedding.build((None, None))
        encoder_width = decoder_width = m
        for encoder, decoder in zip(self.encoder, self.decoder):
            encoder.build((None, None, encoder_width))
            decoder.build((None, None, decoder_width))
            encoder_width, decoder_width = 2 * n, n
        self.start_dense.build((None, n))
        self.key_dense.build((None, None, 2 * n))
        if self.query_dense is not None:
            self.query_dense.build((None, None, n))
            self.score_dense.build((None, None, None, n))
        self.combined_dense.build((None, None, 3 * n))
        if self.output_dense is not None:
            self.output_dense.build((None, None, m))

    def multiply_adds(self, sources, targets):
        m = self.config.embedding_dim
        n = self.config.hidden_dim
        layers = self.config.num_layers
        source_token = 6 * n * (m + n + 3 * n * (layers - 1)) + 2 * n * n
        target_token = 3 * n * (m + n + 2 * n * (layers - 1))
        target_token += m * (3 * n + self.target_vocab_size)
        if self.config.attention == "additive":
            target_token += n * n
        tokens = source_token * sources + target_token * targets
        return layers * n * n + tokens + 3 * n * sources * targets

    def encode(self, source_ids, *, training=None):
        mask = padding_mask(source_ids)
        _, states = self.source_embedding(source_ids)
        for layer, dropout in zip(self.encoder, self.encoder_dropout):
            states = dropout(states, training=training)
            states = layer(states, mask=mask)
        n = self.config.hidden_dim
        # The backward states of the first real token have read the whole sentence.
        backward = first_real(states[:, :, n:], mask)
        initial = ops.tanh(self.start_dense(backward[:, 0]))
        initial = ops.reshape(initial, (-1, self.config.num_layers, n))
        return RecurrentMemory(states, self.key_dense(states), initial, mask)

    def states(self, inputs, training=None):
        source_ids, target_ids, *packings = self._unpack(inputs)
        memory = self.encode(source_ids, training=training)
        target_states = self._target_states(target_ids, memory, training)
        sources, targets = Padded(memory.mask), Padded()
        if packings:
            source_packing, target_packing = packings
            sources = source_packing.layout(num_heads=1)
            targets = target_packing.layout(num_heads=1)
        target_states = targets.take(target_states)
        states, _ = self._attentional_states(
            target_states, memory, sources, targets, training
        )
        return states

    def attention_weights(self, source_ids, target_ids):
        memory = self.encode(source_ids, training=False)
        target_states = self._target_states(target_ids, memory, training=False)
        sources = Padded(memory.mask)
        _, weights = self._attentional_states(
            target_states, memory, sources, Padded(), False
        )
        return {"cross": weights[0][None, :, None]}

    def start(self, memory: RecurrentMemory, beams: int, capacity: int):
        # The state of each layer after the last token: room for any number of them.
        states = ops.repeat(memory.initial_states, beams, axis=0)
        return Prefixes(states, memory)

    def step(self, ids, position, prefixes):
        _, embedding = self.target_embedding(ops.expand_dims(ids, 1))
        state = embedding[:, 0]
        states = []
        for number, layer in enumerate(self.decoder):
            state, _ = layer.cell(state, prefixes.state[:, number])
            states.append(state)
        # All hypotheses of a sentence attend to its memory at once.
        memory = prefixes.memory
        sentences = ops.shape(memory.mask)[0]
        target_states = ops.reshape(
            state, (sentences, -1, self.config.hidden_dim)
        )
        context, _ = self._attend(
            target_states, memory.keys, memory.states, memory.mask
        )
        combined = self._output(context, target_states, training=False)
        combined = ops.reshape(combined, (-1, self.config.embedding_dim))
        prefixes = prefixes._replace(state=ops.stack(states, axis=1))
        return self.logits(combined), prefixes

    def _target_states(self, target_ids, memory, training):
        """s of the last layer, `(batch, targets, n)`."""
        _, states = self.target_embedding(target_ids)
        mask = padding_mask(target_ids)
        for number, layer in enumerate(self.decoder):
            states = self.decoder_dropout[number](states, training=training)
            initial = memory.initial_states[:, number]
            states = layer(states, mask=mask, initial_state=initial)
        return states

    def _attentional_states(self, states, memory, sources, targets, training):
        """o of the target's tokens, and the weights of each group of sentences."""
        keys = sources.take(memory.keys)
        values = sources.take(memory.states)
        # Layouts split heads, and this attention has one.
        groups = zip(
            targets.split(ops.expand_dims(states, 2)),
            sources.split(ops.expand_dims(keys, 2)),
            sources.split(ops.expand_dims(values, 2)),
            sources.masks,
            strict=True,
        )
        contexts, weights = [], []
        for queries, group_keys, group_values, mask in groups:
            context, group_weights = self._attend(
                queries[:, 0],
                group_keys[:, 0],
                group_values[:, 0],
                mask,
            )
            contexts.append(ops.expand_dims(context, 1))
            weights.append(group_weights)
        context = ops.squeeze(targets.join(contexts), 2)
        return self._output(context, states, training), weights

    def _attend(self, states, keys, values, mask):
        """c, `(batch, targets, 2n)`, and the weights `(batch, targets, sources)`."""
        if self.query_dense is None:
            keys = ops.transpose(keys, (0, 2, 1))
            scores = ops.matmul(states, keys)
        else:
            queries = ops.expand_dims(self.query_dense(states), 2)
            hidden = ops.tanh(queries + ops.expand_dims(keys, 1))
            scores = ops.squeeze(self.score_dense(hidden), -1)
        scores = for_softmax(scores, ops.expand_dims(mask, 1))
        weights = ops.softmax(scores, axis=-1)
        weights = ops.cast(weights, states.dtype)
        return ops.matmul(weights, values), weights

    def _output(self, context, states, training):
        context_and_states = ops.concatenate([context, states], axis=-1)
        combined = ops.tanh(self.combined_dense(context_and_states))
        return self.output_dropout(combined, training=training)
