"""What an embedding may go through before positions join it, by name.

A new one is a module with a subclass of `EmbeddingNorm` and a line here, which makes it
a value of the models' setting `embedding_norm`. `reprt.models.parts` names the settings
that are its arguments.
"""

from collections.abc import Mapping

from reprt.layers.embedding_norms.base import EmbeddingNorm
from reprt.layers.embedding_norms.rms_norm import RMSNorm
from reprt.layers.embedding_norms.token_norm import TokenNorm

EMBEDDING_NORMS: Mapping[str, type[EmbeddingNorm] | None] = {
    "none": None,
    "token_norm": TokenNorm,
    "rms": RMSNorm,
}
