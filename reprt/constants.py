"""Special ids, and the names that settings choose among."""

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
TUTORIAL_DROPOUT = get_args(DropoutPlace)[:3]


def check_choice(choices: Any, **values: Any):
    """Raises a `ValueError` unless all values, by name, are of a `Literal` or names."""
    known = get_args(choices) or tuple(choices)
    for name, value in values.items():
        if value not in known:
            raise ValueError(
                f"Expected `{name}` to be one of {known}. Received: {name}={value!r}."
            )
