"""Are labels the next tokens of their inputs?"""

import dataclasses

import numpy as np

SENTENCES = {
    0: (
        "The labels are not shifted: the label of position t is its own input token. "
        "Unless the loss shifts them itself, as those of Hugging Face do, the model "
        "learns to copy."
    ),
    1: (
        "The labels are shifted as they should be: the label of position t is input "
        "t + 1."
    ),
    -1: (
        "The labels are shifted the wrong way: the label of position t is input t - 1, "
        "which the model has seen."
    ),
    None: "The labels are not the inputs, shifted or not: {shares}.",
}


@dataclasses.dataclass(frozen=True)
class LabelCheck:
    """What `check_labels` found. Printed, it is one sentence or two.

    Attributes:
        shares: for each offset d, the share of labels t that are the input token t + d.
        offset: the offset at which nearly all are, or None.
    """

    shares: dict[int, float]
    offset: int | None

    @property
    def shifted(self) -> bool:
        """Whether each label is the token after its position's own."""
        return self.offset == 1

    def __str__(self):
        shares = []
        for offset, share in self.shares.items():
            shares.append(f"{share:.0%} are input t{offset:+d}")
        return SENTENCES[self.offset].format(shares=", ".join(shares))


def check_labels(inputs, labels, ignored=(0, -100)) -> LabelCheck:
    """Finds out whether a position's label is among the tokens that it is given.

        share(d) = part of the labels t that are input token t + d, for d = 1, 0, -1

    A share is that of the labels that count and have such an input, which counts, too.

    The labels of a language model, and of a decoder, are its inputs one step on: d = 1.
    Inputs that are not shifted against their labels, d = 0, are the commonest leak of
    all. An offset is taken for the rule if 95% of the labels follow it and at no other
    offset as many do.

    Args:
        inputs: ids that the decoder is given, integers `(batch, length)`.
        labels: ids that it learns to predict, of the same shape.
        ignored: ids that do not count: padding, and what losses leave out.

    Raises:
        ValueError: if the shapes differ, or no label counts.

    Example:

    >>> from reprt.analysis import check_labels
    >>> ids = [[5, 8, 6, 7, 9], [4, 6, 9, 5, 7]]
    >>> print(check_labels(ids, ids).offset)
    0
    >>> check_labels([row[:-1] for row in ids], [row[1:] for row in ids]).shifted
    True
    """
    inputs, labels = np.asarray(inputs), np.asarray(labels)
    if inputs.shape != labels.shape or inputs.ndim != 2:
        raise ValueError(
            "Expected the decoder's inputs and labels, ids of one shape, (batch, "
            f"length). Received: {inputs.shape} and {labels.shape}."
        )
    is_counted = ~np.isin(labels, ignored)
    if not is_counted.any():
        raise ValueError(
            f"Expected labels other than {ignored}. Received none."
        )
    shares = {}
    length = inputs.shape[1]
    for offset in (1, 0, -1):
        # The labels whose input lies within the row.
        first = max(-offset, 0)
        last = length - max(offset, 0)
        tokens = inputs[:, first + offset : last + offset]
        counted = is_counted[:, first:last] & ~np.isin(tokens, ignored)
        equal = (tokens == labels[:, first:last])[counted]
        shares[offset] = float(equal.mean()) if equal.size else 0.0
    best = max(shares, key=lambda offset: shares[offset])
    second_share = sorted(shares.values())[-2]
    is_clear = shares[best] >= 0.95 and second_share < shares[best]
    return LabelCheck(shares, best if is_clear else None)
