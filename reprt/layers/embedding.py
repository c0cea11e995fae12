"""From ids to vectors: what enters the first block, and what attention may weigh."""

import keras
from keras import ops

from reprt.constants import check_choice, check_sizes
from reprt.layers.base import Layer, count_holder, serialize
from reprt.layers.dtypes import indices
from reprt.layers.embedding_norms.base import EmbeddingNorm
from reprt.layers.layout import Packed, layout_of, places_from_mask
from reprt.layers.masks import check_vocabulary, padding_mask
from reprt.layers.positions.base import Positional

# The factor on embeddings is a power of their width.
SCALES = {"sqrt": 0.5, "inverse_sqrt": -0.5, "none": 0.0}


@keras.saving.register_keras_serializable(package="reprt")
class TokenAndPositionEmbedding(Layer):
    """Embeds ids and joins their positions to them.

    With X_e the embedding of the ids (eq. 1-2):

        tokens = token_norm(scale · X_e)
        states = dropout(positional(tokens))

    | | `token_norm` | `positional` | tokens | states |
    |---|---|---|---|---|
    | RePE | `TokenNorm()` | `ConcatPositional()` | m wide | 2m wide |
    | baseline | `None` | `AddPositional()` | m wide | m wide |

    Several of these layers may share an embedding, a norm or a positional layer.
    The states enter the first block; the tokens are what RePE's attentions take as
    their value in every block. The scale is sqrt(m) in TensorFlow's tutorial, which
    the paper says it follows, and 1/sqrt(m) in the paper's eq. 18; before a TokenNorm
    it changes nothing but the weight of epsilon.

    Masking: positions count the ids that are not 0, so that padding may stand anywhere.
    Results of a norm or a position method carry the mask that it was given, as those of
    Keras' layers do. Without either they carry none, and a layer that uses masks, such
    as a GRU, has to be given one: `reprt.layers.padding_mask` makes it.

    Args:
        vocab_size: number of ids, padding (0) included.
        embedding_dim: width m of the embedding; even if `positional` has sinusoids of
            that width.
        positional: `AddPositional`, `ConcatPositional` or a layer like them, called on
            the tokens, `offset` and `mask`; None where what follows knows the order by
            itself, and states are tokens. One that acts within attention does nothing
            here.
        token_norm: an `EmbeddingNorm` such as `TokenNorm`, or None.
        scale: `"sqrt"`, `"inverse_sqrt"` or `"none"`. Defaults to `"sqrt"`.
        dropout: rate of dropout on the states. Defaults to 0.
        embedding: a `keras.layers.Embedding` in which others look tokens up too.
            Defaults to one of its own.
        token_dropout: rate of dropout on the tokens, by a mask of their own. The
            states are made before it. Defaults to 0.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        ids: integer tensor `(batch, length)`, 0 for padding.
        statistics_mask: boolean tensor `(batch, length)`, True on the tokens that
            count in the norm's statistics; None for the real ones.
        layout: a `reprt.layers.layout.Packed`, for packed results; None, or a padding
            mask, for padded ones.
        offset: place of the first of the tokens, a scalar or integers that broadcast to
            `(batch, length)`.
        training: whether dropout is active.

    Returns:
        The pair `(tokens, states)`, `(batch, length, m)` and `(batch, length, width)`,
        where the width is m, or m + dim with a `ConcatPositional`; packed, `(1, packed,
        ...)`.

    Raises:
        ValueError: for an unknown scale, parts of another kind or size, or ids that are
            not integers of rank 2 or, outside of graphs, not in the vocabulary.

    >>> import keras, reprt
    >>> embedding = reprt.layers.TokenAndPositionEmbedding(
    ...     vocab_size=10,
    ...     embedding_dim=4,
    ...     positional=reprt.layers.ConcatPositional(),
    ...     token_norm=reprt.layers.TokenNorm(),
    ... )
    >>> tokens, states = embedding(keras.ops.array([[2, 5, 3]]))
    >>> tuple(tokens.shape), tuple(states.shape)
    ((1, 3, 4), (1, 3, 8))

    Reference: section 2, eq. 1, 2 and 8-11 (RePE), and appendix A, eq. 18 and 28
    (baseline) of the paper.
    """

    parts = ("positional", "token_norm", "embedding")

    def __init__(
        self,
        vocab_size,
        embedding_dim,
        positional,
        token_norm=None,
        scale="sqrt",
        dropout=0.0,
        embedding=None,
        token_dropout=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        # Keras would cast ids that a graph has as floats, of which half precision lacks
        # many.
        self.autocast = False
        check_choice(SCALES, scale=scale)
        check_sizes(vocab_size=vocab_size, embedding_dim=embedding_dim)
        self.vocab_size = vocab_size
        self.embedding_dim = embedding_dim
        self.positional = count_holder("positional", positional)
        self.token_norm = count_holder("token_norm", token_norm, EmbeddingNorm)
        self.scale = scale
        self.dropout = dropout
        self.token_dropout = token_dropout
        self.shared = embedding is not None
        self.embedding = embedding or keras.layers.Embedding(
            vocab_size,
            embedding_dim,
            dtype=self.dtype_policy,
            name="embedding",
        )
        count_holder("embedding", self.embedding, keras.layers.Embedding)
        sizes = self.embedding.input_dim, self.embedding.output_dim
        if sizes != (vocab_size, embedding_dim):
            raise ValueError(
                "Expected `embedding` to be one of the same `vocab_size` and "
                f"`embedding_dim`. Received: {sizes}."
            )
        self.factor = embedding_dim ** SCALES[scale]
        # Whether no position depends on a later token.
        self.causal = token_norm is None or token_norm.causal
        call = getattr(type(positional), "call", Positional.call)
        changes_tokens = call is not Positional.call
        self.by_place = getattr(positional, "by_place", False)
        # Whether `step` does for one token what the call does for all.
        self.has_step = self.causal and (self.by_place or not changes_tokens)
        # Whether a token's results depend only on it and its place.
        looks_back = token_norm is not None and token_norm.looks_back
        self.acts_by_token = self.has_step and not looks_back
        self.dropout_layer = self._dropout(dropout)
        self.token_dropout_layer = self._dropout(token_dropout, "token_dropout")

    def build(self, ids_shape):
        tokens_shape = (*ids_shape, self.embedding_dim)
        for layer, shape in (
            (self.embedding, ids_shape),
            (self.positional, tokens_shape),
            (self.token_norm, tokens_shape),
        ):
            # Who shares or has loaded a layer may have built it.
            if layer is not None and not layer.built:
                layer.build(shape)

    def call(
        self,
        ids,
        statistics_mask=None,
        layout=None,
        offset=0,
        training=None,
    ):
        mask = padding_mask(ids)
        check_vocabulary("ids", ids, self.vocab_size)
        layout = layout_of(layout)
        packs_first = self.acts_by_token and isinstance(layout, Packed)
        if packs_first:
            # Padding is left out at once. A place is an offset to that among the
            # packed tokens.
            length = ids.shape[1]
            is_known = isinstance(offset, int) and length is not None
            if self.positional is not None and is_known:
                self.positional.check_length(offset + length)
            places = layout.take(places_from_mask(mask, offset))
            offset = places - indices(ops.shape(places)[1])
            ids, mask, statistics_mask = layout.take(ids), None, None
        tokens = self._embed(ids)
        if self.token_norm is not None:
            if statistics_mask is None:
                statistics_mask = mask
            tokens = self.token_norm(tokens, mask=statistics_mask)
        states = self._add_positions(tokens, offset=offset, mask=mask)
        if not packs_first:
            tokens, states = layout.take(tokens), layout.take(states)
        tokens = self.token_dropout_layer(tokens, training=training)
        return tokens, self.dropout_layer(states, training=training)

    def start(self, batch):
        """Returns what `step` needs to know before the first token of each sequence."""
        if self.token_norm is None:
            return ()
        return self.token_norm.start(batch, self.embedding_dim)

    def step(self, ids, position, state):
        """Embeds one further token of each sequence, if the layer `has_step`.

        It takes ids `(batch, 1)` at a position, a scalar or integers `(batch, 1)`, and
        returns tokens and states as the call, and the new state.
        """
        tokens = self._embed(ids)
        if self.token_norm is not None:
            tokens, state = self.token_norm.step(tokens, position, state)
        return tokens, self._add_positions(tokens, offset=position), state

    def _add_positions(self, tokens, **places):
        return (
            tokens
            if self.positional is None
            else self.positional(tokens, **places)
        )

    def _embed(self, ids):
        tokens = self.embedding(ids)
        return tokens * ops.cast(self.factor, tokens.dtype)

    def compute_output_shape(self, ids_shape):
        tokens_shape = (*ids_shape, self.embedding_dim)
        if self.positional is None:
            return tokens_shape, tokens_shape
        return tokens_shape, self.positional.compute_output_shape(tokens_shape)

    def get_config(self):
        shared = self.shared or self.embedding.holders > 1
        return {
            **super().get_config(),
            "vocab_size": self.vocab_size,
            "embedding_dim": self.embedding_dim,
            "positional": serialize(self.positional),
            "token_norm": serialize(self.token_norm),
            "scale": self.scale,
            "dropout": self.dropout,
            "embedding": serialize(self.embedding) if shared else None,
            "token_dropout": self.token_dropout,
        }
