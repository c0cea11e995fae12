"""The models, one family a module behind one protocol.

>>> import reprt
>>> reprt.models.build("repe", 7765, 7010).count_params()
2809634
>>> reprt.models.build("baseline", 7765, 7010).count_params()
10184162
"""

from reprt.models.base import TranslationModel
from reprt.models.decoder_only import DecoderOnly
from reprt.models.presets import PRESETS
from reprt.models.recurrent import Recurrent
from reprt.models.registry import FAMILIES, build
from reprt.models.settings import (
    DecoderOnlyConfig,
    RecurrentConfig,
    TransformerConfig,
)
from reprt.models.transformer import Transformer

__all__ = [
    "DecoderOnly",
    "DecoderOnlyConfig",
    "FAMILIES",
    "PRESETS",
    "Recurrent",
    "RecurrentConfig",
    "Transformer",
    "TransformerConfig",
    "TranslationModel",
    "build",
]
