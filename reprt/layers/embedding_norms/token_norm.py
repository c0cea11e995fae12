"""TokenNorm, the paper's normalisation across tokens (section 2.1, eq. 4-7)."""

from typing import Any, NamedTuple

import keras
from keras import ops

from reprt.constants import check_choice
from reprt.layers.dtypes import at_least_float32
from reprt.layers.embedding_norms.base import EmbeddingNorm
from reprt.layers.masks import check_mask, first_real


class RunningStatistics(NamedTuple):
    """What a prefix leaves behind for the tokens after it, each `(batch, 1, features)`.

    Attributes:
        first: the first token, from which all others are measured.
        total: the sum of the tokens.
        squares: the sum of their squared distances from their mean.
    """

    first: Any
    total: Any
    squares: Any


@keras.saving.register_keras_serializable(package="reprt")
class TokenNorm(EmbeddingNorm):
    """Gives every feature column zero mean and unit variance over the tokens.

    With `n` tokens and column `j` of `X` (eq. 5-7):

        TN(X)[:, j] = (X[:, j] - mean(X[:, j])) / sqrt(var(X[:, j]) + epsilon)

    where mean and variance (the population's, divided by `n`) run over the tokens of
    one sequence. The paper has no `epsilon`; without one a single token would divide 0
    by 0. With it, **a single token is mapped to 0**, and the result does not depend on
    the scale of `X` as long as its variance is well above `epsilon`.

    With `statistics="sequence"`, as published, each output depends on every token of
    the sequence, **later ones included**: in a decoder this lets position t see the
    mean and variance of words that it has yet to produce. With `statistics="prefix"`
    position t is normalised by the mean and variance of tokens 1..t, so it never
    depends on later tokens; this is a departure from the paper.

    Statistics are computed in float32 whatever the dtype policy.

    Masking: with a mask, padding takes no part in the statistics and its rows are
    zeros in the output. Without one, every row counts as a token. A Keras mask
    attached to the input is used when no mask is given, and stays attached.

    Args:
        statistics: `"sequence"` or `"prefix"`, see above. Defaults to `"sequence"`.
        epsilon: small positive number added to the variance. Defaults to `1e-6`:
            embeddings start with a variance near 1e-3, which Keras' usual 1e-3 would
            visibly shrink.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        x: tensor `(batch, tokens, features)`.
        mask: boolean tensor `(batch, tokens)`, True on real tokens.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        ValueError: for unknown statistics, an input whose rank is not 3, or a mask that
            is not boolean of rank 2.

    >>> import keras, reprt
    >>> x = keras.ops.array([[[1.0], [3.0], [9.0]]])
    >>> mask = keras.ops.array([[True, True, False]])
    >>> y = reprt.layers.TokenNorm()(x, mask=mask)
    >>> (keras.ops.convert_to_numpy(y)[0, :, 0].round(3) + 0.0).tolist()
    [-1.0, 1.0, 0.0]

    Reference: section 2.1, eq. 4-7 of the paper.
    """

    def __init__(self, statistics="sequence", epsilon=1e-6, **kwargs):
        super().__init__(**kwargs)
        check_choice(STATISTICS, statistics=statistics)
        self.statistics = statistics
        self.epsilon = epsilon

    @property
    def causal(self):
        return self.statistics == "prefix"

    def call(self, x, mask=None):
        tokens = at_least_float32(x)
        if mask is None:
            real = ops.ones_like(tokens[..., :1])
            first = tokens[:, :1]
        else:
            mask = check_mask(self, "mask", mask, "batch, tokens")
            # Where, not times: padding may hold infinities, and 0 times them is NaN.
            tokens = ops.where(mask[..., None], tokens, 0.0)
            real = ops.cast(mask[..., None], tokens.dtype)
            first = first_real(tokens, mask)
        # Subtracting the first real token changes no result and keeps sums small, so
        # that a large common mean costs no precision.
        tokens = real * (tokens - ops.stop_gradient(first))
        centred, variance = STATISTICS[self.statistics](tokens, real)
        normed = real * centred * ops.rsqrt(variance + self.epsilon)
        return ops.cast(normed, x.dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "statistics": self.statistics,
            "epsilon": self.epsilon,
        }

    def start(self, batch, features):
        """Returns the `RunningStatistics` of no token at all."""
        zeros = ops.zeros((batch, 1, features), self.compute_dtype)
        zeros = at_least_float32(zeros)
        return RunningStatistics(zeros, zeros, zeros)

    def step(self, x, position, state):
        """Normalises one further token of each sequence, by its prefix's statistics."""
        tokens = at_least_float32(x)
        position = ops.reshape(position, (-1, 1, 1))
        first = ops.where(ops.equal(position, 0), tokens, state.first)
        tokens = tokens - first
        count_before = ops.cast(position, tokens.dtype)
        count = count_before + 1.0
        growth = _growth(tokens, state.total, count_before, count)
        total = state.total + tokens
        squares = state.squares + growth
        scale = ops.rsqrt(squares / count + self.epsilon)
        normed = ops.cast((tokens - total / count) * scale, x.dtype)
        return normed, RunningStatistics(first, total, squares)


def _over_sequence(tokens, real):
    """Tokens minus the mean of all real ones, and their variance."""
    count = ops.maximum(ops.sum(real, axis=1, keepdims=True), 1.0)
    centred = tokens - ops.sum(tokens, axis=1, keepdims=True) / count
    squares = ops.sum(real * ops.square(centred), axis=1, keepdims=True)
    return centred, squares / count


def _over_prefix(tokens, real):
    """Tokens minus the mean of the real ones up to each, and the prefixes' variances.

    Welford's recurrence as cumulative sums: the k-th token adds
    (k - 1)/k · (x_k − mean_{k−1})² to the sum of squares. No term is negative, so
    nothing cancels however long the sequence or large the mean.
    """
    count = ops.cumsum(real, axis=1)
    total = ops.cumsum(tokens, axis=1)
    safe_count = ops.maximum(count, 1.0)
    growth = real * _growth(tokens, total - tokens, count - real, safe_count)
    return tokens - total / safe_count, ops.cumsum(growth, axis=1) / safe_count


def _growth(token, total_before, count_before, count):
    mean_before = total_before / ops.maximum(count_before, 1.0)
    return count_before / count * ops.square(token - mean_before)


# What the statistics run over.
STATISTICS = {"sequence": _over_sequence, "prefix": _over_prefix}
