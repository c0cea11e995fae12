"""Does a model's output at a target position depend on later target tokens?"""

import dataclasses
import math
import warnings
from collections.abc import Mapping

import keras
import numpy as np
from keras import ops

from reprt.constants import RESERVED

METHODS = {
    "perturbation": "one later token replaced",
    "truncation": "the later tokens cut off",
}
# What counts, as a part of the largest |logit|.
CHANGE = 1e-5
# For truncation, by the coarsest precision that the model computes in.
CUT = {"tensorfloat32": 1e-2, "float16": 1e-2, "bfloat16": 8e-2}
CUT_FLOAT32 = 1e-4
# This many times the median of all |logits| is a mask's constant.
MASK = 1e3
RESERVED_IDS = len(RESERVED)  # other vocabularies have as many
TOKENS = 12  # of the target
REPLACEMENTS = 3
SHOWN = 3


@dataclasses.dataclass(frozen=True, eq=False)
class Audit:
    """What `audit` found. Printed, it is a report in plain words.

    Indices count from 0, in the report from 1. A model looks ahead if for any
    `t < u` an entry `[t, u]`, or any `truncation[t]`, is above its tolerance.

    Attributes:
        name: the model's name.
        largest_logit: the largest |logit|, the scale of all changes. Logits beyond a
            thousand times their median are a mask's constants, and are clipped.
        perturbation: `[t, u]` is the largest change of the logits at position t when
            only token u is replaced.
        truncation: `[t]` is the largest change of the logits at position t when the
            target ends there, as it does in search; None if not available.
        tolerance: for each method that was available, what counts as no dependence.
        unavailable: for each other method, the reason.
    """

    name: str
    largest_logit: float
    perturbation: np.ndarray
    truncation: np.ndarray | None
    tolerance: Mapping[str, float]
    unavailable: Mapping[str, str]

    @property
    def looks_ahead(self) -> bool:
        """Whether any method found a dependence on a later token."""
        return any(self.first_offending.values())

    @property
    def first_offending(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """For each method the first few `(t, u)`, ordered by t, then u.

        For truncation, u is t + 1: the first of the tokens that are cut off.
        """
        return {
            method: self._offending(method)[:SHOWN] for method in self.tolerance
        }

    def _later(self, method) -> np.ndarray:
        """The method's findings as a matrix, with zeros where u <= t."""
        found = getattr(self, method)
        # Of the tokens cut off, the first stands for all.
        return (
            np.diag(found[:-1], 1)
            if method == "truncation"
            else np.triu(found, 1)
        )

    def _offending(self, method) -> tuple[tuple[int, int], ...]:
        found = np.argwhere(self._later(method) > self.tolerance[method])
        return tuple((t, u) for t, u in found.tolist())

    def __str__(self):
        """The verdict, and what each method found."""
        verdict = (
            "looks ahead: outputs depend on target tokens after their own position.\n"
            "Its teacher-forced loss is not what search will see."
            if self.looks_ahead
            else "does not look ahead: no output was found to depend on a target token "
            "after its own position.\nIts teacher-forced loss is what search will see."
        )
        findings = [
            f"- {method} ({meaning}): {self._finding(method)}."
            for method, meaning in METHODS.items()
        ]
        counted = (
            "Positions and tokens are counted from 1. The largest logit is "
            f"{self.largest_logit:.2g}."
        )
        return "\n".join([f"{self.name} {verdict}", *findings, counted])

    def _finding(self, method) -> str:
        if method in self.unavailable:
            return f"not available: {self.unavailable[method]}"
        sizes, offending = self._later(method), self._offending(method)
        if not offending:
            tolerance = self.tolerance[method]
            return f"at most {sizes.max():.2g}, where {tolerance:.2g} may be rounding"
        later = " or later" if method == "truncation" else ""
        shown = ", ".join(
            f"position {t + 1} depends on token {u + 1}{later} (by {sizes[t, u]:.2g})"
            for t, u in offending[:SHOWN]
        )
        more = len(offending) - SHOWN
        return f"{shown} and {more} more" if more > 0 else shown


def audit(
    model, source_vocab_size=None, target_vocab_size=None, length=None, seed=0
) -> Audit:
    """Finds out whether a model sees target tokens that search has yet to produce.

        depends(t, u) = logits[t] change with target token u, for u > t

    It uses two methods on one pair of random sentences, without padding and outside
    training. It replaces each token by others. It cuts the target after each position,
    as search does.

    Rounding does not count: changes up to 1e-5 of the largest |logit|. Cut targets are
    computed in another order, so that truncation allows for changes up to 1e-4 of the
    largest |logit|, 1e-2 in float16 or on a GPU and 8e-2 in bfloat16.

    Audit a trained model: behind weights that are zero, as some are at first, no
    dependence is seen. A model in which sentences of a batch depend on each other is
    said to look ahead.

    Args:
        model: a Keras model called on `(source_ids, target_ids)`, integers `(batch,
            sources)` and `(batch, targets)`, that returns logits `(batch, targets,
            vocabulary)`. One that is built for fixed lengths is given those, and
            one with a single `keras.Input`, a language model, the targets only.
        source_vocab_size: number of source ids, padding (0) included. Defaults to the
            model's attribute of that name.
        target_vocab_size: the same for the target. Defaults to the model's attribute
            or else the number of logits.
        length: number of target tokens, at least 3. Defaults to what the model is
            built for, or else 12.
        seed: of the random sentences.

    Raises:
        ValueError: if the model cannot be called so; if its logits are not finite,
            differ from call to call or depend on no target token; if a vocabulary's
            size is unknown, or too small for `length` different tokens.

    Example: the published model looks ahead, its variant with prefix statistics does
    not.

    >>> import reprt
    >>> from reprt.analysis import audit
    >>> audit(reprt.models.build("repe", 30, 30)).looks_ahead
    True
    >>> prefix = reprt.models.build("repe", 30, 30, decoder_statistics="prefix")
    >>> audit(prefix).looks_ahead
    False
    """
    if not isinstance(model, keras.Layer):
        raise ValueError(
            "Expected a Keras model called on (source_ids, target_ids). "
            f"Received: {model!r}, of type {type(model).__name__}."
        )
    sources, targets = _lengths(model, length)
    source_vocab_size = source_vocab_size or getattr(
        model, "source_vocab_size", None
    )
    target_vocab_size = target_vocab_size or getattr(
        model, "target_vocab_size", None
    )
    if _one_input(model):
        source_vocab_size = (
            source_vocab_size or RESERVED_IDS
        )  # nobody reads them
    if not source_vocab_size:
        raise ValueError(
            "Expected `source_vocab_size`, as the model has no attribute of that name. "
            "Give it as an argument: the number of source ids, padding included."
        )
    if not target_vocab_size:
        # Any vocabulary has an id 1.
        ones = np.ones(sources, "int32"), np.ones(targets, "int32")
        target_vocab_size = _logits(model, *ones).shape[-1]
    if targets < 3 or target_vocab_size < 2 + targets:
        raise ValueError(
            "Expected a target of at least 3 tokens, and a vocabulary of padding, as "
            "many different tokens and one to put in their place. Received: "
            f"length={targets}, target_vocab_size={target_vocab_size}."
        )

    generator = np.random.default_rng(seed)
    ids = generator.permutation(_real_ids(target_vocab_size, 1 + targets))
    target, others = ids[:targets], ids[targets:][:REPLACEMENTS]
    source = generator.choice(
        _real_ids(source_vocab_size, 1 + targets), sources
    )
    # A row of the batch for each token that is replaced.
    pairs = [np.tile(ids, (targets, 1)) for ids in (source, target)]

    logits, again = _logits(model, *pairs), _logits(model, *pairs)
    sizes = np.abs(logits[0])
    # A median of zero has no multiples.
    bound = MASK * np.median(sizes) or np.inf
    largest = float(sizes[sizes <= bound].max(initial=0))
    change = _change(logits, again, bound).max()
    if not change <= CHANGE * largest < np.inf:  # so that NaN fails, too
        raise ValueError(
            "Expected the same finite logits whenever the model is called on the same "
            f"ids. Received some that differ by {change:.2g}: is something random, not "
            "a number, or kept from call to call?"
        )
    perturbation = _perturbation(model, pairs, others, logits, bound)
    if perturbation.max() <= CHANGE * largest:
        raise ValueError(
            "Expected logits that depend on the target. Received some that change by "
            f"{perturbation.max():.2g} at most, whichever token is replaced, and are "
            f"themselves up to {largest:.2g}: are they multiplied by weights of zero?"
        )
    truncation, unavailable = None, {}
    tolerance = {"perturbation": CHANGE * largest}
    try:
        truncation = _truncation(model, source, target, bound)
        tolerance["truncation"] = _cut_rounding(model) * largest
    except _Unavailable as reason:
        unavailable["truncation"] = str(reason)
    return Audit(
        model.name, largest, perturbation, truncation, tolerance, unavailable
    )


class _Unavailable(Exception):
    """Why a method cannot be used on a model."""


def _lengths(model, length):
    """Sources and targets: `length`'s, or else those that the model is built for."""
    # Different from each other, so that inputs in the wrong order are noticed.
    if length is not None:
        return length + 2, length
    sources = min(TOKENS + 2, getattr(model, "longest_source", math.inf))
    longest = getattr(model, "longest_target", math.inf)
    lengths = sources, min(TOKENS, sources - 1, longest)
    fixed = [ids.shape[1] for ids in _inputs(model)]
    if len(fixed) > 2:
        return lengths
    of_both = [None, None, *fixed][-2:]  # the target's is the last
    return [own or usual for own, usual in zip(of_both, lengths)]


def _real_ids(vocab_size, enough):
    """Ids that stand for words; if those are too few, all but padding."""
    ids = np.arange(1, vocab_size, dtype="int32")
    words = ids[RESERVED_IDS - 1 :]
    return words if len(words) >= enough else ids


def _in_short(error):
    """An error's type and first line: those of models can go on for pages."""
    first, _, _ = str(error).strip().partition("\n")
    return f"{type(error).__name__}: {first}"


def _inputs(model):
    """Those of a functional model."""
    return getattr(model, "inputs", None) or ()


def _one_input(model):
    return len(_inputs(model)) == 1


def _call(model, sources, targets):
    """Calls the model, and explains a failure."""
    try:
        with warnings.catch_warnings():
            # Keras warns of attention over one token, the shortest truncation.
            warnings.filterwarnings(
                "ignore", "(?s).*You are using a softmax over axis"
            )
            given = tuple(map(ops.convert_to_tensor, (sources, targets)))
            logits = model(
                given[-1] if _one_input(model) else given, training=False
            )
    except Exception as error:  # whatever a model of the user's may raise
        raise ValueError(
            "Expected a model called on (source_ids, target_ids). Received "
            f"{model.name!r}, which for shapes {sources.shape} and {targets.shape} "
            f"raises {_in_short(error)}"
        ) from error
    shape = tuple(getattr(logits, "shape", ()))
    if len(shape) != 3 or shape[:2] != targets.shape:
        batch, length = targets.shape
        raise ValueError(
            f"Expected logits of shape ({batch}, {length}, vocabulary) for sources "
            f"{sources.shape} and targets {targets.shape}. Received: "
            f"{f'shape={shape}' if shape else type(logits).__name__}."
        )
    return logits


def _logits(model, *ids):
    """The logits of a batch; of one pair, without the axis of the batch."""
    logits = _call(model, *map(np.atleast_2d, ids))
    logits = ops.convert_to_numpy(ops.cast(logits, "float32"))
    return logits if ids[0].ndim > 1 else logits[0]


def _change(logits, others, bound):
    """The largest over the vocabulary; a change to NaN is the largest."""
    logits, others = (np.clip(each, -bound, bound) for each in (logits, others))
    with np.errstate(invalid="ignore"):  # infinities less infinities
        return np.nan_to_num(np.abs(logits - others), nan=np.inf).max(-1)


def _perturbation(model, pairs, others, logits, bound):
    # Each row is held against the same row of a batch of the same shape, so that only
    # the tokens differ and not the order of any sum.
    sources, targets = pairs
    found = np.zeros(targets.shape, "float32")
    for other in others:
        replaced = targets.copy()
        np.fill_diagonal(replaced, other)
        change = _change(_logits(model, sources, replaced), logits, bound)
        np.maximum(found, change.T, out=found)
    return found


def _truncation(model, source, target, bound):
    whole, lengths = _logits(model, source, target), range(1, 1 + len(target))
    try:
        cut = [
            _logits(model, source, target[:length])[-1] for length in lengths
        ]
    except ValueError as error:
        raised = _in_short(error.__cause__ or error)
        raise _Unavailable(
            f"the model takes no shorter target ({raised})"
        ) from error
    return _change(np.stack(cut), whole, bound)


def _layers_of(model):
    yield model
    for layer in getattr(model, "layers", ()):
        yield from _layers_of(layer)


def _cut_rounding(model):
    kinds = {layer.compute_dtype for layer in _layers_of(model)}
    # PyTorch does not name its devices.
    names = keras.backend.backend() in ("tensorflow", "jax")
    devices = keras.distribution.list_devices() if names else ["unknown"]
    if not all(name.startswith("cpu") for name in devices):
        kinds.add("tensorfloat32")  # of a GPU's products of float32, by default
    return max(CUT.get(kind, CUT_FLOAT32) for kind in kinds)
