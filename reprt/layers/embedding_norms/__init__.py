"""What an embedding may go through before positions join it, by name.

A new one is a module with a subclass of `EmbeddingNorm`, a line here, and its name
in `reprt.constants.EmbeddingNorm`.
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
