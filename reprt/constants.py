"""Special ids, and checks of arguments."""

import difflib
import re
from collections.abc import Iterable
from typing import Any

PAD, UNKNOWN, START, END = "[PAD]", "[UNK]", "[START]", "[END]"
RESERVED = (PAD, UNKNOWN, START, END)
PAD_ID, UNKNOWN_ID, START_ID, END_ID = range(len(RESERVED))

# Names of texts, which are no names of files.
TEXTS = ("auto", "ted", "embedded", "wmt14")
# What other libraries call some of the settings.
OTHER_NAMES = {
    "num_layers": "num_blocks",
    "n_layers": "num_blocks",
    "depth": "num_blocks",
    # Recurrent models have layers and no blocks.
    "num_blocks": "num_layers",
    "d_model": "embedding_dim",
    "hidden_size": "embedding_dim",
    "d_ff": "feed_forward_dim",
    "dff": "feed_forward_dim",
    "intermediate_dim": "feed_forward_dim",
    "nhead": "num_heads",
}


def check_choice(choices: Iterable[str], **values: Any):
    """Raises a `ValueError` unless all values, by name, are among the choices."""
    names = tuple(choices)
    for name, value in values.items():
        if value not in names:
            close = isinstance(value, str) and nearest(value, names, 1.0)
            advice = f" The nearest is {close!r}." if close else ""
            raise ValueError(
                f"Expected `{name}` to be one of {names}. Received: {name}={value!r}."
                f"{advice}"
            )


def check_sizes(**sizes: int | None):
    """Raises a `ValueError` unless all sizes, by name, are 1 or more."""
    for name, size in sizes.items():
        if size is None or size < 1:
            raise ValueError(
                f"Expected `{name}` to be 1 or more. Received: {name}={size!r}."
            )


def nearest(
    name: str,
    names: Iterable[Any],
    min_likeness: float = 0.0,
) -> str | None:
    """Returns the one of some names that is most like another, or None.

    Names are alike in their words and in their letters, whatever the case: the number
    is the share of common words plus difflib's ratio, at most 2.

    Args:
        name: what was given.
        names: what could have been given.
        min_likeness: the smallest number that counts as alike.

    >>> nearest("num_layers", ["num_heads", "num_blocks"])
    'num_blocks'
    >>> nearest("RePE", ["baseline", "repe"])
    'repe'
    """
    candidates = list(map(str, names))
    name = str(name).lower()
    if OTHER_NAMES.get(name) in candidates:
        return OTHER_NAMES[name]

    def likeness(candidate):
        candidate = candidate.lower()
        words = set(re.split(r"[\W_]+", name))
        other_words = set(re.split(r"[\W_]+", candidate))
        common = len(words & other_words) / len(words | other_words)
        letters = difflib.SequenceMatcher(None, name, candidate)
        return common + letters.ratio()

    best = max(candidates, key=likeness, default=None)
    return best if best is not None and likeness(best) >= min_likeness else None
