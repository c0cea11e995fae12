"""What every normalisation of the embeddings offers."""

import abc

from reprt.layers.base import Layer


class EmbeddingNorm(Layer, abc.ABC):
    """Token embeddings to normalised ones: `call(x, mask=None)`.

    A subclass says in `causal` whether no position depends on later tokens. The models
    believe it: they decode with a cache then, by `start` and `step`; a decoder-only
    model does so only if the norm looks at each token by itself. The two methods
    here are for norms that look at each token by itself. A causal norm that also looks
    at the tokens before has its own.

    A subclass with arguments of its own may have a `get_config`, as Keras' layers do.

    Masking: `mask` says which tokens are real. A Keras mask attached to the input
    stays attached.

    Args:
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        x: tensor `(batch, tokens, features)`.
        mask: boolean tensor `(batch, tokens)`, True on real tokens.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        ValueError: for an input whose rank is not 3.

    Example: each token divided by its largest number.

    >>> from keras import ops
    >>> from reprt.layers.embedding_norms import EmbeddingNorm
    >>> class Largest(EmbeddingNorm):
    ...     causal = True
    ...
    ...     def call(self, x, mask=None):
    ...         return x / ops.max(ops.abs(x), axis=-1, keepdims=True)
    >>> layer = Largest()
    >>> row, _ = layer.step(ops.array([[[3.0, 6.0]]]), 7, layer.start(1, 2))
    >>> ops.convert_to_numpy(row).tolist()
    [[[0.5, 1.0]]]
    """

    @property
    @abc.abstractmethod
    def causal(self) -> bool:
        """Whether no position depends on a later token."""

    @property
    def looks_back(self) -> bool:
        """Whether a position depends on any other token, so that `step` has a state."""
        return type(self).start is not EmbeddingNorm.start

    def build(self, input_shape):
        self._check_tokens(input_shape)

    def start(self, batch, features):
        """Returns what `step` needs to know before the first token of sequences."""
        return ()

    def step(self, x, position, state):
        """Normalises one further token `(batch, 1, features)` of each sequence.

        The position counts from 0; the state is what `start` or the step before
        returned. Returns what the call would at this position, and the new state.
        """
        return self(x), state
