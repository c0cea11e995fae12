"""Does a model's output at a target position depend on later target tokens?

The methods know arrays only. A few lines for each framework make a function from ids
to logits of a model. Nothing here imports a framework: a model that is given has
brought its own.
"""

from reprt.analysis.lookahead.api import assert_causal, audit
from reprt.analysis.lookahead.labels import LabelCheck, check_labels
from reprt.analysis.lookahead.methods import METHODS
from reprt.analysis.lookahead.report import Audit

__all__ = [
    "METHODS",
    "Audit",
    "LabelCheck",
    "assert_causal",
    "audit",
    "check_labels",
]
