"""The paper's two models, and every model between them.

>>> import reprt
>>> reprt.models.build("repe", 7765, 7010).count_params()
2809634
>>> reprt.models.build("baseline", 7765, 7010).count_params()
10184162
"""

from reprt.models.transformer import Memory, Transformer, build
from reprt.presets import PRESETS
from reprt.settings import TransformerConfig

__all__ = ["PRESETS", "Memory", "Transformer", "TransformerConfig", "build"]
