"""The paper's two models, and every model between them.

>>> import reprt
>>> reprt.models.build("repe", 7765, 7010).count_params()
2809634
>>> reprt.models.build("baseline", 7765, 7010).count_params()
10184162
"""

from reprt.config import PRESETS, TransformerConfig
from reprt.models.transformer import Memory, Transformer, build

__all__ = ["PRESETS", "Memory", "Transformer", "TransformerConfig", "build"]
