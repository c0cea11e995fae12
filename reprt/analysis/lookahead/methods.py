"""The methods. They know arrays and a function from ids to logits."""

import dataclasses
import re
from collections.abc import Callable, Mapping

import numpy as np

METHODS = {
    "perturbation": "one later token replaced",
    "truncation": "the later tokens cut off",
}
# What counts, as a part of the largest |logit|, where both calls have the same shapes
# and so add in the same order.
CHANGE = 1e-5
# A mixture of experts gives an expert now more tokens, now fewer, and then adds in
# another order after all. It does so as well when only other sentences change. A
# change of theirs up to this is rounding, by the coarsest precision that the model
# computes in.
ROUNDING = {"tensorfloat32": 2e-3, "float16": 5e-3, "bfloat16": 3e-2}
# Replacing a token may reorder as many experts' sums as replacing other sentences
# does. So perturbation allows for this many times their largest change.
ROUNDING_MARGIN = 3
# Cut targets have other shapes.
CUT = {"tensorfloat32": 1e-2, "float16": 1e-2, "bfloat16": 8e-2}
CUT_FLOAT32 = 1e-4
# Logits below minus this many times the median of all |logits| are a mask's constants.
MASK = 1e3
ROUNDS = 3
# The number of other seeds that are tried to find out whether a model is random. One
# is not enough, for a random choice among few options may repeat.
SEEDS = 8

# From the ids of sources (or None) and targets, and a seed of whatever is random in the
# model, to logits `(batch, targets, vocabulary)`.
Logits = Callable[[np.ndarray | None, np.ndarray, int], np.ndarray]


class Unavailable(ValueError):
    """Why a model has no logits for some ids."""


@dataclasses.dataclass(frozen=True)
class Sentences:
    """Random sentences without padding, one for each token of the target.

    Attributes:
        source_ids: the ids that a source may have; None without a source.
        target_ids: the same for the target: more of them than tokens.
        lengths: number of tokens of a source and of a target.
        generator: draws them.
    """

    source_ids: np.ndarray | None
    target_ids: np.ndarray
    lengths: tuple[int, int]
    generator: np.random.Generator

    def draw(self):
        """Sources or None, targets, and for each target a token that it lacks."""
        sources, length = self.lengths
        targets = np.zeros((length, length + 1), "int32")
        for row in targets:
            row[:] = self.generator.choice(
                self.target_ids, length + 1, replace=False
            )
        source = None
        if self.source_ids is not None:
            shape = length, sources
            source = self.generator.choice(self.source_ids, shape)
        return source, targets[:, :-1], targets[:, -1]


@dataclasses.dataclass(frozen=True, eq=False)
class Findings:
    """What the methods found in one mode; see `Audit` for the attributes."""

    largest_logit: float
    perturbation: np.ndarray
    truncation: np.ndarray | None
    neighbours: np.ndarray
    tolerance: Mapping[str, float]
    unavailable: Mapping[str, str]


def examine(
    logits: Logits,
    sentences: Sentences,
    precisions: set[str],
    prompt: int,
) -> Findings:
    """Uses all methods on random sentences.

    Raises:
        ValueError: if the logits are not finite, differ from call to call or depend on
            no target token.
    """
    source, targets, _ = sentences.draw()
    before, again = logits(source, targets, 0), logits(source, targets, 0)
    scale = Scale.of(before)
    difference = scale.change(before, again).max()
    # Written so that NaN fails, too.
    if not difference <= CHANGE * scale.largest < np.inf:
        raise ValueError(
            "Expected the same finite logits whenever the model is called on the same "
            f"ids. Received some that differ by {difference:.2g}: is something random, "
            "not a number, or kept from call to call?"
        )

    least = CHANGE * scale.largest
    rounding = _coarsest(ROUNDING, precisions, CHANGE) * scale.largest
    neighbours = _neighbours(logits, sentences, scale, source, targets, before)
    independent = neighbours.max() <= rounding
    tolerance = {"perturbation": least, "neighbours": rounding}
    if independent:
        noise = ROUNDING_MARGIN * float(neighbours.max())
        tolerance["perturbation"] = max(least, noise)
    perturb = _perturb_all if independent else _perturb_one
    perturbation = perturb(logits, sentences, scale)
    if perturbation.max() <= least:
        raise ValueError(
            "Expected logits that depend on the target. Received some that change by "
            f"{perturbation.max():.2g} at most, whichever token is replaced, and are "
            f"themselves up to {scale.largest:.2g}: are they multiplied by weights of "
            "zero?"
        )

    truncation, unavailable = None, {}
    try:
        source = None if source is None else source[:1]
        truncation = _truncation(logits, scale, source, targets[:1], prompt)
        cut = _coarsest(CUT, precisions, CUT_FLOAT32)
        tolerance["truncation"] = cut * scale.largest
    except Unavailable as reason:
        unavailable["truncation"] = str(reason)
    return Findings(
        scale.largest,
        perturbation,
        truncation,
        neighbours,
        tolerance,
        unavailable,
    )


@dataclasses.dataclass(frozen=True)
class Scale:
    """How large logits are, without a mask's constants, and where those begin."""

    largest: float
    least: float

    @classmethod
    def of(cls, logits):
        sizes = np.abs(logits)
        # A median of zero has no multiples.
        least = -MASK * np.median(sizes) or -np.inf
        return cls(float(sizes[logits >= least].max(initial=0)), float(least))

    def change(self, logits, other_logits):
        """The largest over the vocabulary; a change to NaN is the largest."""
        logits = np.maximum(logits, self.least)
        other_logits = np.maximum(other_logits, self.least)
        # Infinities less infinities.
        with np.errstate(invalid="ignore"):
            change = np.abs(logits - other_logits)
        return np.nan_to_num(change, nan=np.inf).max(-1)


def _coarsest(tolerances, precisions, default):
    """The largest tolerance of the precisions; `default` is that of all others."""
    largest = default
    for name in precisions:
        largest = max(largest, tolerances.get(name, default))
    return largest


def _neighbours(logits, sentences, scale, source, targets, before):
    """How far a sentence's logits move when every other sentence is replaced."""
    other_source, other_targets, _ = sentences.draw()
    largest = np.zeros(targets.shape[1], "float32")
    for first in (0, 1):
        replaced = np.arange(len(targets)) % 2 == first
        rows = replaced[:, np.newaxis]
        mixed = np.where(rows, other_targets, targets)
        mixed_source = source
        if source is not None:
            mixed_source = np.where(rows, other_source, source)
        change = scale.change(logits(mixed_source, mixed, 0), before)
        largest = np.maximum(largest, change[~replaced].max(0))
    return largest


def _perturb_all(logits, sentences, scale):
    """Replaces token u in the batch's sentence u: one call finds a whole matrix.

    Each sentence is held against itself in a batch of the same shape, so that only the
    token differs and not the order of any sum.
    """
    largest = 0
    for _ in range(ROUNDS):
        source, targets, replacements = sentences.draw()
        replaced = targets.copy()
        np.fill_diagonal(replaced, replacements)
        change = scale.change(
            logits(source, replaced, 0), logits(source, targets, 0)
        )
        largest = np.maximum(largest, change.T)
    return largest


def _perturb_one(logits, sentences, scale):
    """Replaces a token of one sentence only, as neighbours may not change."""
    length = sentences.lengths[-1]
    changes = np.zeros((length, length), "float32")
    for _ in range(ROUNDS):
        source, targets, replacements = sentences.draw()
        row = sentences.generator.integers(length)
        before = logits(source, targets, 0)
        for token in range(length):
            replaced = targets.copy()
            replaced[row, token] = replacements[row]
            change = scale.change(logits(source, replaced, 0), before)[row]
            changes[:, token] = np.maximum(changes[:, token], change)
    return changes


def _truncation(logits, scale, source, target, prompt):
    """Cuts one target after each position; a prompt stays whole.

    The change is NaN where the model takes no target as short.
    """
    length = target.shape[1]
    whole = logits(source, target, 0)
    for seed in range(1, 1 + SEEDS):
        if scale.change(whole, logits(source, target, seed)).max() > 0:
            raise Unavailable(
                "the model is random, and in another way for another length"
            )
    changes = np.zeros(length, "float32")
    for t in reversed(range(max(prompt - 1, 0), length - 1)):
        try:
            cut = logits(source, target[:, : t + 1], 0)
        except ValueError as error:
            # Whoever takes all tokens but one may take no single one, as a norm over
            # a batch does.
            if t < length - 2:
                changes[: t + 1] = np.nan
                break
            reason = error_summary(error.__cause__ or error)
            raise Unavailable(
                f"the model takes no shorter target ({reason})"
            ) from error
        changes[t] = scale.change(cut[0, -1], whole[0, t])
    return changes


def error_summary(error):
    """An error's type and first line: those of models can go on for pages."""
    # Keras prints the layer first, and then the reason in bold.
    message = re.sub(r"\x1b\[\d*m", "", str(error)).strip()
    first, _, rest = message.partition("\n")
    if rest and first.startswith("Exception encountered when calling"):
        reason, _, _ = rest.strip().partition("\n")
        first = f"{first} {reason}"
    return f"{type(error).__name__}: {first}"
