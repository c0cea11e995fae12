"""The paper's attentions: the value may have a width of its own (section 2.3)."""

import math

import keras
from keras import ops

from reprt.constants import check_sizes
from reprt.gradients import times_transposed
from reprt.layers.base import Layer, count_holder, serialize
from reprt.layers.dtypes import at_least_float32, indices
from reprt.layers.layout import HEADS_FIRST, Padded, layout_of, places_from_mask
from reprt.layers.masks import causal_mask, check_mask, for_softmax
from reprt.layers.positions.base import Positional

# Axes of keys, from `(batch, tokens, heads, key_dim)` to `(batch, heads, key_dim,
# tokens)`, as a product with queries takes them.
TOKENS_LAST = (0, 2, 3, 1)
# It is added to squared lengths, so that a vector of zeros has a length.
EPSILON = 1e-6


@keras.saving.register_keras_serializable(package="reprt")
class PMHA(Layer):
    """Multi-head attention of a query to keys, weighing values of any width.

    With p heads (eq. 12 writes m for `key_dim`, its value in both models):

        H_k  = softmax(Q W_k^Q (K W_k^K)^T / sqrt(key_dim)) V W_k^V
        PMHA = [H_1 ... H_p] W^O

    RePE passes states of width 2m as query and key, and TokenNorm's tokens of width m
    as value.

    `keras.layers.MultiHeadAttention` has the same formula, and its value may have a
    width of its own as well. Weights are shaped and ordered as there. The calls differ:
    Keras takes `(query, value, key)`. Here key and value are given by name, because
    exchanged they would give other numbers without an error. A `key_mask` here is a
    `key_mask` there, and without a value the key is weighed, as Keras weighs the value
    without a key. `PMMHA` stands for `use_causal_mask=True`. Only this layer has
    positions within attention, the norm of queries and keys, packed tokens, and steps
    that decode with a cache.

    With `query_key_norm` a learnt number g, at first sqrt(key_dim), replaces 1 /
    sqrt(key_dim), for heads q and k of length 1: g q kᵀ / (|q| |k|).

    Masking: attention goes where `attention_mask` and `key_mask` both allow it. A mask
    that Keras attached to the key serves as `key_mask`; one attached to the query stays
    attached to the output. A query that may attend nowhere gets finite numbers without
    meaning.

    Args:
        num_heads: heads p.
        key_dim: width r of each head's query and key.
        value_dim: width q of each head's value. Defaults to `key_dim`.
        dropout: rate of dropout on the attention weights. Defaults to 0.
        use_bias: whether the projections have biases. Defaults to True.
        query_key_norm: see above. Defaults to False.
        position: a `Positional`, in self-attention; places count the real keys.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        query: tensor `(batch, targets, width)`, as wide as the output.
        key, value: tensors `(batch, sources, width)`, each of its own width. Without a
            value the key is weighed.
        attention_mask: boolean tensor that broadcasts to `(batch, targets, sources)`.
        return_attention_scores: whether to return the weights as well.
        key_mask: boolean tensor `(batch, sources)`, True on real sources. Of packed
            keys, `(1, packed, width)`, their `reprt.layers.layout.Packed` instead.
        query_layout: the `Packed` of packed queries in cross attention. Defaults to the
            key's.
        training: whether dropout is active.

    Returns:
        Tensor `(batch, targets, width)`, and with `return_attention_scores` the weights
        after softmax and dropout, `(batch, heads, targets, sources)`; None if packed.

    Raises:
        ValueError: for an input whose rank is not 3, a mask that is not boolean or not
            of its rank, an `attention_mask` of packed keys, a key or value without its
            name, a size below 1, or a position made for another number of heads. In a
            graph a mask's dtype is not checked: there, what is not 0 means True.

    >>> import keras, reprt
    >>> states, tokens = keras.ops.ones((2, 5, 16)), keras.ops.ones((2, 5, 8))
    >>> attention = reprt.layers.PMHA(num_heads=2, key_dim=8)
    >>> tuple(attention(states, key=states, value=tokens).shape)
    (2, 5, 16)
    >>> layer = reprt.layers.PMHA(num_heads=2, key_dim=9, query_key_norm=True)
    >>> layer.build((2, 5, 16), (2, 5, 16))
    >>> float(layer.scale)
    3.0

    Reference: section 2.3, eq. 12, 13 and 14 of the paper; Henry et al. 2020,
    "Query-key normalization for Transformers" (arXiv 2010.04245).
    """

    parts = ("position",)

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        dropout=0.0,
        use_bias=True,
        query_key_norm=False,
        position=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_sizes(num_heads=num_heads, key_dim=key_dim)
        if value_dim is not None:
            check_sizes(value_dim=value_dim)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim
        self.dropout = dropout
        self.use_bias = use_bias
        self.query_key_norm = query_key_norm
        self.position = count_holder("position", position, Positional)
        if position is not None:
            self._check_position()
        self.dropout_layer = self._dropout(dropout)

    def __call__(self, query, *by_place, **arguments):
        if by_place:
            raise ValueError(
                f"{type(self).__name__} expects key and value by name, as in attention("
                "query, key=key, value=value): keras.layers.MultiHeadAttention has them"
                f" in the other order. Received: {len(by_place)} arguments by place "
                "after the query."
            )
        return super().__call__(query, **arguments)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "dropout": self.dropout,
            "use_bias": self.use_bias,
            "query_key_norm": self.query_key_norm,
            "position": serialize(self.position),
        }

    def build(self, query_shape, key_shape, value_shape=None):
        value_shape = value_shape or key_shape
        shapes = {"query": query_shape, "key": key_shape, "value": value_shape}
        if any(len(shape) != 3 for shape in shapes.values()):
            raise ValueError(
                f"{type(self).__name__} expects query, key and value of shape (batch, "
                f"tokens, features). Received: {shapes}."
            )
        value_dim = self.value_dim or self.key_dim
        self.query_dense = self._to_heads("query", query_shape, self.key_dim)
        self.key_dense = self._to_heads("key", key_shape, self.key_dim)
        self.value_dense = self._to_heads("value", value_shape, value_dim)
        width = query_shape[-1:]
        self.output_dense = self._dense("abcd,cde->abe", "e", width, "output")
        self.output_dense.build((*query_shape[:-1], self.num_heads, value_dim))
        if self.position is not None and not self.position.built:
            self.position.build(query_shape)
        if self.query_key_norm:
            # It keeps the variance of eq. 12's scores. Henry et al. start at
            # log2(L² − L), whose L, a length of the text, a layer does not know.
            root = keras.initializers.Constant(self.key_dim**0.5)
            self.scale = self.add_weight((), root, name="scale", autocast=False)

    def _check_position(self):
        kind = type(self.position).__name__
        heads = getattr(self.position, "num_heads", self.num_heads)
        if heads != self.num_heads:
            raise ValueError(
                f"{type(self).__name__} has {self.num_heads} heads. Received: a "
                f"{kind} with num_heads={heads}."
            )
        if self.position.on_entry:
            raise ValueError(
                f"Expected a position that acts within attention. Received: a {kind}, "
                "which acts on tokens, as the `positional` of a "
                "TokenAndPositionEmbedding."
            )

    def _to_heads(self, name, input_shape, width):
        """The projection of an input to all heads."""
        heads = self.num_heads, width
        dense = self._dense("abc,cde->abde", "de", heads, name)
        dense.build(input_shape)
        return dense

    def _dense(self, equation, bias_axes, output_shape, name):
        return keras.layers.EinsumDense(
            equation,
            (None, *output_shape),
            bias_axes=bias_axes if self.use_bias else None,
            dtype=self.dtype_policy,
            name=name,
        )

    def call(
        self,
        query,
        *,
        key,
        value=None,
        attention_mask=None,
        return_attention_scores=False,
        key_mask=None,
        query_layout=None,
        training=None,
    ):
        key_layout = layout_of(key_mask)
        if attention_mask is not None and not isinstance(key_layout, Padded):
            raise ValueError(
                f"{type(self).__name__} expects `attention_mask` to be None where keys "
                "are packed. Received: a mask."
            )
        if self._of_one_sequence:
            self._check_lengths(query.shape[1], key.shape[1])
        query_layout = query_layout or key_layout
        places = self._places(key, key_layout)
        groups = zip(
            query_layout.split(self._queries(query, places)),
            key_layout.split(self._keys(key, places)),
            key_layout.masks,
            self._biases(key, key_layout),
            strict=True,
        )
        weights = []
        for queries, keys, mask, bias in groups:
            mask = self._mask(attention_mask, mask, queries)
            # Eq. 12: (sentences, heads, targets, sources).
            scores = times_transposed(queries, keys)
            scores = self._scores(scores, mask, bias)
            weights.append(self._weights(scores))
        weights = self.dropout_layer.of_all(weights, training)
        values = key_layout.split(self._values(key, value))
        heads = list(map(ops.matmul, weights, values))
        output = _project(self.output_dense, query_layout.join(heads))
        if not return_attention_scores:
            return output
        return output, weights[0] if isinstance(key_layout, Padded) else None

    @property
    def _of_one_sequence(self):
        """Whether queries and keys are the tokens of one sequence."""
        return self.position is not None

    def _check_lengths(self, query_length, key_length):
        """Raises a `ValueError` for two lengths; one that is not known is None."""
        are_known = None not in (query_length, key_length)
        if are_known and query_length != key_length:
            raise ValueError(
                f"{type(self).__name__} expects the query and the key to be of one "
                "sequence, as it compares their places. Received: lengths "
                f"{query_length} and {key_length}."
            )

    def heads(self, key, value=None, key_mask=None):
        """Returns keys and values as attention takes them, to be kept while decoding.

        They are `(batch, heads, key_dim, sources)` and `(batch, heads, sources,
        value_dim)`. So few queries read them in the order of memory.
        """
        places = self._places(key, Padded(key_mask))
        keys = self._keys(key, places)
        values = self._values(key, value)
        keys = ops.transpose(keys, TOKENS_LAST)
        return keys, ops.transpose(values, HEADS_FIRST)

    def token(self, key, value, place):
        """Returns keys and values `(sequences, heads, 1, …)` of a token at a place."""
        keys = self._keys(key, place)
        values = self._values(key, value)
        keys = ops.transpose(keys, HEADS_FIRST)
        return keys, ops.transpose(values, HEADS_FIRST)

    def attend_to(self, query, sequences, memory=None, offset=0, position=0):
        """Attends to the tokens of several sequences as to those of one.

        Args:
            query: tensor `(hypotheses, 1, width)`, as the result: a token of each; the
                hypotheses of a sentence follow one another, as many of each.
            sequences: for each the triple of keys and values, by `heads`, and of a
                boolean mask that broadcasts to `(hypotheses, 1, sources)`, or None.
            memory: such a triple of the sentences, which their hypotheses share.
            offset: place of the first token after the memory, a scalar or integers
                `(hypotheses, 1)`.
            position: the query's place after that, a scalar.
        """
        query = self._queries(query, offset + position)
        query = ops.transpose(query, HEADS_FIRST)
        scores = self._step_scores(query, sequences, memory)
        if self.position is not None:
            hypotheses = ops.shape(query)[0]
            places = _places_of(hypotheses, sequences, memory, offset)
            bias = self._step_bias(offset + position, places)
            scores = scores if bias is None else scores + bias
        heads = _step_heads(self._weights(scores), sequences, memory)
        heads = ops.transpose(heads, HEADS_FIRST)
        return _project(self.output_dense, heads)

    def _step_scores(self, query, sequences, memory):
        """Scores of the memory's tokens, then of each sequence's, side by side."""
        scores = []
        if memory is not None:
            keys, _, mask = memory
            products = ops.matmul(_by_sentence(query, ops.shape(keys)[0]), keys)
            scores.append(_by_hypothesis(self._scores(products, mask)))
        for keys, _, mask in sequences:
            scores.append(self._scores(ops.matmul(query, keys), mask))
        return ops.concatenate(scores, axis=3)

    def _queries(self, query, places):
        """Queries whose products with keys are the scores, but for bias and mask."""
        factor = self.scale if self.query_key_norm else self.key_dim**-0.5
        if self.position is None and not self.query_key_norm:
            return _project(self.query_dense, query, factor)
        queries = self._normalize_and_turn(
            _project(self.query_dense, query), places
        )
        if self.position is not None:
            factor = factor * self.position.score_factor
        scaled = at_least_float32(queries)
        scaled = scaled * ops.cast(factor, scaled.dtype)
        return ops.cast(scaled, queries.dtype)

    def _keys(self, key, places):
        return self._normalize_and_turn(_project(self.key_dense, key), places)

    def _values(self, key, value):
        return _project(self.value_dense, key if value is None else value)

    def _normalize_and_turn(self, heads, places):
        if self.query_key_norm:
            wide = at_least_float32(heads)
            squares = ops.sum(ops.square(wide), axis=-1, keepdims=True)
            heads = ops.cast(wide * ops.rsqrt(squares + EPSILON), heads.dtype)
        if self.position is None:
            return heads
        return self.position.turn(heads, places)

    def _places(self, x, layout):
        """Where tokens stand in their sentences, for a position; or None."""
        if self.position is None:
            return None
        self.position.check_length(layout.longest(x))
        return layout.token_places(x)

    def _biases(self, key, layout):
        """What the position adds to the scores of each group of sentences."""
        if self.position is None:
            return [None] * len(layout.masks)
        return [
            self._bias(places, places) for places in layout.group_places(key)
        ]

    def _step_bias(self, place, places):
        """What the position adds to the scores of one token of each hypothesis."""
        self.position.check_length(places.shape[1])
        place = ops.broadcast_to(place, (ops.shape(places)[0], 1))
        return self._bias(place, places)

    def _bias(self, queries, keys):
        bias = self.position.bias(queries, keys)
        if bias is None:
            return None
        # Scores are widened before the bias is added; a user's bias may be half wide.
        dtype = keras.backend.result_type(self.compute_dtype, "float32")
        return ops.cast(bias, dtype)

    def _mask(self, attention_mask, key_mask, query):
        """Where attention may go; `query` has its heads first."""
        attention_mask = check_mask(
            self,
            "attention_mask",
            attention_mask,
            "batch, targets, sources",
        )
        key_mask = check_mask(self, "key_mask", key_mask, "batch, sources")
        if key_mask is None:
            return attention_mask
        key_mask = key_mask[:, None, :]
        if attention_mask is None:
            return key_mask
        return ops.logical_and(attention_mask, key_mask)

    def _scores(self, products, mask, bias=None):
        """What the softmax of eq. 12 takes, `(batch, heads, targets, sources)`."""
        if bias is not None:
            products = at_least_float32(products) + bias
        return for_softmax(
            products, None if mask is None else ops.expand_dims(mask, 1)
        )

    def _weights(self, scores):
        return ops.cast(ops.softmax(scores, axis=-1), self.compute_dtype)


def _project(dense, x, factor=1.0):
    """Every token's projection, `(batch, tokens, …)`: what `dense` returns, scaled.

    It is one product of two matrices, for the tokens of all sequences. For few tokens
    TensorFlow takes a fraction of the time that the same takes as an einsum.
    """
    # The kernel of a quantised layer is not its weights.
    if dense.quantization_mode is not None:
        return factor * dense(x)
    # A kernel has fewer numbers than what it makes.
    kernel = ops.cast(factor * dense.kernel, dense.compute_dtype)
    # The axes of a token's channels, or of its heads.
    inputs = len(x.shape) - 2
    token_shape = tuple(kernel.shape[:inputs])
    if tuple(x.shape[2:]) != token_shape:
        raise ValueError(
            f"The {dense.name} was built for tokens of the shape {token_shape}. "
            f"Received: {tuple(x.shape)}."
        )
    outputs = kernel.shape[inputs:]
    kernel = ops.reshape(kernel, (-1, math.prod(outputs)))
    x = ops.cast(x, dense.compute_dtype)
    rows = ops.reshape(x, (-1, kernel.shape[0]))
    projected = ops.matmul(rows, kernel)
    if dense.bias is not None:
        bias = ops.cast(factor * dense.bias, dense.compute_dtype)
        projected = ops.add(projected, ops.reshape(bias, (-1,)))
    # A size that is known spares a step's graph the operations that find it out.
    batch, tokens = ops.shape(x)[:2]
    return ops.reshape(
        projected, (-1 if x.shape[1] else batch, tokens, *outputs)
    )


def _places_of(hypotheses, sequences, memory, offset):
    """Places of the tokens of the memory and all sequences, `(hypotheses, tokens)`."""
    tokens = 0
    for _, values, _ in sequences:
        tokens += ops.shape(values)[2]
    places = ops.add(offset, indices(tokens)[None])
    places = ops.broadcast_to(places, (hypotheses, tokens))
    if memory is None:
        return places
    _, values, mask = memory
    memory_places = indices(ops.shape(values)[2])[None]
    if mask is not None:
        memory_places = places_from_mask(mask[:, 0])
    beams = hypotheses // ops.shape(memory_places)[0]
    memory_places = ops.repeat(memory_places, beams, axis=0)
    return ops.concatenate([memory_places, places], axis=1)


def _step_heads(weights, sequences, memory):
    """Values weighed, `(hypotheses, heads, 1, value_dim)`; weights as the scores."""
    heads, start = 0, 0
    if memory is not None:
        _, values, _ = memory
        sentences, _, start = ops.shape(values)[:3]
        memory_weights = _by_sentence(weights[..., :start], sentences)
        heads = _by_hypothesis(ops.matmul(memory_weights, values))
    for _, values, _ in sequences:
        end = start + ops.shape(values)[2]
        heads = heads + ops.matmul(weights[..., start:end], values)
        start = end
    return heads


def _by_sentence(x, sentences):
    """From `(hypotheses, heads, 1, width)` to `(sentences, heads, beams, width)`."""
    hypotheses, heads, _, width = ops.shape(x)
    # And no -1, because a source may be empty.
    beams = hypotheses // sentences
    x = ops.reshape(x, (sentences, beams, heads, width))
    return ops.transpose(x, HEADS_FIRST)


def _by_hypothesis(x):
    """The inverse of `_by_sentence`."""
    sentences, heads, beams, width = ops.shape(x)
    x = ops.transpose(x, HEADS_FIRST)
    return ops.reshape(x, (sentences * beams, heads, 1, width))


@keras.saving.register_keras_serializable(package="reprt")
class PMMHA(PMHA):
    """`PMHA` in which no position attends to a later one, for the decoder.

    The mask M of eq. 30 joins `attention_mask`: attention goes where both allow it.
    It hides later tokens from the *attention* only. A value or key that already
    carries statistics of the whole sequence, as `TokenNorm(statistics="sequence")`
    makes, still lets position t depend on later tokens.

    Masking: by `attention_mask`, `key_mask` or a mask that Keras attached to the key,
    and by M.

    Args:
        num_heads: heads p.
        key_dim: width r of each head's query and key.
        value_dim: width q of each head's value. Defaults to `key_dim`.
        dropout: rate of dropout on the attention weights. Defaults to 0.
        use_bias: whether the projections have biases. Defaults to True.
        query_key_norm: whether heads of queries and keys have length 1, with a learnt
            scale instead of 1 / sqrt(key_dim). Defaults to False.
        position: a `Positional` that acts within attention, or None.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        query, key: the same tensor `(batch, length, width)`, as wide as the output.
        value: tensor `(batch, length, value_width)`. Defaults to the key.
        attention_mask: boolean tensor that broadcasts to `(batch, length, length)`.
        return_attention_scores: whether to return the weights as well.
        key_mask: boolean tensor `(batch, length)`, True on real tokens. Of packed
            tokens, `(1, packed, width)`, their `reprt.layers.layout.Packed` instead.
        training: whether dropout is active.

    Returns:
        Tensor `(batch, length, width)`, and with `return_attention_scores` the weights
        after softmax and dropout, `(batch, heads, length, length)`; None if packed.

    Raises:
        ValueError: for an input whose rank is not 3, a mask that is not boolean or not
            of its rank, an `attention_mask` of packed keys, a key or value without its
            name, a size below 1, or a position made for another number of heads. In a
            graph a mask's dtype is not checked: there, what is not 0 means True.

    >>> import keras, reprt
    >>> x = keras.ops.ones((1, 3, 16))
    >>> layer = reprt.layers.PMMHA(num_heads=1, key_dim=8)
    >>> _, scores = layer(x, key=x, return_attention_scores=True)
    >>> keras.ops.convert_to_numpy(scores)[0, 0, 0].tolist()
    [1.0, 0.0, 0.0]

    Reference: section 2.3 and, for the mask, appendix A.2, eq. 29 and 30 of the paper.
    """

    @property
    def _of_one_sequence(self):
        return True

    def _mask(self, attention_mask, key_mask, query):
        mask = super()._mask(attention_mask, key_mask, query)
        causal = causal_mask(ops.shape(query)[2])
        return causal if mask is None else ops.logical_and(causal, mask)


@keras.saving.register_keras_serializable(package="reprt")
class PMHCA(PMHA):
    """`PMHA` from the decoder's states to the encoder's: cross attention.

    RePE: query = decoder states, key = encoder output, both of width 2m, and value =
    TokenNorm of the *source embedding*, of width m. The baseline: value = key.

    Masking: by `attention_mask`, `key_mask` or a mask that Keras attached to the key.

    Args:
        num_heads: heads p.
        key_dim: width r of each head's query and key.
        value_dim: width q of each head's value. Defaults to `key_dim`.
        dropout: rate of dropout on the attention weights. Defaults to 0.
        use_bias: whether the projections have biases. Defaults to True.
        query_key_norm: whether heads of queries and keys have length 1, with a learnt
            scale instead of 1 / sqrt(key_dim). Defaults to False.
        position: None; places of two sequences do not compare.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        query: tensor `(batch, targets, width)`, as wide as the output.
        key: tensor `(batch, sources, key_width)`.
        value: tensor `(batch, sources, value_width)`. Defaults to the key.
        attention_mask: boolean tensor that broadcasts to `(batch, targets, sources)`.
        return_attention_scores: whether to return the weights as well.
        key_mask: boolean tensor `(batch, sources)`, True on real sources. Of packed
            keys, `(1, packed, width)`, their `reprt.layers.layout.Packed` instead.
        query_layout: the `Packed` of packed queries.
        training: whether dropout is active.

    Returns:
        Tensor `(batch, targets, width)`, and with `return_attention_scores` the weights
        after softmax and dropout, `(batch, heads, targets, sources)`; None if packed.

    Raises:
        ValueError: for a position, an input whose rank is not 3, a mask that is not
            boolean or not of its rank, an `attention_mask` of packed keys, a key or
            value without its name, or a size below 1. In a graph a mask's dtype is not
            checked: there, what is not 0 means True.

    >>> import keras, reprt
    >>> target, source = keras.ops.ones((2, 4, 16)), keras.ops.ones((2, 9, 16))
    >>> layer = reprt.layers.PMHCA(num_heads=2, key_dim=8)
    >>> tuple(layer(target, key=source, value=source[..., :8]).shape)
    (2, 4, 16)

    Reference: section 2.3 and appendix A.2, eq. 31 and 32 of the paper.
    """

    def _check_position(self):
        raise ValueError(
            "PMHCA expects `position` to be None, because places of two sequences do "
            f"not compare. Received: a {type(self.position).__name__}."
        )
