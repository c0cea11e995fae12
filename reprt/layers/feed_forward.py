"""The position-wise feed-forward network, plain or gated."""

import keras

from reprt.constants import check_sizes
from reprt.layers.base import Layer

# What multiplies the second hidden projection, by the names of Shazeer 2020.
GATED = {"glu": "sigmoid", "reglu": "relu", "geglu": "gelu", "swiglu": "silu"}
# Functions of `keras.activations` that take more than a tensor.
NOT_ALONE = {"deserialize", "get", "serialize", "threshold"}


def activations():
    """Returns the names of all activations that `FeedForward` knows.

    >>> from reprt.layers.feed_forward import activations
    >>> {"relu", "gelu", "silu", "swiglu"} <= set(activations())
    True
    """
    names = {*GATED}
    for name, value in vars(keras.activations).items():
        if callable(value) and name not in NOT_ALONE:
            names.add(name)
    return sorted(names)


@keras.saving.register_keras_serializable(package="reprt")
class FeedForward(Layer):
    """The feed-forward network of a block, at each position by itself.

    With one hidden projection, and f = max(0, ·) in the paper:

        FFN(x) = dropout(f(x W_1 + b_1) W_2 + b_2)

    With a gated activation, such as SwiGLU where f is `silu`, a second hidden
    projection is multiplied by the first:

        FFN(x) = dropout((f(x W_1 + b_1) ⊙ (x W_3 + b_3)) W_2 + b_2)

    Masking: none is needed, because no position touches another.

    Args:
        hidden_dim: width s of each hidden projection. The output is as wide as the
            input.
        dropout: rate of dropout after the last projection. Defaults to 0.
        activation: f, a function or its name in `keras.activations`; or the name of a
            gated one, `"glu"`, `"reglu"`, `"geglu"` or `"swiglu"`. Defaults to
            `"relu"`.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        x: tensor `(..., width)`.
        training: whether dropout is active.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ValueError: for an activation that is not known, or a width below 1.

    >>> import keras, reprt
    >>> reprt.layers.FeedForward(hidden_dim=32)(keras.ops.ones((2, 5, 8))).shape[-1]
    8
    >>> gated = reprt.layers.FeedForward(hidden_dim=32, activation="swiglu")
    >>> gated.build((2, 5, 8))
    >>> [tuple(kernel.shape) for kernel in gated.weights[::2]]
    [(8, 32), (8, 32), (32, 8)]

    Reference: appendix A.1, eq. 21 of the paper; dropout as in TensorFlow's tutorial;
    Shazeer 2020, "GLU variants improve Transformer" (arXiv 2002.05202).
    """

    def __init__(self, hidden_dim, dropout=0.0, activation="relu", **kwargs):
        super().__init__(**kwargs)
        check_sizes(hidden_dim=hidden_dim)
        self.hidden_dim = hidden_dim
        self.dropout = dropout
        self.activation = activation
        gated = isinstance(activation, str) and activation in GATED
        self.hidden = self._projection(
            "hidden", activation_function(activation)
        )
        self.linear = self._projection("linear", None) if gated else None
        self.dropout_layer = self._dropout(dropout)

    def _projection(self, name, activation):
        return keras.layers.Dense(
            self.hidden_dim,
            activation=activation,
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, input_shape):
        self.hidden.build(input_shape)
        if self.linear is not None:
            self.linear.build(input_shape)
        self.output_dense = keras.layers.Dense(
            input_shape[-1],
            dtype=self.dtype_policy,
            name="output",
        )
        self.output_dense.build((*input_shape[:-1], self.hidden_dim))

    def call(self, x, training=None):
        hidden = self.hidden(x)
        if self.linear is not None:
            hidden = hidden * self.linear(x)
        return self.dropout_layer(self.output_dense(hidden), training=training)

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_dim": self.hidden_dim,
            "dropout": self.dropout,
            "activation": activation_config(self.activation),
        }


def activation_config(activation):
    """Returns an activation as a config has it: its name, if it has one."""
    if isinstance(activation, str):
        return activation
    return keras.activations.serialize(activation_function(activation))


def activation_function(activation):
    """Returns an activation by its name, or as it is; of a gated one, its function f.

    An unknown name is a `ValueError`.
    """
    if isinstance(activation, str):
        if activation not in activations():
            raise ValueError(
                f"Expected `activation` to be a function or one of {activations()}. "
                f"Received: activation={activation!r}."
            )
        activation = GATED.get(activation, activation)
    return keras.activations.get(activation)
