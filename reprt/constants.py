"""Special ids, and the names that settings choose among."""

import difflib
import re
from collections.abc import Iterable
from typing import Any, Literal, get_args

PAD, UNKNOWN, START, END = "[PAD]", "[UNK]", "[START]", "[END]"
RESERVED = (PAD, UNKNOWN, START, END)
PAD_ID, UNKNOWN_ID, START_ID, END_ID = range(len(RESERVED))

TEXTS = ("auto", "ted", "embedded", "wmt14")  # by which no file is meant
Scale = Literal["sqrt", "inverse_sqrt", "none"]
Statistics = Literal["sequence", "prefix"]
Table = Literal["tutorial", "paper", "learned"]  # of positions
EmbeddingNorm = Literal["none", "token_norm", "rms"]
Position = Literal["concat", "add", "none", "rotary", "relative", "alibi", "untied"]
DropoutPlace = Literal[
    "embeddings",
    "attention_weights",
    "feed_forward_output",
    "attention_output",
    "values",
]
# Positions that make states wider, that have a width, that do not act within attention.
WIDENING = ("concat",)
WITH_WIDTH = ("concat", "untied")
ON_ENTRY = ("concat", "add", "none")
# What other libraries call some of the settings.
OTHER_NAMES = {
    "num_layers": "num_blocks",
    "n_layers": "num_blocks",
    "depth": "num_blocks",
    "num_blocks": "num_layers",  # of a recurrent model
    "d_model": "embedding_dim",
    "hidden_size": "embedding_dim",
    "d_ff": "feed_forward_dim",
    "dff": "feed_forward_dim",
    "intermediate_dim": "feed_forward_dim",
    "nhead": "num_heads",
}
TUTORIAL_DROPOUT = get_args(DropoutPlace)[:3]


def check_choice(choices: Any, **values: Any):
    """Raises a `ValueError` unless all values, by name, are of a `Literal` or names."""
    known = get_args(choices) or tuple(choices)
    for name, value in values.items():
        if value not in known:
            close = isinstance(value, str) and nearest(value, known, least=1.0)
            advice = f" The nearest is {close!r}." if close else ""
            raise ValueError(
                f"Expected `{name}` to be one of {known}. Received: {name}={value!r}."
                f"{advice}"
            )


def nearest(name: str, known: Iterable[Any], least: float = 0.0) -> str | None:
    """Returns the known name that is most like another, or None.

    Names are alike in their words and in their letters, whatever the case: the number
    is the share of common words plus difflib's ratio, at most 2.

    Args:
        name: what was given.
        known: what could have been given.
        least: the smallest number that counts as alike.

    >>> nearest("num_layers", ["num_heads", "num_blocks"])
    'num_blocks'
    >>> nearest("RePE", ["baseline", "repe"])
    'repe'
    """
    candidates = [str(each) for each in known]
    name = str(name).lower()
    if OTHER_NAMES.get(name) in candidates:
        return OTHER_NAMES[name]

    def likeness(candidate):
        other = candidate.lower()
        words, others = (set(re.split(r"[\W_]+", each)) for each in (name, other))
        common = len(words & others) / len(words | others)
        return common + difflib.SequenceMatcher(None, name, other).ratio()

    best = max(candidates, key=likeness, default=None)
    return best if best is not None and likeness(best) >= least else None
