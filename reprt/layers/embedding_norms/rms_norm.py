"""RMSNorm of embeddings: each token by itself, so that no position sees another."""

import keras
from keras import ops

from reprt.layers.embedding_norms.base import EmbeddingNorm


@keras.saving.register_keras_serializable(package="reprt")
class RMSNorm(EmbeddingNorm):
    """Divides each embedding by its own root mean square; each channel has a gain.

    With an embedding x of m channels and the learnt gains g, which start at 1:

        RMS(x)[j] = g[j] · x[j] / sqrt((x[1]² + … + x[m]²) / m + epsilon)

    A token's result depends on that token only, so the norm is causal. With gains of 1
    and no epsilon it gives FixNorm's embeddings, which are sqrt(m) times rows of
    length 1. FixNorm has no gain, and its rows make the output's matrix too; this
    norm leaves the output layer as it is, even if that takes the same table.

    It is computed in float32 whatever the dtype policy.

    Masking: padding is normalised like any other token, and touches no other token. A
    Keras mask attached to the input stays attached.

    Args:
        epsilon: small positive number added to the mean square. Defaults to `1e-6`:
            embeddings start with a mean square near 1e-3, before their scale.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        x: tensor `(batch, tokens, features)`.
        mask: boolean tensor `(batch, tokens)`, which changes nothing here.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        ValueError: for an input whose rank is not 3.

    >>> import keras, reprt
    >>> y = reprt.layers.RMSNorm()(keras.ops.array([[[2.0, 2.0], [-30.0, 30.0]]]))
    >>> keras.ops.convert_to_numpy(y)[0].round(3).tolist()
    [[1.0, 1.0], [-1.0, 1.0]]

    Reference: Nguyen & Salazar 2019, "Transformers without tears" (arXiv 1910.05895),
    its part on ScaleNorm and FixNorm; Zhang & Sennrich 2019 (arXiv 1910.07467).
    """

    causal = True

    def __init__(self, epsilon=1e-6, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape):
        super().build(input_shape)
        self.gain = self.add_weight(
            shape=input_shape[-1:],
            initializer="ones",
            name="gain",
            autocast=False,
        )

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon}

    def call(self, x, mask=None):
        return ops.rms_normalization(x, self.gain, epsilon=self.epsilon)
