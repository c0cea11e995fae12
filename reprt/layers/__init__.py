"""The paper's layers, for use in any Keras 3 model.

| paper | here |
|---|---|
| TN, section 2.1, eq. 4-7 | `TokenNorm` |
| [X̄_e P], section 2.2, eq. 10-11 | `ConcatPositional` |
| X_e + P, appendix A, eq. 28 and 38 | `AddPositional` |
| P, section 2, eq. 3, and appendix A.1, eq. 27 | `sinusoidal_table` |
| PMHA, section 2.3, eq. 14-15 | `PMHA` |
| PMMHA, section 2.3, eq. 16-17 | `PMMHA` |
| PMHCA, section 2.3, eq. 18-19 | `PMHCA` |
| FFN, appendix A.1, eq. 31 | `FeedForward` |
| encoder, section 2.4, eq. 20-21 | `EncoderBlock`, `Encoder` |
| decoder, section 2.4, eq. 22-23 | `DecoderBlock`, `Decoder` |

Equations are numbered as in the paper's longer version; `docs/faithful.md` has the
numbers of arXiv's.
"""

from reprt.layers.attention import PMHA, PMHCA, PMMHA
from reprt.layers.decoder import Decoder, DecoderBlock
from reprt.layers.embedding import TokenAndPositionEmbedding
from reprt.layers.embedding_norms import RMSNorm, TokenNorm
from reprt.layers.encoder import Encoder, EncoderBlock
from reprt.layers.feed_forward import FeedForward
from reprt.layers.masks import causal_mask, padding_mask
from reprt.layers.positions import (
    AddPositional,
    AlibiPositional,
    ConcatPositional,
    Positional,
    RelativePositional,
    RotaryPositional,
    UntiedPositional,
)
from reprt.layers.positions.sinusoids import sinusoidal_table

__all__ = [
    "AddPositional",
    "AlibiPositional",
    "ConcatPositional",
    "Decoder",
    "DecoderBlock",
    "Encoder",
    "EncoderBlock",
    "FeedForward",
    "PMHA",
    "PMHCA",
    "PMMHA",
    "Positional",
    "RMSNorm",
    "RelativePositional",
    "RotaryPositional",
    "TokenAndPositionEmbedding",
    "TokenNorm",
    "UntiedPositional",
    "causal_mask",
    "padding_mask",
    "sinusoidal_table",
]
