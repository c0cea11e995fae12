"""What an audit found, and how it says so."""

import dataclasses

import numpy as np

from reprt.analysis.lookahead.labels import LabelCheck
from reprt.analysis.lookahead.methods import METHODS, Findings

MAX_PAIRS = 3


@dataclasses.dataclass(frozen=True, eq=False)
class Audit(Findings):
    """What `audit` found. Printed, it is a report in plain words.

    Indices count from 0, in the report from 1. A model looks ahead if for any
    `t < u` an entry `[t, u]`, or any `truncation[t]`, is above its tolerance, outside
    training or in training if that was asked. Within a prompt nothing counts.

    Attributes:
        name: the model's name.
        largest_logit: the largest |logit|, the scale of all changes. Logits below minus
            a thousand times the median |logit| are a mask's constants, and are clipped.
        perturbation: `[t, u]` is the largest change of the logits at position t when
            only token u is replaced.
        truncation: `[t]` is the largest change of the logits at position t when the
            target ends there, as it does in search; NaN where the model takes no
            target as short, and None if not available.
        neighbours: `[t]` is the largest change of the logits at position t when only
            other sentences of the batch are replaced.
        tolerance: for each method that was available, and for `"neighbours"`, what
            counts as no dependence.
        unavailable: for each other method, the reason.
        prompt: how many tokens may see each other.
        training: the audit of the model in training; None if not asked.
        labels: the check of your own batch; None without one.
    """

    name: str = ""
    prompt: int = 0
    training: "Audit | None" = None
    labels: LabelCheck | None = None

    @property
    def looks_ahead(self) -> bool:
        """Whether any method found a dependence on a later token, in any mode."""
        return bool(self.leaking_modes)

    @property
    def leaking_modes(self) -> tuple[str, ...]:
        """Those of `"evaluation"` and `"training"` in which the model looks ahead."""
        names = []
        modes = {"evaluation": self, "training": self.training}
        for name, mode in modes.items():
            if mode is not None and any(mode.first_offending.values()):
                names.append(name)
        return tuple(names)

    @property
    def depends_on_neighbours(self) -> bool:
        """Whether a sentence's logits depend on the other sentences of its batch."""
        return bool(self.neighbours.max() > self.tolerance["neighbours"])

    @property
    def sees_label(self) -> bool | None:
        """Whether a position sees its own label; None if unknown."""
        if self.labels is None or self.labels.offset is None:
            return None
        modes = [self] if self.training is None else [self, self.training]
        for mode in modes:
            changes = mode.perturbation
            if self.labels.offset > 0:
                changes = mode._later("perturbation")
            changes = np.diag(changes, self.labels.offset)
            if changes.max() > mode.tolerance["perturbation"]:
                return True
        return False

    @property
    def first_offending(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """For each method the first few `(t, u)`, ordered by t, then u.

        For truncation, u is t + 1: the first of the tokens that are cut off. They are
        those outside training; `training.first_offending` has the others.
        """
        pairs = {}
        for method in METHODS:
            if method in self.tolerance:
                pairs[method] = self._leaking_pairs(method)[:MAX_PAIRS]
        return pairs

    def _later(self, method) -> np.ndarray:
        """The method's findings as a matrix, with zeros where u <= t."""
        changes = getattr(self, method)
        if method == "truncation":
            # Of the tokens cut off, the first stands for all.
            return np.diag(changes[:-1], 1)
        later = np.triu(changes, 1)
        later[:, : self.prompt] = 0
        return later

    def _leaking_pairs(self, method) -> tuple[tuple[int, int], ...]:
        pairs = np.argwhere(self._later(method) > self.tolerance[method])
        return tuple((t, u) for t, u in pairs.tolist())

    def __str__(self):
        """The verdict, and what each method found."""
        if self.looks_ahead:
            where = ""
            if self.training is not None:
                where = f", in {' and '.join(self.leaking_modes)}"
            verdict = (
                "looks ahead: outputs depend on target tokens after their own position"
                f"{where}.\n"
                "Its teacher-forced loss is not what search will see."
            )
        else:
            verdict = (
                "does not look ahead: no output was found to depend on a target token "
                "after its own position.\n"
                "Its teacher-forced loss is what search will see."
            )
        lines = [f"{self.name} {verdict}", *self._descriptions()]
        if self.training is not None:
            lines += ["In training:", *self.training._descriptions()]
        if self.labels is not None:
            lines.append(f"{self.labels}{self._own_label()}")
        lines.append(
            "Positions and tokens are counted from 1. The largest logit is "
            f"{self.largest_logit:.2g}."
        )
        return "\n".join(lines)

    def _own_label(self) -> str:
        if self.sees_label is None:
            return ""
        sees = "sees" if self.sees_label else "does not see"
        return f" A position of this model {sees} its own label."

    def _descriptions(self) -> list[str]:
        findings = []
        for method, meaning in METHODS.items():
            finding = self._describe(method)
            findings.append(f"- {method} ({meaning}): {finding}.")
        change, position = self.neighbours.max(), self.neighbours.argmax() + 1
        finding = f"at most {change:.2g}"
        if self.depends_on_neighbours:
            finding = (
                "a sentence depends on others of its batch, most at position "
                f"{position} (by {change:.2g})"
            )
        findings.append(f"- neighbours (other sentences replaced): {finding}.")
        return findings

    def _describe(self, method) -> str:
        if method in self.unavailable:
            return f"not available: {self.unavailable[method]}"
        sizes, offending = self._later(method), self._leaking_pairs(method)
        if not offending:
            tolerance = self.tolerance[method]
            largest = np.nanmax(sizes)
            finding = (
                f"at most {largest:.2g}, where {tolerance:.2g} may be rounding"
            )
            untested = np.isnan(sizes).sum()
            if untested:
                finding += (
                    f"; the model takes no target of {untested} tokens or fewer"
                )
            return finding
        or_later = " or later" if method == "truncation" else ""
        dependences = []
        for t, u in offending[:MAX_PAIRS]:
            token = f"token {u + 1}{or_later} (by {sizes[t, u]:.2g})"
            dependences.append(f"position {t + 1} depends on {token}")
        text = ", ".join(dependences)
        omitted = len(offending) - MAX_PAIRS
        return f"{text} and {omitted} more" if omitted > 0 else text
