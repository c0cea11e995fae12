"""The paper's layers, for use in any Keras 3 model.

| paper | here |
|---|---|
| TN, section 2.1, eq. 4-7 | `TokenNorm` |
| [X̄_e P], section 2.2, eq. 10-11 | `ConcatPositional` |
| X_e + P, appendix A, eq. 18 and 28 | `AddPositional` |
| P, section 2, eq. 3, and appendix A.1, eq. 17 | `sinusoidal_table` |
| PMHA, section 2.3, eq. 13-14 | `PMHA` |
| masked PMHA, appendix A.2, eq. 29-30 | `PMMHA` |
| cross PMHA, appendix A.2, eq. 31-32 | `PMHCA` |
| FFN, appendix A.1, eq. 21 | `FeedForward` |
| encoder, figure 2 and appendix A.1, eq. 26-27 | `EncoderBlock`, `Encoder` |
| decoder, figure 2 and appendix A.2, eq. 33-34 | `DecoderBlock`, `Decoder` |

Equations are numbered as in arXiv 2410.04731. Its equations of masked attention, cross
attention and blocks are the baseline's; figure 2 shows where RePE's differ.
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
