"""The position-wise feed-forward network."""

import keras

from reprt.layers.sharing import ConfiguredLayer


@keras.saving.register_keras_serializable(package="reprt")
class FeedForward(ConfiguredLayer):
    """FFN(x) = dropout(f(x W_1 + b_1) W_2 + b_2), at each position by itself.

    f is max(0, ·) in the paper. No masking is needed: no position touches another.

    Args:
        hidden_dim: width s of the hidden layer. The output is as wide as the input.
        dropout: rate of dropout after the second projection. Defaults to 0.
        activation: f, by Keras' name. Defaults to `"relu"`.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        x: tensor `(..., width)`.
        training: whether dropout is active.

    Returns:
        Tensor of the shape of `x`.

    >>> import keras, reprt
    >>> reprt.layers.FeedForward(hidden_dim=32)(keras.ops.ones((2, 5, 8))).shape[-1]
    8

    Reference: appendix A.1, eq. 21 of the paper; dropout as in TensorFlow's tutorial.
    """

    def __init__(self, hidden_dim, dropout=0.0, activation="relu", **kwargs):
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        self.dropout = dropout
        self.activation = activation
        self.hidden = keras.layers.Dense(
            hidden_dim, activation=activation, dtype=self.dtype_policy, name="hidden"
        )
        self.dropout_layer = self._dropout(dropout)

    def build(self, input_shape):
        self.hidden.build(input_shape)
        self.output_dense = keras.layers.Dense(
            input_shape[-1], dtype=self.dtype_policy, name="output"
        )
        self.output_dense.build((*input_shape[:-1], self.hidden_dim))

    def call(self, x, training=None):
        x = self.output_dense(self.hidden(x))
        return self.dropout_layer(x, training=training)
